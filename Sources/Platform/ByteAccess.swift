/// The standard library's pointer calls with the error's type kept: they rethrow `any Error`.
extension Array where Element == UInt8 {
  @inline(__always)
  @inlinable package func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = withUnsafeBytes { bytes in
      do throws(Failure) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }

  @inline(__always)
  @inlinable package mutating func withMutableBytes<Result, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let result: Swift.Result<Result, Failure> = withUnsafeMutableBytes { bytes in
      do throws(Failure) { return .success(try body(bytes)) } catch { return .failure(error) }
    }
    return try result.get()
  }
}

/// The bytes of a plain value.
@inline(__always)
@inlinable package func withBytes<Value, Result, Failure: Error>(
  of value: Value, _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
) throws(Failure) -> Result {
  let result: Swift.Result<Result, Failure> = withUnsafeBytes(of: value) { bytes in
    do throws(Failure) { return .success(try body(bytes)) } catch { return .failure(error) }
  }
  return try result.get()
}
