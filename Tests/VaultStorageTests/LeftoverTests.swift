import Foundation
import Testing

@testable import Platform
@testable import VaultStorage

@Suite struct LeftoverTests {
  private static let long = FileName([UInt8](repeating: UInt8(ascii: "n"), count: 200))

  @Test func leftoversGoWhenTheirDirectoryIsFirstOpened() throws {
    try TestVault.with(.encrypted) { vault in
      let stored = try vault.open().root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      let directory = stored.entry.text
      try vault.write(".photovault-aaaaaa.tmp", "half a blob")
      try vault.makeDirectory(".photovault-bbbbbb.tmp")
      try vault.makeDirectory(".photovault-cccccc.tmp")
      try vault.write(".photovault-cccccc.tmp/directory.id", "half")
      try FileManager.default.createSymbolicLink(
        atPath: vault.path + "/.photovault-dddddd.tmp", withDestinationPath: "/etc")
      try vault.write(directory + "/.photovault-eeeeee.tmp")
      let root = try vault.open().root
      #expect(try vault.stored() == [directory, "directory.id", "vault.json"].sorted())
      #expect(try vault.stored(directory).count == 2)
      let child = try root.open(child: stored)
      #expect(try vault.stored(directory) == ["directory.id"])
      #expect(try child.list().isEmpty)
    }
  }

  @Test func whatIsBeingWrittenStaysWhenItsDirectoryIsOpenedAgain() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      let child = try root.open(child: stored)
      let temporary = try child.temporaryName()
      try SmallFile.write([], as: temporary, in: child.fd.rawValue, durably: false)
      _ = try root.open(child: stored)
      #expect(try vault.stored(stored.entry.text).contains(temporary.text))
    }
  }

  @Test func aDirectoryWhoseRemovalWasInterruptedComesBackWithItsContents() throws {
    try TestVault.with(.encrypted) { vault in
      do {
        let root = try vault.open().root
        let stored = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
        try root.open(child: stored).makeBlob(FileName("photo"))
        // As if killed between the two renames of a removal that another program's file stopped.
        try Syscalls.rename(
          stored.entry, in: root.fd.rawValue, to: FileName(".photovault-abCD12.tmp"),
          in: root.fd.rawValue)
      }
      let root = try vault.open().root
      #expect(try root.shownNames().map(\.text) == ["recovered directory abCD12"])
      let found = try #require(try root.find(FileName("recovered directory abCD12")))
      #expect(try root.open(child: found.stored).shownNames().map(\.text) == ["photo"])
    }
  }

  @Test func aLeftoverDirectoryWithForeignContentsIsLeftAlone() throws {
    try TestVault.with(.encrypted) { vault in
      try vault.makeDirectory(".photovault-abcdef.tmp")
      try vault.write(".photovault-abcdef.tmp/photo.jpg", "x")
      let root = try vault.open().root
      #expect(vault.contents(".photovault-abcdef.tmp/photo.jpg") == Array("x".utf8))
      #expect(try root.list().isEmpty)
    }
  }

  private struct Case: Sendable, CustomTestStringConvertible {
    let names: NamesMode
    let name: FileName
    let kind: Faults.Kind

    var testDescription: String { "\(names), \(name.count) bytes, \(kind)" }

    static let all = [NamesMode.encrypted, .plain].flatMap { names in
      [FileName("d"), LeftoverTests.long].flatMap { name in
        Faults.Kind.allCases.map { Case(names: names, name: name, kind: $0) }
      }
    }
  }

  /// Opens the vault anew and expects `name` to be a whole directory or not there, and nothing else
  /// on the disk; leaves the vault empty.
  private func settle(_ vault: TestVault, _ name: FileName, _ empty: [String]) throws -> Bool {
    let root = try vault.open().root
    let found = try root.find(name)
    #expect(try root.shownNames() == (found == nil ? [] : [name]))
    if let found {
      #expect(found.status.st_mode & 0o7777 == 0o755)
      #expect(try root.open(child: found.stored).list().isEmpty)
      try root.removeDirectory(found.stored)
    }
    // The name file of a long name may stay, it shows nowhere.
    for orphan in try vault.stored() where orphan.hasSuffix(".long.name") {
      try vault.remove(orphan)
    }
    #expect(try vault.stored() == empty)
    return found != nil
  }

  @Test(arguments: Case.all)
  private func makingADirectoryIsWholeOrNothing(_ test: Case) throws {
    try TestVault.with(test.names) { vault in
      let empty = try vault.stored()
      var number = 0
      var wasReached = true
      while wasReached {
        var failure: (any Error)?
        do {
          let root = try vault.open().root
          wasReached = Faults.failing(number, with: .noSpace, kind: test.kind) {
            do { _ = try root.makeDirectory(test.name, mode: 0o755, owner: nil) } catch {
              failure = error
            }
          }
          if test.kind == .failure {
            #expect(try root.shownNames() == (failure == nil ? [test.name] : []))
          }
        }
        let isThere = try settle(vault, test.name, empty)
        if failure == nil || test.kind == .failure { #expect(isThere == (failure == nil)) }
        number += 1
      }
      #expect(number > 5)
    }
  }

  @Test(arguments: Case.all)
  private func removingADirectoryIsWholeOrNothing(_ test: Case) throws {
    try TestVault.with(test.names) { vault in
      let empty = try vault.stored()
      var number = 0
      var wasReached = true
      while wasReached {
        var failure: (any Error)?
        do {
          let root = try vault.open().root
          let stored = try root.makeDirectory(test.name, mode: 0o755, owner: nil)
          wasReached = Faults.failing(number, kind: test.kind) {
            do { try root.removeDirectory(stored) } catch { failure = error }
          }
          if test.kind == .failure {
            #expect(try root.shownNames() == (failure == nil ? [] : [test.name]))
          }
        }
        let isThere = try settle(vault, test.name, empty)
        if failure == nil || test.kind == .failure { #expect(isThere == (failure != nil)) }
        number += 1
      }
      #expect(number > 5)
    }
  }

  /// A full directory stays whatever fails, also when its contents came during the removal.
  @Test(arguments: Faults.Kind.allCases)
  func aFullDirectoryIsNeverRemoved(_ kind: Faults.Kind) throws {
    try TestVault.with(.encrypted) { vault in
      var number = 0
      var wasReached = true
      let photo = FileName("photo")
      let stored = try vault.open().root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      try vault.open().root.open(child: stored).makeBlob(photo)
      while wasReached {
        do {
          let root = try vault.open().root
          wasReached = Faults.failing(number, kind: kind) { try? root.removeDirectory(stored) }
        }
        let root = try vault.open().root
        #expect(try root.open(child: stored).shownNames() == [photo])
        number += 1
      }
    }
  }

  @Test func aDirectoryIsSearchedOnceHoweverManyOpenIt() throws {
    try TestVault.with(.encrypted) { vault in
      let stored = try vault.open().root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
      let root = try vault.open().root
      // What one of the threads writes is never taken for a leftover by another.
      DispatchQueue.concurrentPerform(iterations: 16) { _ in
        do {
          let child = try root.open(child: stored)
          let temporary = try child.temporaryName()
          try SmallFile.write([], as: temporary, in: child.fd.rawValue, durably: false)
          _ = try root.open(child: stored)
          #expect(try child.exists(temporary))
        } catch { Issue.record(error) }
      }
      #expect(try vault.stored(stored.entry.text).count == 17)
    }
  }

  @Test(arguments: [Errno.noSpace, .inputOutput])
  func aCompanionIsWholeOrNothing(_ error: Errno) throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      let stored = try root.storedName(Self.long, kind: .blob)
      let companion = try #require(stored.companion)
      let text = try root.codec.spelling(Self.long).text
      var number = 0
      var wasReached = true
      while wasReached {
        var failure: (any Error)?
        wasReached = Faults.failing(number, with: error) {
          do { try root.prepareCompanion(stored, for: Self.long) } catch { failure = error }
        }
        let found = vault.contents(companion.text)
        #expect(found == text || (failure != nil && found == nil))
        root.removeCompanion(stored)
        #expect(try vault.stored() == ["directory.id", "vault.json"])
        number += 1
      }
      #expect(number > 4)
    }
  }
}
