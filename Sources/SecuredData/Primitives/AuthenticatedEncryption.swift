import COpenSSL

/// AES-256-GCM for scratch space: short-lived data under a throw-away key.
/// Not for two threads at once.
package final class GCM: @unchecked Sendable {
  package static let tagByteCount = 16

  private let context: OpaquePointer

  /// `key` is 32 bytes.
  package init(key: UnsafeRawBufferPointer) throws(CryptoFailure) {
    precondition(key.count == 32)
    guard let context = EVP_CIPHER_CTX_new() else { throw CryptoFailure("GCM context") }
    self.context = context
    try CryptoFailure.check(
      EVP_CipherInit_ex2(context, Algorithm.aes256GCM.pointer, key.octets, nil, 1, nil),
      "GCM start")
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  private func start(_ nonce: UInt64, encrypt: Bool) throws(CryptoFailure) {
    let result = withGCMNonce(nonce) {
      EVP_CipherInit_ex2(context, nil, nil, $0, encrypt ? 1 : 0, nil)
    }
    try CryptoFailure.check(result, "GCM nonce")
  }

  /// Encrypts in place. A nonce is never used twice under one key.
  package func seal(
    _ bytes: UnsafeMutableRawBufferPointer, nonce: UInt64
  ) throws(CryptoFailure) -> GMAC.Tag {
    try start(nonce, encrypt: true)
    var written: CInt = 0
    try CryptoFailure.check(
      EVP_CipherUpdate(
        context, bytes.octets, &written, bytes.octets, CInt(bytes.count)), "GCM")
    var none: UInt8 = 0
    try CryptoFailure.check(EVP_CipherFinal_ex(context, &none, &written), "GCM end")
    var tag = GMAC.Tag()
    let result = withUnsafeMutableBytes(of: &tag) {
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, CInt($0.count), $0.baseAddress)
    }
    try CryptoFailure.check(result, "GCM tag")
    return tag
  }

  /// Decrypts in place; false and zeroed bytes when they are not what `seal` made.
  package func open(
    _ bytes: UnsafeMutableRawBufferPointer, nonce: UInt64, tag: GMAC.Tag
  ) throws(CryptoFailure) -> Bool {
    try start(nonce, encrypt: false)
    var written: CInt = 0
    try CryptoFailure.check(
      EVP_CipherUpdate(
        context, bytes.octets, &written, bytes.octets, CInt(bytes.count)), "GCM")
    var expected = tag
    let result = withUnsafeMutableBytes(of: &expected) {
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, CInt($0.count), $0.baseAddress)
    }
    try CryptoFailure.check(result, "GCM tag")
    var none: UInt8 = 0
    if EVP_CipherFinal_ex(context, &none, &written) == 1 { return true }
    ERR_clear_error()
    bytes.initializeMemory(as: UInt8.self, repeating: 0)
    return false
  }
}

/// The 96-bit IV of GCM: four zero bytes and `nonce`, the most significant byte first.
@inline(__always)
func withGCMNonce(_ nonce: UInt64, _ body: (UnsafePointer<UInt8>?) -> CInt) -> CInt {
  withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { bytes in
    bytes.storeBytes(of: 0, as: UInt32.self)
    bytes.storeBytes(of: nonce.bigEndian, toByteOffset: 4, as: UInt64.self)
    return body(UnsafeRawBufferPointer(bytes).octets)
  }
}
