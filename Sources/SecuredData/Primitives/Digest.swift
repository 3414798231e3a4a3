import COpenSSL

/// SHA-256, fed piece by piece. Not for two threads at once.
package final class Digest: @unchecked Sendable {
  package static let byteCount = 32

  private let context: OpaquePointer

  package init() throws(CryptoFailure) {
    guard let context = EVP_MD_CTX_new() else { throw CryptoFailure("SHA-256 context") }
    self.context = context
    try CryptoFailure.check(
      EVP_DigestInit_ex2(context, Algorithm.sha256.pointer, nil), "SHA-256 start")
  }

  deinit { EVP_MD_CTX_free(context) }

  package func update(_ bytes: UnsafeRawBufferPointer) throws(CryptoFailure) {
    if bytes.isEmpty { return }
    try CryptoFailure.check(EVP_DigestUpdate(context, bytes.octets, bytes.count), "SHA-256")
  }

  /// 32 bytes. It takes no more.
  package func finish() throws(CryptoFailure) -> [UInt8] {
    var result = [UInt8](repeating: 0, count: Self.byteCount)
    var count: UInt32 = 0
    try CryptoFailure.check(EVP_DigestFinal_ex(context, &result, &count), "SHA-256 end")
    return result
  }
}
