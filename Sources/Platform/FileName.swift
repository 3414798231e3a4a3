/// One component of a path, as the kernel gives it: any bytes but `/` and NUL, not normalised.
package struct FileName: Hashable, Sendable, CustomStringConvertible {
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  package init(_ string: String) { bytes = Array(string.utf8) }
  package init(_ buffer: UnsafeRawBufferPointer) { bytes = Array(buffer) }

  /// Of a path: what is behind the last `/` that something is behind; empty where nothing is.
  package var lastComponent: FileName {
    FileName(Array(bytes.split(separator: UInt8(ascii: "/")).last ?? []))
  }
  package init(cString: UnsafePointer<CChar>) {
    bytes = [UInt8](CStringBytes.of(cString))
  }

  package var count: Int { bytes.count }
  package var isDotOrDotDot: Bool { bytes == [0x2E] || bytes == [0x2E, 0x2E] }

  /// For messages only: bytes that aren't UTF-8 are repaired.
  package var description: String { String(decoding: bytes, as: UTF8.self) }

  package func hasPrefix(_ prefix: StaticString) -> Bool {
    prefix.withUTF8Buffer { bytes.starts(with: $0) }
  }

  package func hasSuffix(_ suffix: StaticString) -> Bool {
    suffix.withUTF8Buffer { bytes.count >= $0.count && bytes.suffix($0.count).elementsEqual($0) }
  }

  /// Calls `body` with the bytes and a NUL behind them.
  @inlinable package func withCString<Result, Failure: Error>(
    _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try CStringBytes.with(bytes, body)
  }
}

/// Byte strings as C wants them, without a detour through `String`, which repairs bytes.
package enum CStringBytes {
  package static func of(_ pointer: UnsafePointer<CChar>) -> UnsafeRawBufferPointer {
    var count = 0
    while pointer[count] != 0 { count += 1 }
    return UnsafeRawBufferPointer(start: pointer, count: count)
  }

  @inlinable package static func with<Result, Failure: Error>(
    _ bytes: [UInt8], _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    // Rethrowing through the closure as a value keeps the error's type.
    let result: Swift.Result<Result, Failure> = withUnsafeTemporaryAllocation(
      of: CChar.self, capacity: bytes.count + 1
    ) { buffer in
      for index in bytes.indices { buffer[index] = CChar(bitPattern: bytes[index]) }
      buffer[bytes.count] = 0
      do throws(Failure) {
        return .success(try body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped)))
      } catch {
        return .failure(error)
      }
    }
    return try result.get()
  }
}
