import Foundation
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

@Suite struct VaultTests {
  private func mode(_ path: String) throws -> Int {
    let attributes = try FileManager.default.attributesOfItem(atPath: path)
    return try #require(attributes[.posixPermissions] as? Int)
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func aCreatedVaultOpensWithItsKeyOnly(_ names: NamesMode) throws {
    try withTemporaryDirectory { parent in
      let path = parent + "/some/where/vault"
      let id = try Vault.create(at: path, names: names, password: secretBytes("key"))
      let vault = try Vault.open(at: path, password: secretBytes("key"), readOnly: false)
      #expect(vault.id == id)
      #expect(vault.names == names)
      #expect(vault.path == path)
      #expect(!vault.isReadOnly)
      #expect(try vault.root.list().isEmpty)
      #expect(try Vault.superblock(at: path).id == id)
      #expect(try mode(path) == 0o700)
      #expect(try mode(parent + "/some") == 0o700)
      #expect(try mode(path + "/vault.json") == 0o600)
      do {
        _ = try Vault.open(at: path, password: secretBytes("kez"), readOnly: true)
        Issue.record("opened with a wrong key")
      } catch StorageError.wrongRecoveryKey {}
    }
  }

  @Test func everyVaultHasItsOwnIDAndSalts() throws {
    try withTemporaryDirectory { parent in
      for name in ["/a", "/b"] {
        _ = try Vault.create(at: parent + name, names: .encrypted, password: secretBytes("key"))
      }
      let first = try Vault.superblock(at: parent + "/a")
      let second = try Vault.superblock(at: parent + "/b")
      #expect(first.id != second.id)
      #expect(first.salts != second.salts)
    }
  }

  @Test func aVaultIsNotMadeOverAnother() throws {
    try TestVault.with(.plain) { vault in
      let before = vault.contents("vault.json")
      do {
        _ = try Vault.create(at: vault.path, names: .plain, password: secretBytes("key"))
        Issue.record("made twice")
      } catch StorageError.system(let error) { #expect(error == .exists) }
      #expect(vault.contents("vault.json") == before)
    }
  }

  @Test func anEncryptedVaultWantsAnEmptyDirectory() throws {
    try withTemporaryDirectory { path in
      let file = TestVault(path: path)
      try file.write("holiday.jpg")
      do {
        _ = try Vault.create(at: path, names: .encrypted, password: secretBytes("key"))
        Issue.record("made beside a photo")
      } catch StorageError.system(let error) { #expect(error == .directoryNotEmpty) }
      #expect(try file.stored() == ["holiday.jpg"])
      // What an interrupted create left is no obstacle.
      try file.remove("holiday.jpg")
      try file.write("directory.id", "half")
      try file.write(".photovault-abcdef.tmp")
      _ = try Vault.create(at: path, names: .encrypted, password: secretBytes("key"))
      _ = try Vault.open(at: path, password: secretBytes("key"), readOnly: false)
      #expect(try file.stored() == ["directory.id", "vault.json"])
    }
  }

  @Test func aPlainVaultTakesOverWhatIsThere() throws {
    try withTemporaryDirectory { path in
      let file = TestVault(path: path)
      try file.makeDirectory("album")
      for name in ["image-1.securedData", "album/image-2.securedData", "desktop.ini"] {
        try file.write(name, "x")
      }
      _ = try Vault.create(at: path, names: .plain, password: secretBytes("key"))
      let vault = try Vault.open(at: path, password: secretBytes("key"), readOnly: false)
      #expect(try vault.root.shownNames().map(\.text) == ["album", "image-1"])
      let album = try #require(try vault.root.find(FileName("album")))
      #expect(album.kind == .other)
      let inside = try vault.root.open(child: album.stored)
      #expect(try inside.shownNames().map(\.text) == ["image-2"])
      #expect(try vault.root.find(FileName("desktop.ini")) == nil)
      #expect(file.contents("desktop.ini") == Array("x".utf8))
    }
  }

  @Test func aVaultIsOpenForWritingOnce() throws {
    try TestVault.with(.encrypted) { vault in
      do {
        let first = try vault.open()
        do {
          _ = try vault.open()
          Issue.record("opened twice")
        } catch StorageError.alreadyOpen {}
        _ = try vault.open(readOnly: true)
        // Directories in use keep the lock when the vault itself is gone.
        let root = first.root
        _ = consume first
        do {
          _ = try vault.open()
          Issue.record("opened under an open directory")
        } catch StorageError.alreadyOpen {}
        _ = try root.list()
      }
      _ = try vault.open()
    }
  }

  @Test func alteredSuperblocksDontOpen() throws {
    try TestVault.with(.encrypted) { vault in
      let genuine = try #require(Expected.values.superblocks["encrypted"])
      try vault.write("vault.json", genuine.replacing("encrypted\"", with: "plain\""))
      do {
        _ = try vault.open()
        Issue.record("names were turned plain")
      } catch StorageError.wrongRecoveryKey {}
      try vault.write("vault.json", genuine.replacing("\"format\":1", with: "\"format\":7"))
      do {
        _ = try vault.open()
        Issue.record("format 7 was opened")
      } catch StorageError.unsupportedFormat(let format) { #expect(format == 7) }
    }
  }

  @Test func whatIsNoVaultSaysSo() throws {
    try withTemporaryDirectory { path in
      let directory = TestVault(path: path)
      func expectNoVault(_ path: String) throws {
        do {
          _ = try Vault.open(at: path, password: secretBytes("key"), readOnly: false)
          Issue.record("opened \(path)")
        } catch StorageError.notAVault {}
      }
      try expectNoVault(path)
      try expectNoVault(path + "/missing")
      try directory.write("file")
      try expectNoVault(path + "/file")
      try directory.makeDirectory("vault.json")
      try expectNoVault(path)
      try directory.remove("vault.json")
      try FileManager.default.createSymbolicLink(
        atPath: path + "/vault.json", withDestinationPath: "file")
      try expectNoVault(path)
      try directory.remove("vault.json")
      #expect(mkfifo(path + "/vault.json", 0o600) == 0)
      try expectNoVault(path)
      try directory.remove("vault.json")
      try directory.write("vault.json", String(repeating: " ", count: 100_000))
      try expectNoVault(path)
    }
  }

  @Test func aReadOnlyVaultChangesNothing() throws {
    try TestVault.with(.encrypted) { vault in
      try vault.write(".photovault-abcdef.tmp")
      let root = try vault.open(readOnly: true).root
      let name = FileName("a")
      #expect(throws: StorageError.self) {
        try root.makeDirectory(name, mode: 0o755, owner: nil)
      }
      let stored = try root.storedName(name, kind: .other)
      #expect(throws: StorageError.self) { try root.removeDirectory(stored) }
      let long = FileName([UInt8](repeating: 97, count: 255))
      let longStored = try root.storedName(long, kind: .blob)
      #expect(throws: StorageError.self) { try root.prepareCompanion(longStored, for: long) }
      root.removeCompanion(longStored)
      #expect(
        try vault.stored() == [".photovault-abcdef.tmp", "directory.id", "vault.json"])
    }
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func creatingIsWholeOrNothing(_ names: NamesMode) throws {
    try withTemporaryDirectory { parent in
      var number = 0
      var wasReached = true
      while wasReached {
        let path = parent + "/new/\(number)"
        var failure: (any Error)?
        wasReached = Faults.failing(number, with: .noSpace) {
          do {
            _ = try Vault.create(at: path, names: names, password: secretBytes("key"))
          } catch { failure = error }
        }
        if failure == nil {
          _ = try Vault.open(at: path, password: secretBytes("key"), readOnly: false)
        } else {
          // Nothing stands in the way of the next attempt.
          _ = try Vault.create(at: path, names: names, password: secretBytes("key"))
        }
        number += 1
      }
      #expect(number > 8)
    }
  }
}
