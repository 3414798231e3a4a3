import COpenSSL

/// HMAC-SHA256, fed piece by piece. Not for two threads at once.
package final class HMACSHA256: @unchecked Sendable {
  package static let byteCount = 32

  private let context: OpaquePointer

  package init(key: UnsafeRawBufferPointer) throws(CryptoFailure) {
    guard let context = EVP_MAC_CTX_new(Algorithm.hmac.pointer) else {
      throw CryptoFailure("HMAC context")
    }
    self.context = context
    var parameters = [Parameter.text("digest", "SHA256"), Parameter.end]
    let started = EVP_MAC_init(context, key.octets, key.count, &parameters)
    try CryptoFailure.check(started, "HMAC start")
  }

  deinit { EVP_MAC_CTX_free(context) }

  /// Starts a new message under the same key.
  package func restart() throws(CryptoFailure) {
    try CryptoFailure.check(EVP_MAC_init(context, nil, 0, nil), "HMAC restart")
  }

  package func update(_ bytes: UnsafeRawBufferPointer) throws(CryptoFailure) {
    if bytes.isEmpty { return }
    try CryptoFailure.check(EVP_MAC_update(context, bytes.octets, bytes.count), "HMAC")
  }

  /// Writes 32 bytes. The context takes no more until `restart`.
  package func finish(into target: UnsafeMutableRawBufferPointer) throws(CryptoFailure) {
    precondition(target.count >= Self.byteCount)
    var count = 0
    try CryptoFailure.check(
      EVP_MAC_final(context, target.octets, &count, target.count), "HMAC end")
  }

  /// 32 bytes. The context takes no more until `restart`.
  package func finish() throws(CryptoFailure) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: Self.byteCount)
    try result.withMutableRawBytes { target throws(CryptoFailure) in try finish(into: target) }
    return result
  }

  /// Another one that has seen the same bytes: to finish early and go on all the same.
  package func copy() throws(CryptoFailure) -> HMACSHA256 {
    guard let copied = EVP_MAC_CTX_dup(context) else { throw CryptoFailure("HMAC copy") }
    return HMACSHA256(owning: copied)
  }

  private init(owning context: OpaquePointer) { self.context = context }

  package static func authenticate(
    _ bytes: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer
  ) throws(CryptoFailure) -> [UInt8] {
    let mac = try HMACSHA256(key: key)
    try mac.update(bytes)
    return try mac.finish()
  }
}

/// AES-256-GMAC: a fast MAC whose nonce must differ for every message under one key.
/// Not for two threads at once.
package final class GMAC: @unchecked Sendable {
  package static let byteCount = 16

  private let context: OpaquePointer

  /// `key` is 32 bytes.
  package init(key: UnsafeRawBufferPointer) throws(CryptoFailure) {
    precondition(key.count == 32)
    guard let context = EVP_CIPHER_CTX_new() else { throw CryptoFailure("GMAC context") }
    self.context = context
    try CryptoFailure.check(
      EVP_EncryptInit_ex2(context, Algorithm.aes256GCM.pointer, key.octets, nil, nil),
      "GMAC start")
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  /// Starts a message; `nonce` becomes the 96-bit IV.
  package func start(nonce: UInt64) throws(CryptoFailure) {
    let result = withGCMNonce(nonce) { EVP_EncryptInit_ex2(context, nil, nil, $0, nil) }
    try CryptoFailure.check(result, "GMAC nonce")
  }

  package func update(_ bytes: UnsafeRawBufferPointer) throws(CryptoFailure) {
    if bytes.isEmpty { return }
    var written: CInt = 0
    try CryptoFailure.check(
      EVP_EncryptUpdate(context, nil, &written, bytes.octets, CInt(bytes.count)), "GMAC")
  }

  package func finish() throws(CryptoFailure) -> Tag {
    var written: CInt = 0
    var none: UInt8 = 0
    try CryptoFailure.check(EVP_EncryptFinal_ex(context, &none, &written), "GMAC end")
    var tag = Tag()
    let result = withUnsafeMutableBytes(of: &tag) {
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CInt($0.count), $0.baseAddress)
    }
    try CryptoFailure.check(result, "GMAC tag")
    return tag
  }

  /// The 16 bytes of a MAC.
  package struct Tag: Sendable {
    package var high: UInt64 = 0
    package var low: UInt64 = 0

    package init() {}

    package func matches(_ other: Tag) -> Bool {
      ((high ^ other.high) | (low ^ other.low)) == 0
    }
  }
}

/// Compares without telling by its time where the difference is.
package func constantTimeEqual(
  _ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer
) -> Bool {
  left.count == right.count && CRYPTO_memcmp(left.octets, right.octets, left.count) == 0
}

package func constantTimeEqual(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  left.withUnsafeBytes { left in right.withUnsafeBytes { constantTimeEqual(left, $0) } }
}
