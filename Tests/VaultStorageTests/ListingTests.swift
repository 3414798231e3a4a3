import Foundation
import Testing

@testable import Platform
@testable import VaultStorage

@Suite struct ListingTests {
  private static let everyByte = FileName((1...255).filter { $0 != 0x2F }.map { UInt8($0) })
  private static let long = FileName([UInt8](repeating: UInt8(ascii: "x"), count: 255))

  @Test(arguments: [NamesMode.encrypted, .plain])
  func everyNameIsListedAndFound(_ names: NamesMode) throws {
    try TestVault.with(names) { vault in
      let root = try vault.open().root
      let blobs = [
        FileName("a"), FileName("IMG_1.jpg"), Self.everyByte, Self.long, FileName([0xFF]),
        FileName("a.securedData"), FileName(".hidden"), FileName("directory.id"),
        FileName("vault.json"), FileName(".photovault-abcdef.tmp"), FileName("b.long.name"),
        FileName(String(repeating: "A", count: 43) + ".long"),
      ]
      let directories = [
        FileName("d"), FileName("d.securedData"), FileName("e.long.name"),
        FileName([UInt8](repeating: UInt8(ascii: "y"), count: 255)),
        FileName(String(repeating: "B", count: 43) + ".long"),
        FileName(".photovault-ABCDEF.tmp"),
      ]
      for name in blobs { try root.makeBlob(name) }
      for name in directories {
        let stored = try root.makeDirectory(name, mode: 0o755, owner: nil)
        #expect(try root.storedName(name, kind: .other) == stored)
      }
      let listed = try root.list()
      #expect(Set(listed.map(\.name)) == Set(blobs + directories))
      #expect(listed.count == blobs.count + directories.count)
      for entry in listed {
        let found = try #require(try root.find(entry.name))
        #expect(found.stored == entry.stored)
        #expect(found.kind == entry.kind)
        #expect(found.status.st_ino == entry.inode)
        #expect(entry.kind == (blobs.contains(entry.name) ? .blob : .other))
        #expect(entry.type == (entry.kind == .blob ? 8 : 4))
      }
      #expect(try root.find(FileName("missing")) == nil)
      #expect(try root.find(FileName([UInt8](repeating: 1, count: 255))) == nil)
    }
  }

  @Test func encryptedNamesDontShowOnTheDisk() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      try root.makeBlob(FileName("marker"))
      try root.makeBlob(FileName("marker" + String(repeating: "m", count: 240)))
      _ = try root.makeDirectory(FileName("marker2"), mode: 0o755, owner: nil)
      for name in try vault.stored() {
        #expect(!name.contains("marker"))
        let contents = String(decoding: vault.contents(name) ?? [], as: UTF8.self)
        #expect(!contents.contains("marker"))
      }
    }
  }

  @Test func aNameIsSpeltDifferentlyInEveryDirectory() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let name = FileName("a")
      let first = try root.open(
        child: root.makeDirectory(FileName("1"), mode: 0o700, owner: nil))
      let second = try root.open(
        child: root.makeDirectory(FileName("2"), mode: 0o700, owner: nil))
      #expect(try first.storedName(name, kind: .blob) != second.storedName(name, kind: .blob))
      #expect(first.id != second.id)
    }
  }

  @Test func conflictCopiesShowUnderTheirName() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let photo = try root.makeBlob(FileName("IMG_1.jpg")).entry.text
      let directory = try root.makeDirectory(FileName("album"), mode: 0o755, owner: nil)
      let stem = photo.dropLast(".securedData".count)
      let copies = [
        "IMG_1.jpg (conflicted copy 2024-01-02)":
          "\(stem) (conflicted copy 2024-01-02).securedData",
        "IMG_1.jpg.sync-conflict-20240102-ABCDEF":
          "\(stem).sync-conflict-20240102-ABCDEF.securedData",
        "IMG_1.jpg~1": "\(stem)~1.securedData",
        "IMG_1.jpg (1)": "\(stem) (1).securedData",
      ]
      for stored in copies.values { try vault.write(stored, "copy") }
      try vault.makeDirectory("\(directory.entry.text) (conflicted copy)")
      for junk in [
        "\(stem).bak", "desktop.ini", "AAAA.securedData", "\(stem)x.securedData",
        "directory (conflicted copy).id",
      ] { try vault.write(junk) }
      try vault.makeDirectory(".stfolder")

      // Found without a listing before, too.
      let again = try root.open(child: StoredName(entry: FileName("."), companion: nil))
      let early = try #require(try again.find(FileName("IMG_1.jpg (1)")))
      #expect(early.stored.entry.text == copies["IMG_1.jpg (1)"])

      let survey = try root.survey()
      #expect(
        Set(survey.listed.map(\.name.text))
          == Set(copies.keys).union(["IMG_1.jpg", "album", "album (conflicted copy)"]))
      #expect(
        Set(survey.unreadable.map(\.text))
          == ["AAAA.securedData", "\(stem)x.securedData", ".stfolder"])
      for (shown, stored) in copies {
        let found = try #require(try root.find(FileName(shown)))
        #expect(found.stored.entry.text == stored)
        #expect(found.kind == .blob)
        #expect(found.status.st_size == 4)
      }
      try vault.remove(try #require(copies["IMG_1.jpg~1"]))
      #expect(try root.find(FileName("IMG_1.jpg~1")) == nil)
    }
  }

  @Test func aConflictCopyTakesNobodysName() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stem = try root.makeBlob(FileName("a")).entry.text.dropLast(".securedData".count)
      try root.makeBlob(FileName("a (copy)"))
      try vault.write("\(stem) (copy).securedData", "other")
      #expect(try root.shownNames().map(\.text) == ["a", "a (copy)", "a (copy)~2"])
      #expect(try root.find(FileName("a (copy)"))?.status.st_size == 0)
      #expect(try root.find(FileName("a (copy)~2"))?.status.st_size == 5)
    }
  }

  @Test func conflictCopiesOfLongNamesKeepTheCompanion() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeBlob(Self.long)
      let stem = stored.entry.text.dropLast(".securedData".count)
      let copy = "\(stem) (conflicted copy).securedData"
      try vault.write(copy, "copy")
      let shown = String(repeating: "x", count: 255 - 18) + " (conflicted copy)"
      #expect(Set(try root.shownNames().map(\.text)) == [Self.long.text, shown])
      try vault.remove(stored.entry.text)
      root.removeCompanion(stored)
      let found = try #require(try root.find(FileName(shown)))
      #expect(found.stored.companion == stored.companion)
      // Writing the copy anew leaves the name file as it is.
      try root.prepareCompanion(found.stored, for: FileName(shown))
      #expect(try root.shownNames().map(\.text) == [shown])
      try vault.remove(copy)
      root.removeCompanion(found.stored)
      #expect(try vault.stored() == ["directory.id", "vault.json"])
    }
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func aBlobAndADirectoryOfOneNameBothShow(_ names: NamesMode) throws {
    try TestVault.with(names) { vault in
      let root = try vault.open().root
      let name = FileName("a")
      try root.makeBlob(name)
      let directory = try root.storedName(name, kind: .other)
      try vault.makeDirectory(directory.entry.text)
      #expect(try root.shownNames().map(\.text) == ["a", "a~2"])
      #expect(try root.find(name)?.kind == .blob)
      #expect(try root.find(FileName("a~2"))?.stored == directory)
    }
  }

  @Test func foreignNamesInAPlainVaultShowAsTheyAre() throws {
    try TestVault.with(.plain) { vault in
      let lookAlike = String(repeating: "A", count: 43) + ".long"
      try vault.write("\(lookAlike).securedData")
      try vault.makeDirectory("old.securedData")
      try vault.write("..securedData")
      try vault.write(".securedData")
      let root = try vault.open().root
      #expect(try root.find(FileName(lookAlike))?.kind == .blob)
      #expect(try root.shownNames().map(\.text) == [lookAlike, "old.securedData"])
      #expect(try root.find(FileName("old.securedData"))?.stored.entry.text == "old.securedData")
      #expect(try root.find(FileName("old")) == nil)
    }
  }

  @Test func aLongNameWithoutItsCompanionIsUnreadable() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeBlob(Self.long)
      let companion = try #require(stored.companion)
      let genuine = try #require(vault.contents(companion.text))
      try vault.write(companion.text, Array(genuine.reversed()))
      #expect(try root.survey().unreadable == [stored.entry])
      try vault.remove(companion.text)
      #expect(try root.survey().unreadable == [stored.entry])
      // It is still found by its name, and the next write heals it.
      #expect(try root.find(Self.long) != nil)
      try root.prepareCompanion(stored, for: Self.long)
      #expect(vault.contents(companion.text) == genuine)
      #expect(try root.shownNames() == [Self.long])
    }
  }

  @Test func manyEntriesAreAllListed() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let names = Set((0..<3000).map { FileName("IMG_\($0).JPG") })
      for name in names { try root.makeBlob(name) }
      #expect(Set(try root.list().map(\.name)) == names)
    }
  }
}
