import COpenSSL

/// Algorithms, fetched from OpenSSL once: a fetch costs more than the hash of a small photo.
enum Algorithm {
  struct Cipher: @unchecked Sendable {
    let pointer: OpaquePointer?
    init(_ name: StaticString) {
      pointer = EVP_CIPHER_fetch(nil, "\(name)", nil)
    }
  }

  struct MAC: @unchecked Sendable {
    let pointer: OpaquePointer?
    init(_ name: StaticString) { pointer = EVP_MAC_fetch(nil, "\(name)", nil) }
  }

  struct Digest: @unchecked Sendable {
    let pointer: OpaquePointer?
    init(_ name: StaticString) { pointer = EVP_MD_fetch(nil, "\(name)", nil) }
  }

  struct KDF: @unchecked Sendable {
    let pointer: OpaquePointer?
    init(_ name: StaticString) { pointer = EVP_KDF_fetch(nil, "\(name)", nil) }
  }

  static let aes256CBC = Cipher("AES-256-CBC")
  static let aes256GCM = Cipher("AES-256-GCM")
  static let aes256SIV = Cipher("AES-256-SIV")
  static let hmac = MAC("HMAC")
  static let cmac = MAC("CMAC")
  static let sha1 = Digest("SHA1")
  static let sha256 = Digest("SHA256")
  static let hkdf = KDF("HKDF")
}

/// OpenSSL keeps the pointers to a parameter's name and value until the call that takes it, which
/// a `String` passed to C does not outlive: so both are pointers that stay.
enum Parameter {
  static var end: OSSL_PARAM { OSSL_PARAM_construct_end() }

  static func text(_ name: StaticString, _ value: StaticString) -> OSSL_PARAM {
    OSSL_PARAM_construct_utf8_string(
      cString(name), UnsafeMutablePointer(mutating: cString(value)), value.utf8CodeUnitCount)
  }

  /// `bytes` stay where they are until the parameter is used.
  static func octets(_ name: StaticString, _ bytes: UnsafeRawBufferPointer) -> OSSL_PARAM {
    OSSL_PARAM_construct_octet_string(
      cString(name), UnsafeMutableRawPointer(mutating: bytes.octets), bytes.count)
  }

  private static func cString(_ text: StaticString) -> UnsafePointer<CChar> {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
  }
}

extension UnsafeRawBufferPointer {
  /// OpenSSL's `const unsigned char *`; never nil, so that empty input is not taken for "none".
  @inline(__always)
  var octets: UnsafePointer<UInt8> {
    baseAddress?.assumingMemoryBound(to: UInt8.self) ?? emptyOctets.pointer
  }
}

extension UnsafeMutableRawBufferPointer {
  @inline(__always)
  var octets: UnsafeMutablePointer<UInt8>? { baseAddress?.assumingMemoryBound(to: UInt8.self) }
}

private struct EmptyOctets: @unchecked Sendable {
  let pointer = UnsafePointer(UnsafeMutablePointer<UInt8>.allocate(capacity: 1))
}
private let emptyOctets = EmptyOctets()
