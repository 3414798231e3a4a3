import Platform

/// What becomes of a file whose name another file has already.
enum ConflictPolicy: String, Sendable {
  /// It gets a free name.
  case rename
  /// It is left out.
  case skip
  case replace

  static let help = "name taken: rename (default), skip or replace"

  init(_ arguments: Arguments, _ command: String) throws(CommandError) {
    guard let word = arguments.value(of: "on-conflict") else {
      self = .rename
      return
    }
    guard let policy = ConflictPolicy(rawValue: word) else {
      throw .usage("--on-conflict is rename, skip or replace, not '\(word)'", command)
    }
    self = policy
  }
}

/// A name in two parts, so that a number fits between: "IMG_1" and ".jpg".
struct SplitName: Hashable, Sendable {
  let base: [UInt8]
  let tail: [UInt8]

  init(base: [UInt8], tail: [UInt8]) {
    self.base = base
    self.tail = tail
  }

  /// At the last dot; a name that only begins with one has no extension.
  init(_ name: FileName) {
    let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")) ?? 0
    let end = dot == 0 ? name.count : dot
    self.init(base: Array(name.bytes[..<end]), tail: Array(name.bytes[end...]))
  }

  private static let longest = 255  // NAME_MAX

  /// "IMG_1.jpg", "IMG_1 (2).jpg" ...; cut where that would be too long for a name.
  func numbered(_ number: Int) -> FileName {
    let mark = number > 1 ? Array(" (\(number))".utf8) : []
    var head = base[...]
    let room = Self.longest - mark.count - tail.count
    if head.count > room {
      head = head.prefix(max(1, room))
      // Not in the middle of a character of UTF-8.
      while head.count > 1, base[head.endIndex] & 0xC0 == 0x80 { head.removeLast() }
    }
    return FileName(Array(head) + mark + tail)
  }
}

extension FileName {
  static let empty = FileName([])

  /// `name` in this directory; "" is the top.
  func appending(_ name: FileName) -> FileName {
    if bytes.isEmpty { return name }
    return FileName(
      bytes + (bytes.last == UInt8(ascii: "/") ? [] : [UInt8(ascii: "/")]) + name.bytes)
  }

  /// The part behind the last dot, in small letters; "" without one.
  var lowercaseExtension: String {
    let tail = SplitName(self).tail
    return String(decoding: tail.dropFirst(), as: UTF8.self).lowercased()
  }

  /// The components of a path in the vault; nil for one that leads out of it.
  var vaultComponents: [FileName]? {
    let parts = bytes.split(separator: UInt8(ascii: "/")).map { FileName(Array($0)) }
      .filter { $0 != FileName(".") }
    return parts.contains(FileName("..")) ? nil : parts
  }

  /// Whether it means what is in a directory rather than the directory: "a/", "a/.", ".", "..".
  var meansContents: Bool {
    let last =
      bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last ?? []
    return last.isEmpty || FileName(Array(last)).isDotOrDotDot
  }
}
