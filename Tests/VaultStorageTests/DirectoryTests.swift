import Foundation
import Testing

@testable import Platform
@testable import VaultStorage

@Suite struct DirectoryTests {
  private static let long = FileName([UInt8](repeating: UInt8(ascii: "d"), count: 255))

  private func expectSystem(
    _ expected: Errno, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Void
  ) throws {
    do {
      try body()
      Issue.record("no error", sourceLocation: sourceLocation)
    } catch StorageError.system(let error) {
      #expect(error == expected, sourceLocation: sourceLocation)
    }
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func aDirectoryIsMadeWithItsMode(_ names: NamesMode) throws {
    try TestVault.with(names) { vault in
      let root = try vault.open().root
      let before = try vault.stored()
      let stored = try root.makeDirectory(
        FileName("d"), mode: 0o1751, owner: (geteuid(), getegid()))
      let found = try #require(try root.find(FileName("d")))
      #expect(found.stored == stored)
      #expect(found.status.st_mode == S_IFDIR | 0o1751)
      #expect(
        try vault.stored(stored.entry.text) == (names == .plain ? [] : ["directory.id"]))
      let child = try root.open(child: stored)
      try child.makeBlob(FileName("inside"))
      try child.synchronize()
      let again = try root.open(child: stored)
      #expect(again.id == child.id)
      #expect(try again.shownNames().map(\.text) == ["inside"])
      try expectSystem(.directoryNotEmpty) { try root.removeDirectory(stored) }
      #expect(try again.shownNames().map(\.text) == ["inside"])
      try vault.remove(stored.entry.text + "/" + again.list()[0].stored.entry.text)
      try root.removeDirectory(stored)
      #expect(try vault.stored() == before)
      #expect(try child.list().isEmpty)
    }
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func aNameIsNotGivenTwice(_ names: NamesMode) throws {
    try TestVault.with(names) { vault in
      let root = try vault.open().root
      try root.makeBlob(FileName("blob"))
      _ = try root.makeDirectory(FileName("directory"), mode: 0o755, owner: nil)
      let before = try vault.stored()
      for name in ["blob", "directory"] {
        try expectSystem(.exists) {
          _ = try root.makeDirectory(FileName(name), mode: 0o755, owner: nil)
        }
      }
      #expect(try vault.stored() == before)
    }
  }

  @Test func aHiddenFileOfAPlainVaultIsNotTouched() throws {
    try TestVault.with(.plain) { vault in
      let root = try vault.open().root
      try vault.write("desktop.ini", "x")
      try expectSystem(.exists) {
        _ = try root.makeDirectory(FileName("desktop.ini"), mode: 0o755, owner: nil)
      }
      #expect(try vault.stored() == ["desktop.ini", "vault.json"])
    }
  }

  @Test func longNamesHaveACompanionThatGoesWithThem() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeDirectory(Self.long, mode: 0o755, owner: nil)
      #expect(try vault.stored().contains(try #require(stored.companion).text))
      #expect(try root.shownNames() == [Self.long])
      try root.removeDirectory(stored)
      #expect(try vault.stored() == ["directory.id", "vault.json"])
    }
  }

  @Test func aCompanionStaysWhileTheOtherFormIsThere() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let blob = try root.makeBlob(Self.long)
      root.removeCompanion(blob)
      #expect(try root.shownNames() == [Self.long])
      root.removeCompanion(try root.storedName(Self.long, kind: .other))
      #expect(try root.shownNames() == [Self.long])
    }
  }

  @Test func aFileThatDoesntShowKeepsItsDirectory() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      try vault.write(stored.entry.text + "/desktop.ini")
      try expectSystem(.directoryNotEmpty) { try root.removeDirectory(stored) }
      #expect(try vault.stored(stored.entry.text) == ["desktop.ini", "directory.id"])
      #expect(try root.shownNames().map(\.text) == ["d"])
    }
  }

  @Test func leftoversDontKeepADirectory() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      let orphan = String(repeating: "A", count: 43) + ".long.name"
      try vault.write("\(stored.entry.text)/\(orphan)")
      try vault.write(stored.entry.text + "/.photovault-abcdef.tmp")
      try vault.makeDirectory(stored.entry.text + "/.photovault-ABCDEF.tmp")
      try vault.write(stored.entry.text + "/.photovault-ABCDEF.tmp/directory.id")
      try root.removeDirectory(stored)
      #expect(try vault.stored() == ["directory.id", "vault.json"])
    }
  }

  @Test func linksAreNotFollowed() throws {
    try TestVault.with(.plain) { vault in
      try vault.makeDirectory("d")
      try FileManager.default.createSymbolicLink(
        atPath: vault.path + "/link", withDestinationPath: "d")
      let root = try vault.open().root
      let link = try #require(try root.find(FileName("link")))
      #expect(link.kind == .other)
      #expect(link.status.st_mode & S_IFMT == S_IFLNK)
      #expect(throws: StorageError.self) { try root.open(child: link.stored) }
      #expect(throws: StorageError.self) { try root.removeDirectory(link.stored) }
      #expect(try root.shownNames().map(\.text) == ["d", "link"])
    }
  }

  @Test func aDirectoryWithoutItsIDIsDamagedUnlessItIsEmpty() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      let id = stored.entry.text + "/directory.id"
      let child = try root.open(child: stored)
      for damage in [[], [1], [UInt8](repeating: 1, count: 17)] {
        try vault.write(id, damage)
        let healed = try root.open(child: stored)
        #expect(healed.id != child.id)
        #expect(vault.contents(id) == healed.id.bytes)
      }
      try vault.write(id, child.id.bytes)
      try child.makeBlob(FileName("a"))
      try vault.remove(id)
      for damage in [nil, [], [UInt8](repeating: 1, count: 15)] {
        if let damage { try vault.write(id, damage) }
        do {
          _ = try root.open(child: stored)
          Issue.record("opened without an id")
        } catch StorageError.damagedDirectory {}
      }
      try vault.remove(id)
      #expect(mkfifo(vault.path + "/" + id, 0o600) == 0)
      do {
        _ = try root.open(child: stored)
        Issue.record("opened with a fifo for an id")
      } catch StorageError.damagedDirectory {}
    }
  }

  @Test func aSetGroupIDBitIsInherited() throws {
    try TestVault.with(.plain) { vault in
      let root = try vault.open().root
      #expect(fchmod(root.fd.rawValue, 0o2700) == 0)
      let status = try Syscalls.status(root.fd.rawValue)
      try #require(status.st_mode & S_ISGID != 0)
      _ = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      #expect(try root.find(FileName("d"))?.status.st_mode == S_IFDIR | 0o2755)
    }
  }
}
