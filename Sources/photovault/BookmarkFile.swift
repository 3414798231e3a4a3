/// The text of `recently-used.xbel`: XML of one `bookmark` element a file.
/// Source: the freedesktop.org Desktop Bookmark Specification.
enum BookmarkFile {
  /// The document without the bookmarks of these places, every other byte as it was; the same
  /// where there are none. nil where it is not well-formed enough to be sure.
  static func without(_ places: MountedPlaces, _ document: [UInt8]) -> [UInt8]? {
    guard let cuts = cuts(places, document) else { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(document.count)
    var end = 0
    for cut in cuts {
      result += document[end..<cut.lowerBound]
      end = cut.upperBound
    }
    return result + document[end...]
  }

  /// Whether one of these places may stand in the document, well-formed or not.
  static func mentions(_ places: MountedPlaces, _ document: [UInt8]) -> Bool {
    let scheme = Array("file:".utf8)
    let ends = Array("\"'<> \t\r\n".utf8)
    var rest = document[...]
    while let start = rest.firstIndex(of: scheme[0]) {
      rest = rest[start...]
      if rest.starts(with: scheme) {
        let uri = rest.prefix { !ends.contains($0) }
        if places.contain(withoutEntities(uri)[...]) { return true }
      }
      rest = rest.dropFirst()
    }
    return false
  }

  private static func cuts(_ places: MountedPlaces, _ document: [UInt8]) -> [Range<Int>]? {
    var cuts: [Range<Int>] = []
    var open: (start: Int, isOurs: Bool)?
    var rest = document[...]
    while let start = rest.firstIndex(of: UInt8(ascii: "<")) {
      rest = document[start...]
      if let end = endOfOther(rest) {
        rest = document[end...]
        continue
      }
      guard let tag = Tag(rest) else { return nil }
      rest = document[tag.end...]
      if tag.name == "bookmark" {
        guard open == nil else { return nil }
        let isOurs = tag.href.map { places.contain($0[...]) } ?? false
        if tag.isEmpty {
          if isOurs { cuts.append(line(start..<tag.end, in: document)) }
        } else {
          open = (start, isOurs)
        }
      } else if tag.name == "/bookmark" {
        guard let begin = open else { return nil }
        if begin.isOurs { cuts.append(line(begin.start..<tag.end, in: document)) }
        open = nil
      }
    }
    return open == nil ? cuts : nil
  }

  /// With the indentation and the line break before it.
  private static func line(_ range: Range<Int>, in document: [UInt8]) -> Range<Int> {
    var start = range.lowerBound
    while start > 0, document[start - 1] == 0x20 || document[start - 1] == 0x09 { start -= 1 }
    guard start > 0, document[start - 1] == 0x0A else { return range }
    start -= 1
    if start > 0, document[start - 1] == 0x0D { start -= 1 }
    return start..<range.upperBound
  }

  /// Behind a comment, CDATA, an instruction or a declaration; nil for a tag.
  private static func endOfOther(_ text: ArraySlice<UInt8>) -> Int? {
    let kinds = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>"), ("<!", ">")]
    for (begin, end) in kinds where text.starts(with: begin.utf8) {
      let ending = Array(end.utf8)
      var rest = text.dropFirst(begin.utf8.count)
      while let index = rest.firstIndex(of: ending[0]) {
        rest = rest[index...]
        if rest.starts(with: ending) { return index + ending.count }
        rest = rest.dropFirst()
      }
      return text.endIndex
    }
    return nil
  }

  private struct Tag {
    /// `/bookmark` for an end.
    let name: String
    let isEmpty: Bool
    let href: [UInt8]?
    /// Behind it.
    let end: Int

    /// nil if it has no end.
    init?(_ text: ArraySlice<UInt8>) {
      var rest = text.dropFirst()
      let first = rest.prefix { !Self.isBlank($0) && $0 != UInt8(ascii: ">") }
      // <bookmark/> without a blank.
      let word = first.count > 1 && first.last == UInt8(ascii: "/") ? first.dropLast() : first
      rest = rest[word.endIndex...]
      var href: [UInt8]?
      var last: UInt8 = 0
      while let byte = rest.popFirst() {
        if byte == UInt8(ascii: ">") {
          name = String(decoding: word, as: UTF8.self)
          isEmpty = last == UInt8(ascii: "/")
          self.href = href
          end = rest.startIndex
          return
        }
        if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
          guard let close = rest.firstIndex(of: byte) else { return nil }
          let before = text[..<(rest.startIndex - 1)]
          if Self.attribute(before) == Array("href".utf8) {
            href = BookmarkFile.withoutEntities(rest[..<close])
          }
          rest = rest[(close + 1)...]
        }
        last = byte
      }
      return nil
    }

    /// The name before `=` at the end of `text`.
    private static func attribute(_ text: ArraySlice<UInt8>) -> [UInt8] {
      var rest = text
      while let byte = rest.last, isBlank(byte) { rest.removeLast() }
      guard rest.popLast() == UInt8(ascii: "=") else { return [] }
      while let byte = rest.last, isBlank(byte) { rest.removeLast() }
      return rest.reversed().prefix { !isBlank($0) }.reversed()
    }

    private static func isBlank(_ byte: UInt8) -> Bool {
      byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D
    }
  }

  private static let entities: [String: UInt8] = [
    "amp": UInt8(ascii: "&"), "lt": UInt8(ascii: "<"), "gt": UInt8(ascii: ">"),
    "quot": UInt8(ascii: "\""), "apos": UInt8(ascii: "'"),
  ]

  private static func withoutEntities(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var rest = text
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "&"), let end = rest.firstIndex(of: UInt8(ascii: ";")),
        let bytes = entity(String(decoding: rest[..<end], as: UTF8.self))
      else {
        result.append(byte)
        continue
      }
      result += bytes
      rest = rest[(end + 1)...]
    }
    return result
  }

  private static func entity(_ name: String) -> [UInt8]? {
    if let byte = entities[name] { return [byte] }
    guard name.hasPrefix("#") else { return nil }
    let digits = name.dropFirst()
    let number =
      digits.hasPrefix("x") ? UInt32(digits.dropFirst(), radix: 16) : UInt32(digits)
    return number.flatMap(Unicode.Scalar.init).map { Array(String(Character($0)).utf8) }
  }
}
