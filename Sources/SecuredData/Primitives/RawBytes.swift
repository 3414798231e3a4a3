/// `withUnsafeBytes` of the standard library forgets the type of what the closure throws.
extension [UInt8] {
  func withRawBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeBufferPointer { bytes throws(Failure) in
      try body(UnsafeRawBufferPointer(bytes))
    }
  }

  mutating func withMutableRawBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try withUnsafeMutableBufferPointer { bytes throws(Failure) in
      try body(UnsafeMutableRawBufferPointer(bytes))
    }
  }
}

extension SecuredDataError {
  /// Runs what only OpenSSL can refuse.
  @inline(__always)
  static func wrapping<Result>(
    _ body: () throws(CryptoFailure) -> Result
  ) throws(SecuredDataError) -> Result {
    do throws(CryptoFailure) { return try body() } catch { throw .crypto(error) }
  }
}
