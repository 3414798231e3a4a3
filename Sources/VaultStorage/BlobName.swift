package import Platform
import SecuredData

/// The words of stored names.
package enum BlobName {
  static let suffix = Array(".securedData".utf8)
  static let long = Array(".long".utf8)
  static let companionSuffix = Array(".long.name".utf8)
  static let superblock = FileName("vault.json")
  /// The directory beside `vault.json` where `check --repair` puts what can't be read. It shows
  /// nowhere.
  static let setAside = FileName(".photovault-damaged")
  /// NAME_MAX of Linux's file systems, for plain and for stored names.
  static let longest = 255
  /// A SHA-256 in base64url.
  static let hashCharacterCount = 43
  /// `text` of the longest name: what a companion can hold.
  static let longestCompanion = Base64URL.encodedCount(longest + SIV.overhead)

  /// `.photovault-XXXXXX.tmp`: being written, or left by an interruption.
  static func isTemporary(_ name: FileName) -> Bool {
    name.hasPrefix(".photovault-") && name.hasSuffix(".tmp")
  }

  package static func temporary() throws(StorageError) -> FileName {
    let random = try StorageError.inCrypto { () throws(CryptoFailure) in try Random.bytes(6) }
    return FileName(
      Array(".photovault-".utf8) + random.map { letters.utf8Start[Int($0) % 62] }
        + Array(".tmp".utf8))
  }

  private static let letters: StaticString =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

  /// What a plain file system could hold under that name.
  package static func isPossible(_ name: [UInt8]) -> Bool {
    !name.isEmpty && name.count <= longest && !name.contains(0)
      && !name.contains(UInt8(ascii: "/")) && name != [0x2E] && name != [0x2E, 0x2E]
  }

  /// 43 characters of base64url and `.long`.
  static func looksLong(_ stem: ArraySlice<UInt8>) -> Bool {
    stem.count == hashCharacterCount + long.count && stem.suffix(long.count).elementsEqual(long)
      && stem.prefix(hashCharacterCount).allSatisfy { Base64URL.value(of: $0) != nil }
  }

  /// The hash of a companion's name, nil for anything else.
  static func hash(ofCompanion name: FileName) -> ArraySlice<UInt8>? {
    guard name.count == hashCharacterCount + companionSuffix.count,
      looksLong(name.bytes.prefix(hashCharacterCount + long.count)),
      name.bytes.suffix(companionSuffix.count).elementsEqual(companionSuffix)
    else { return nil }
    return name.bytes.prefix(hashCharacterCount)
  }
}

/// How the names of one directory are spelt on the disk. Pure computation.
package struct NameCodec: Sendable {
  let mode: NamesMode
  let isRoot: Bool
  /// Bound to the directory; nil where names are plain.
  private let cipher: PreparedSIV?

  package init(
    keys: VaultKeys, mode: NamesMode, directory: DirectoryID, isRoot: Bool
  ) throws(StorageError) {
    self.mode = mode
    self.isRoot = isRoot
    if mode == .plain {
      cipher = nil
      return
    }
    cipher = try StorageError.inCrypto { () throws(CryptoFailure) in
      try keys.names.withUnsafeBytes { key throws(CryptoFailure) in
        try PreparedSIV(key: key, associatedData: directory.bytes)
      }
    }
  }

  /// A name before its form is chosen.
  package struct Spelling {
    /// What a long form hashes: the encrypted name's bytes, or the name itself.
    let raw: [UInt8]
    /// What a short form, or the companion of a long one, holds.
    package let text: [UInt8]
  }

  package func spelling(_ name: FileName) throws(StorageError) -> Spelling {
    guard name.count <= BlobName.longest else { throw .system(.nameTooLong) }
    guard name.count > 0 else { throw .system(.noSuchEntry) }
    guard let cipher else { return Spelling(raw: name.bytes, text: name.bytes) }
    let raw = try StorageError.inCrypto { () throws(CryptoFailure) in
      try cipher.encrypt(name.bytes)
    }
    return Spelling(raw: raw, text: Base64URL.encode(raw))
  }

  func stored(_ spelling: Spelling, kind: EntryKind) throws(StorageError) -> StoredName {
    guard needsLongForm(spelling.text[...], kind: kind) else {
      return StoredName(
        entry: FileName(kind == .blob ? spelling.text + BlobName.suffix : spelling.text),
        companion: nil)
    }
    let hash = try hash(spelling)
    let stem = hash + BlobName.long
    return StoredName(
      entry: FileName(kind == .blob ? stem + BlobName.suffix : stem),
      companion: FileName(hash + BlobName.companionSuffix))
  }

  func hash(_ spelling: Spelling) throws(StorageError) -> [UInt8] {
    Base64URL.encode(
      try StorageError.inCrypto { () throws(CryptoFailure) in try SHA256.hash(spelling.raw) })
  }

  /// Too long for the disk; with plain names also what would be taken for something else.
  func needsLongForm(_ text: ArraySlice<UInt8>, kind: EntryKind) -> Bool {
    let suffixCount = kind == .blob ? BlobName.suffix.count : 0
    if text.count + suffixCount > BlobName.longest { return true }
    return mode == .plain && collides(text, kind: kind)
  }

  private func collides(_ text: ArraySlice<UInt8>, kind: EntryKind) -> Bool {
    if BlobName.looksLong(text) { return true }
    if kind == .blob { return false }
    let name = FileName(Array(text))
    return name.hasSuffix(".securedData") || name.hasSuffix(".long.name")
      || name == DirectoryID.fileName || BlobName.isTemporary(name)
      || name == BlobName.setAside || (isRoot && name == BlobName.superblock)
  }

  /// The name that a short form or a companion stands for; nil when it stands for none.
  package func name(ofText text: ArraySlice<UInt8>) throws(StorageError) -> [UInt8]? {
    guard let cipher else { return BlobName.isPossible(Array(text)) ? Array(text) : nil }
    guard let raw = Base64URL.decode(text) else { return nil }
    let name = try StorageError.inCrypto { () throws(CryptoFailure) in try cipher.decrypt(raw) }
    guard let name, BlobName.isPossible(name) else { return nil }
    return name
  }

  /// The name in a companion's `text` for a long form that begins with `hash`.
  package func name(
    ofCompanionText text: [UInt8], hash expected: ArraySlice<UInt8>, kind: EntryKind
  ) throws(StorageError) -> [UInt8]? {
    let raw = mode == .plain ? text : Base64URL.decode(text[...])
    guard let raw, needsLongForm(text[...], kind: kind),
      try hash(Spelling(raw: raw, text: text))[...] == expected
    else { return nil }
    return try name(ofText: text[...])
  }
}
