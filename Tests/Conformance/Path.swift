/// A path below the root of the file system under test, as bytes. One that begins with `/` counts
/// from that root, any other from the check's own directory.
package struct Path: Hashable, Sendable, ExpressibleByStringLiteral,
  ExpressibleByStringInterpolation,
  CustomStringConvertible
{
  package let bytes: [UInt8]

  package init(_ bytes: [UInt8]) { self.bytes = bytes }
  package init(_ string: String) { bytes = Array(string.utf8) }
  package init(stringLiteral value: String) { bytes = Array(value.utf8) }

  package static func / (left: Path, right: Path) -> Path {
    left.bytes.isEmpty ? right : Path(left.bytes + [0x2F] + right.bytes)
  }

  /// All of it, for who takes text.
  package var text: String { String(decoding: bytes, as: UTF8.self) }

  /// For messages: long ones are cut, bytes that aren't UTF-8 repaired.
  package var description: String {
    bytes.count <= 60
      ? text
      : String(decoding: bytes.prefix(40), as: UTF8.self) + "… (\(bytes.count) bytes)"
  }
}
