import COpenSSL

/// The key derivations of the project, over OpenSSL.
package enum Derivation {
  /// PBKDF2-HMAC-SHA1. Source: RFC 8018.
  package static func pbkdf2(
    password: UnsafeRawBufferPointer, salt: [UInt8], rounds: Int,
    into target: UnsafeMutableRawBufferPointer
  ) throws(CryptoFailure) {
    try CryptoFailure.check(
      PKCS5_PBKDF2_HMAC(
        UnsafeRawPointer(password.octets).assumingMemoryBound(to: CChar.self),
        CInt(password.count), salt, CInt(salt.count), CInt(rounds), Algorithm.sha1.pointer,
        CInt(target.count), target.octets),
      "PBKDF2")
  }

  /// scrypt. Needs about `128 * n * r` bytes of memory. Source: RFC 7914.
  package static func scrypt(
    password: UnsafeRawBufferPointer, salt: [UInt8], n: UInt64, r: UInt64, p: UInt64,
    into target: UnsafeMutableRawBufferPointer
  ) throws(CryptoFailure) {
    let memory = 128 * n * r + 128 * r * p + (1 << 20)
    try CryptoFailure.check(
      EVP_PBE_scrypt(
        UnsafeRawPointer(password.octets).assumingMemoryBound(to: CChar.self), password.count,
        salt, salt.count, n, r, p, memory, target.octets, target.count),
      "scrypt")
  }

  /// HKDF-SHA256, extract and expand. Source: RFC 5869.
  package static func hkdf(
    input: UnsafeRawBufferPointer, salt: [UInt8], info: String,
    into target: UnsafeMutableRawBufferPointer
  ) throws(CryptoFailure) {
    try hkdf(input: input, salt: salt, info: Array(info.utf8), into: target)
  }

  package static func hkdf(
    input: UnsafeRawBufferPointer, salt: [UInt8], info: [UInt8],
    into target: UnsafeMutableRawBufferPointer
  ) throws(CryptoFailure) {
    guard let context = EVP_KDF_CTX_new(Algorithm.hkdf.pointer) else {
      throw CryptoFailure("HKDF context")
    }
    defer { EVP_KDF_CTX_free(context) }
    let result = salt.withRawBytes { salt in
      info.withRawBytes { info in
        var parameters = [
          Parameter.text("digest", "SHA256"), Parameter.octets("key", input),
          Parameter.octets("salt", salt), Parameter.octets("info", info), Parameter.end,
        ]
        return EVP_KDF_derive(context, target.octets, target.count, &parameters)
      }
    }
    try CryptoFailure.check(result, "HKDF")
  }
}

package enum Random {
  /// From OpenSSL's generator, which the kernel seeds.
  package static func fill(_ buffer: UnsafeMutableRawBufferPointer) throws(CryptoFailure) {
    try CryptoFailure.check(RAND_bytes(buffer.octets, CInt(buffer.count)), "random bytes")
  }

  /// Bytes that are no secret: salts, IVs, ids.
  package static func bytes(_ count: Int) throws(CryptoFailure) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: count)
    let filled = RAND_bytes(&result, CInt(count))
    try CryptoFailure.check(filled, "random bytes")
    return result
  }
}

package enum SHA256 {
  package static func hash(_ bytes: [UInt8]) throws(CryptoFailure) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 0
    try CryptoFailure.check(
      EVP_Digest(bytes, bytes.count, &result, &count, Algorithm.sha256.pointer, nil), "SHA-256")
    return result
  }
}
