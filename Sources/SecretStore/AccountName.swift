/// A user name that can be the name of a file and of a directory. Compared byte for byte.
package struct AccountName: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// With ".json" and what a file system may add, this stays below NAME_MAX.
  package static let greatestByteCount = 200

  package enum Invalid: Error, Sendable {
    case empty, tooLong, slash, dots, controlCharacter
  }

  package let text: String

  package init(_ text: String) throws(Invalid) {
    if text.isEmpty { throw .empty }
    if text.utf8.count > Self.greatestByteCount { throw .tooLong }
    if text == "." || text == ".." { throw .dots }
    for scalar in text.unicodeScalars {
      if scalar == "/" { throw .slash }
      // Line and paragraph separators break lines just as well.
      if scalar.value < 32 || (127..<160).contains(scalar.value)
        || (0x2028...0x2029).contains(scalar.value)
      {
        throw .controlCharacter
      }
    }
    self.text = text
  }

  package var description: String { text }

  // `String` compares characters: two spellings of "é" are two names here.
  package static func == (left: AccountName, right: AccountName) -> Bool {
    left.text.utf8.elementsEqual(right.text.utf8)
  }

  package func hash(into hasher: inout Hasher) {
    for byte in text.utf8 { hasher.combine(byte) }
  }

  package static func < (left: AccountName, right: AccountName) -> Bool {
    left.text.utf8.lexicographicallyPrecedes(right.text.utf8)
  }
}
