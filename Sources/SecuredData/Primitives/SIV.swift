import COpenSSL

/// AES-256-SIV: deterministic authenticated encryption of short strings. Source: RFC 5297.
package enum SIV {
  /// What the ciphertext is longer than the plaintext: the synthetic IV in front.
  package static let overhead = 16
  package static let keyByteCount = 64

  /// `key` is 64 bytes; `associatedData` is not empty (OpenSSL 3.0 skips empty data).
  package static func encrypt(
    _ plaintext: [UInt8], associatedData: [UInt8], key: UnsafeRawBufferPointer
  ) throws(CryptoFailure) -> [UInt8] {
    if plaintext.isEmpty { return try tagOfNothing(associatedData, key) }
    let context = try start(key, associatedData, encrypt: true)
    defer { EVP_CIPHER_CTX_free(context) }
    var result = [UInt8](repeating: 0, count: overhead + plaintext.count)
    var written: CInt = 0
    let updated = plaintext.withUnsafeBytes { source in
      result.withUnsafeMutableBytes { target in
        EVP_CipherUpdate(
          context, target.octets.map { $0 + overhead }, &written, source.octets,
          CInt(source.count))
      }
    }
    try CryptoFailure.check(updated, "SIV")
    try CryptoFailure.check(EVP_CipherFinal_ex(context, nil, &written), "SIV end")
    let tagged = result.withUnsafeMutableBytes {
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CInt(overhead), $0.baseAddress)
    }
    try CryptoFailure.check(tagged, "SIV tag")
    return result
  }

  /// nil when `ciphertext` was not made with this key and associated data.
  package static func decrypt(
    _ ciphertext: [UInt8], associatedData: [UInt8], key: UnsafeRawBufferPointer
  ) throws(CryptoFailure) -> [UInt8]? {
    guard ciphertext.count > overhead else {
      let isNothing = constantTimeEqual(ciphertext, try tagOfNothing(associatedData, key))
      return isNothing ? [] : nil
    }
    let context = try start(key, associatedData, encrypt: false)
    defer { EVP_CIPHER_CTX_free(context) }
    var tag = Array(ciphertext[..<overhead])
    try CryptoFailure.check(
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CInt(overhead), &tag), "SIV tag")
    var result = [UInt8](repeating: 0, count: ciphertext.count - overhead)
    var written: CInt = 0
    let updated = ciphertext.withUnsafeBytes { source in
      EVP_CipherUpdate(
        context, &result, &written, source.octets + overhead, CInt(source.count - overhead))
    }
    guard updated == 1, EVP_CipherFinal_ex(context, nil, &written) == 1 else {
      ERR_clear_error()
      return nil
    }
    return result
  }

  private static func start(
    _ key: UnsafeRawBufferPointer, _ associatedData: [UInt8], encrypt: Bool
  ) throws(CryptoFailure) -> OpaquePointer {
    precondition(key.count == keyByteCount && !associatedData.isEmpty)
    guard let context = EVP_CIPHER_CTX_new() else { throw CryptoFailure("SIV context") }
    var written: CInt = 0
    guard
      EVP_CipherInit_ex2(
        context, Algorithm.aes256SIV.pointer, key.octets, nil, encrypt ? 1 : 0, nil) == 1,
      EVP_CipherUpdate(context, nil, &written, associatedData, CInt(associatedData.count)) == 1
    else {
      EVP_CIPHER_CTX_free(context)
      throw CryptoFailure("SIV start")
    }
    return context
  }

  /// The synthetic IV of an empty plaintext, which OpenSSL 3.0 refuses to make.
  /// Source: RFC 5297, section 2.4, S2V with one header and an empty last string.
  private static func tagOfNothing(
    _ associatedData: [UInt8], _ key: UnsafeRawBufferPointer
  ) throws(CryptoFailure) -> [UInt8] {
    let macKey = UnsafeRawBufferPointer(rebasing: key[..<(keyByteCount / 2)])
    var chain = try cmac([UInt8](repeating: 0, count: 16), macKey)
    double(&chain)
    let header = try cmac(associatedData, macKey)
    for index in chain.indices { chain[index] ^= header[index] }
    double(&chain)
    chain[0] ^= 0x80
    return try cmac(chain, macKey)
  }

  /// Times x in GF(2^128). Source: RFC 5297, section 2.3.
  private static func double(_ block: inout [UInt8]) {
    let carry = block[0] >> 7
    for index in block.indices {
      let next = index + 1 < block.count ? block[index + 1] >> 7 : 0
      block[index] = block[index] << 1 | next
    }
    block[block.count - 1] ^= 0x87 & (0 &- carry)
  }

  private static func cmac(
    _ bytes: [UInt8], _ key: UnsafeRawBufferPointer
  ) throws(CryptoFailure) -> [UInt8] {
    guard let context = EVP_MAC_CTX_new(Algorithm.cmac.pointer) else {
      throw CryptoFailure("CMAC context")
    }
    defer { EVP_MAC_CTX_free(context) }
    var parameters = [Parameter.text("cipher", "AES-256-CBC"), Parameter.end]
    var result = [UInt8](repeating: 0, count: 16)
    var count = 0
    guard EVP_MAC_init(context, key.octets, key.count, &parameters) == 1,
      EVP_MAC_update(context, bytes, bytes.count) == 1,
      EVP_MAC_final(context, &result, &count, result.count) == 1
    else { throw CryptoFailure("CMAC") }
    return result
  }
}
