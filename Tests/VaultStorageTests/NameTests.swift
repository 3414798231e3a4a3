import Foundation
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

@Suite struct NameTests {
  @Test func keysAreThoseOfTheSecondImplementation() {
    let keys = Expected.vaultKeys
    let expected = Expected.values.keys
    #expect(keys.names.withUnsafeBytes { Array($0) } == Expected.bytes(expected.names))
    #expect(
      keys.extendedAttributes.withUnsafeBytes { Array($0) } == Expected.bytes(expected.xattrs))
    #expect(keys.chunks.withUnsafeBytes { Array($0) } == Expected.bytes(expected.chunks))
    #expect(keys.configuration.withUnsafeBytes { Array($0) } == Expected.bytes(expected.config))
  }

  @Test func storedNamesAreThoseOfTheSecondImplementation() throws {
    for expected in Expected.values.names {
      let codec = try Expected.codec(try #require(NamesMode(rawValue: expected.mode)))
      let spelling = try codec.spelling(FileName(Expected.bytes(expected.name)))
      #expect(spelling.text == Expected.bytes(expected.text))
      let blob = try codec.stored(spelling, kind: .blob)
      #expect(blob.entry.bytes == Expected.bytes(expected.blob))
      #expect(blob.companion?.bytes == expected.blobCompanion.map { Expected.bytes($0) })
      let other = try codec.stored(spelling, kind: .other)
      #expect(other.entry.bytes == Expected.bytes(expected.other))
      #expect(other.companion?.bytes == expected.otherCompanion.map { Expected.bytes($0) })
      #expect(max(blob.entry.count, other.entry.count) <= 255)
    }
  }

  @Test func storedNamesReadBack() throws {
    for expected in Expected.values.names {
      let codec = try Expected.codec(try #require(NamesMode(rawValue: expected.mode)))
      let name = Expected.bytes(expected.name)
      let text = Expected.bytes(expected.text)
      #expect(try codec.name(ofText: text[...]) == name)
      for (kind, companion) in [
        (EntryKind.blob, expected.blobCompanion), (.other, expected.otherCompanion),
      ] {
        guard let companion else { continue }
        let file = FileName(Expected.bytes(companion))
        let hash = try #require(BlobName.hash(ofCompanion: file))
        #expect(try codec.name(ofCompanionText: text, hash: hash, kind: kind) == name)
        var altered = text
        altered[0] ^= 1
        #expect(try codec.name(ofCompanionText: altered, hash: hash, kind: kind) == nil)
      }
    }
  }

  @Test func aCompanionCantGiveAShortNameASecondEntry() throws {
    let codec = try Expected.codec(.encrypted)
    let spelling = try codec.spelling(FileName("short"))
    let hash = try codec.hash(spelling)
    #expect(
      try codec.name(ofCompanionText: spelling.text, hash: hash[...], kind: .blob) == nil)
  }

  @Test func atTheRootVaultJSONIsEscapedForDirectoriesOnly() throws {
    let codec = try Expected.codec(.plain, isRoot: true)
    let spelling = try codec.spelling(FileName("vault.json"))
    #expect(try codec.stored(spelling, kind: .other).companion != nil)
    #expect(try codec.stored(spelling, kind: .blob).entry == FileName("vault.json.securedData"))
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func namesOfMoreThan255BytesAreRefused(_ mode: NamesMode) throws {
    let codec = try Expected.codec(mode)
    _ = try codec.spelling(FileName([UInt8](repeating: 1, count: 255)))
    #expect(throws: StorageError.self) {
      try codec.spelling(FileName([UInt8](repeating: 1, count: 256)))
    }
  }

  @Test func namesOfAnotherDirectoryDontDecode() throws {
    let here = try Expected.codec(.encrypted)
    let there = try NameCodec(
      keys: Expected.vaultKeys, mode: .encrypted,
      directory: DirectoryID([UInt8](repeating: 9, count: 16)), isRoot: false)
    let text = try here.spelling(FileName("a")).text
    #expect(try here.name(ofText: text[...]) == Array("a".utf8))
    #expect(try there.name(ofText: text[...]) == nil)
  }

  @Test func threadsShareADirectorysCipher() throws {
    let codec = try Expected.codec(.encrypted)
    let names = (0..<200).map { FileName("IMG_\($0).JPG") }
    let texts = try names.map { try codec.spelling($0).text }
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for (name, text) in zip(names, texts) {
        let isSame = (try? codec.spelling(name).text) == text
        let readsBack = (try? codec.name(ofText: text[...])) == name.bytes
        #expect(isSame && readsBack)
      }
    }
  }

  @Test func everyBase64URLTextStandsForItsOwnBytesOnly() {
    for count in 0..<40 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 37 + count) }
      let text = Base64URL.encode(bytes)
      #expect(Base64URL.decode(text[...]) == bytes)
      #expect(Base64URL.encodedCount(count) == text.count)
    }
    #expect(Base64URL.decode(Array("AA".utf8)[...]) == [0])
    #expect(Base64URL.decode(Array("AB".utf8)[...]) == nil)
    #expect(Base64URL.decode(Array("AAB".utf8)[...]) == nil)
    #expect(Base64URL.decode(Array("A".utf8)[...]) == nil)
    #expect(Base64URL.decode(Array("A+".utf8)[...]) == nil)
    #expect(Base64URL.decode(Array("AA==".utf8)[...]) == nil)
  }

  @Test func temporaryNamesDifferAndAreKnown() throws {
    let first = try BlobName.temporary()
    #expect(first != (try BlobName.temporary()))
    #expect(first.count == ".photovault-XXXXXX.tmp".utf8.count)
    #expect(BlobName.isTemporary(first))
    #expect(!BlobName.isTemporary(FileName(".photovault-")))
  }

  @Test func storedNamesOfOthersNeverTrap() throws {
    var random = SystemRandomNumberGenerator()
    let pieces = [
      ".securedData", ".long", ".long.name", "A", "_", "-", " (conflicted copy)", ".", "~", "ä",
      String(repeating: "A", count: 43), ".photovault-", ".tmp", "directory.id", "vault.json",
    ]
    let regular = UInt8(8)
    let directory = UInt8(4)
    for _ in 0..<5000 {
      let count = Int.random(in: 1...5, using: &random)
      var name = (0..<count).flatMap { _ in
        Array((pieces.randomElement(using: &random) ?? "").utf8)
      }
      if Bool.random(using: &random) {
        name.insert(UInt8.random(in: 1...255, using: &random), at: name.count / 2)
      }
      for type in [regular, directory] {
        for mode in [NamesMode.encrypted, .plain] {
          let entry = RawEntry(name: FileName(Array(name.prefix(255))), type: type, inode: 1)
          guard let form = StoredForm(entry, mode: mode) else { continue }
          _ = try Expected.codec(mode).name(ofText: form.stem)
          _ = IrregularName.shown(Array(name.prefix(200)), rest: form.rest, number: 2)
        }
      }
    }
  }
}
