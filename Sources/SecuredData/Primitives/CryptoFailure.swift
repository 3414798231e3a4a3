import COpenSSL

/// OpenSSL refused what it never refuses for right arguments: no memory, or a broken installation.
public struct CryptoFailure: Error, Hashable, Sendable, CustomStringConvertible {
  public let operation: String

  public var description: String { "OpenSSL failed: \(operation)" }

  package init(_ operation: StaticString) {
    self.operation = "\(operation)"
    ERR_clear_error()
  }

  @inline(__always)
  static func check(
    _ result: CInt, _ operation: StaticString
  ) throws(CryptoFailure) {
    if result != 1 { throw CryptoFailure(operation) }
  }
}
