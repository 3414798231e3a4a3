/// `file:` URIs as desktop programs write them. GLib and KDE escape different characters, so two
/// URIs of one file may differ: only their paths are compared.
enum FileURI {
  /// The path, byte for byte; nil for another kind of URI. Any host is this one: nobody caches
  /// files of others under `file:`.
  static func path(_ uri: ArraySlice<UInt8>) -> [UInt8]? {
    let scheme = Array("file:".utf8)
    guard uri.count > scheme.count,
      uri.prefix(scheme.count).map({ $0 | 0x20 }).elementsEqual(scheme.map { $0 | 0x20 })
    else { return nil }
    var rest = uri.dropFirst(scheme.count)
    let slash = UInt8(ascii: "/")
    if rest.starts(with: [slash, slash]) {
      rest = rest.dropFirst(2).drop { $0 != slash }
    }
    guard rest.first == slash else { return nil }
    return unescaped(rest)
  }

  /// A percent sign without two digits stands for itself.
  static func unescaped(_ text: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    result.reserveCapacity(text.count)
    var rest = text
    while let byte = rest.popFirst() {
      let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
      if byte == UInt8(ascii: "%"), digits.count == 2 {
        result.append(UInt8(digits[0] << 4 | digits[1]))
        rest = rest.dropFirst(2)
      } else {
        result.append(byte)
      }
    }
    return result
  }
}

/// The directories under which a mount's files are reached.
struct MountedPlaces: Sendable {
  private let paths: [[UInt8]]

  init(_ paths: [String]) { self.paths = paths.map { Array($0.utf8) } }

  /// Whether `uri` is one of the places or a file beneath one.
  func contain(_ uri: ArraySlice<UInt8>) -> Bool {
    guard let path = FileURI.path(uri),
      !path.split(separator: UInt8(ascii: "/")).contains([0x2E, 0x2E])
    else { return false }  // "..": it may lead out again
    return paths.contains { place in
      path.starts(with: place)
        && (path.count == place.count || path[place.count] == UInt8(ascii: "/"))
    }
  }
}
