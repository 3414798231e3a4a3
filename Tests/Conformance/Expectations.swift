import Glibc
package import Platform

/// What a check expected and what it got, and the line that says so.
package struct CheckFailure: Error, CustomStringConvertible {
  package let file: String
  package let line: Int
  package let message: String
  /// The error number, if an operation failed with one.
  package let errno: Errno?

  package init(_ message: String, errno: Errno? = nil, _ file: StaticString, _ line: UInt) {
    self.message = message
    self.errno = errno
    self.file = file.description
    self.line = Int(line)
  }

  package var description: String {
    "\(file.split(separator: "/").last ?? ""):\(line): \(message)"
  }
}

/// `got` is `wanted`.
package func expect<Value: Equatable>(
  _ got: Value, _ wanted: Value, _ what: @autoclosure () -> String = "",
  _ file: StaticString = #filePath, _ line: UInt = #line
) throws {
  if got == wanted { return }
  throw CheckFailure("\(prefix(what()))expected \(wanted), got \(got)", file, line)
}

/// The bytes are the same; says where they begin to differ.
package func expect(
  _ got: [UInt8], _ wanted: [UInt8], _ what: @autoclosure () -> String = "",
  _ file: StaticString = #filePath, _ line: UInt = #line
) throws {
  let common = min(got.count, wanted.count)
  let same = got.withUnsafeBytes { left in
    wanted.withUnsafeBytes { right in
      guard let left = left.baseAddress, let right = right.baseAddress else { return true }
      return memcmp(left, right, common) == 0
    }
  }
  if same, got.count == wanted.count { return }
  var message = "\(prefix(what()))expected \(wanted.count) bytes, got \(got.count)"
  if !same, let first = (0..<common).first(where: { got[$0] != wanted[$0] }) {
    let count = (0..<common).count { got[$0] != wanted[$0] }
    message += ", \(count) differ, the first at \(first): \(wanted[first]) is \(got[first])"
  }
  throw CheckFailure(message, file, line)
}

package func expect(
  _ condition: Bool, _ what: @autoclosure () -> String,
  _ file: StaticString = #filePath, _ line: UInt = #line
) throws {
  if !condition { throw CheckFailure(what(), file, line) }
}

/// `body` fails with one of `codes`.
package func expectError<Value>(
  _ codes: CInt..., file: StaticString = #filePath, line: UInt = #line, _ body: () throws -> Value
) throws {
  let wanted = codes.map { "\(Errno($0))" }.joined(separator: " or ")
  do {
    let value = try body()
    let got = value is Void ? "success" : "\(value)"
    throw CheckFailure("expected \(wanted), got \(got)", file, line)
  } catch let failure as CheckFailure {
    guard let errno = failure.errno else { throw failure }
    if codes.contains(errno.rawValue) { return }
    throw CheckFailure("expected \(wanted), got \(failure.message)", file, line)
  }
}

private func prefix(_ what: String) -> String { what.isEmpty ? "" : what + ": " }
