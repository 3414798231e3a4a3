import COpenSSL

/// AES-256-CBC over whole blocks, without padding: PKCS#7 is done by who knows where the end is.
/// Not for two threads at once. The chaining value goes on from call to call.
package final class CBC: @unchecked Sendable {
  package enum Direction: CInt, Sendable {
    case decrypt = 0
    case encrypt = 1
  }

  private let context: OpaquePointer

  /// `key` is 32 bytes, `iv` 16.
  package init(
    _ direction: Direction, key: UnsafeRawBufferPointer, iv: UnsafeRawBufferPointer
  ) throws(CryptoFailure) {
    precondition(key.count == 32 && iv.count == 16)
    guard let context = EVP_CIPHER_CTX_new() else { throw CryptoFailure("CBC context") }
    self.context = context
    try CryptoFailure.check(
      EVP_CipherInit_ex2(
        context, Algorithm.aes256CBC.pointer, key.octets, iv.octets, direction.rawValue, nil),
      "CBC start")
    EVP_CIPHER_CTX_set_padding(context, 0)
  }

  deinit { EVP_CIPHER_CTX_free(context) }

  private init(owning context: OpaquePointer) { self.context = context }

  /// Another one at the same place: to finish early and go on all the same.
  package func copy() throws(CryptoFailure) -> CBC {
    guard let copied = EVP_CIPHER_CTX_new() else { throw CryptoFailure("CBC context") }
    let result = CBC(owning: copied)
    try CryptoFailure.check(EVP_CIPHER_CTX_copy(copied, context), "CBC copy")
    return result
  }

  /// Starts anew with another IV and the same key.
  package func restart(iv: UnsafeRawBufferPointer) throws(CryptoFailure) {
    precondition(iv.count == 16)
    try CryptoFailure.check(
      EVP_CipherInit_ex2(context, nil, nil, iv.octets, -1, nil), "CBC restart")
  }

  /// `source.count` is a multiple of 16; as much is written to `target`, which may be `source`.
  package func update(
    _ source: UnsafeRawBufferPointer, into target: UnsafeMutableRawBufferPointer
  ) throws(CryptoFailure) {
    precondition(source.count % 16 == 0 && target.count >= source.count)
    if source.isEmpty { return }
    var written: CInt = 0
    try CryptoFailure.check(
      EVP_CipherUpdate(context, target.octets, &written, source.octets, CInt(source.count)),
      "CBC")
    precondition(Int(written) == source.count)
  }
}
