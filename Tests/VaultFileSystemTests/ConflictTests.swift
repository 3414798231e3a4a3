import Foundation
import Glibc
import Platform
import Testing
import VaultFileSystem
import VaultStorage

/// Another program changes the vault's directory while files are open, as those do that sync.
@Suite struct ConflictTests {
  private static let mine = pattern(90_001, seed: 2)
  private static let old = pattern(200_000, seed: 3)
  private static let theirs = pattern(50_000, seed: 4)

  /// `photo.jpg`, and beside the vault the stored form of another version of it.
  private func prepared() throws -> (Folder, replacement: String) {
    let folder = try Folder(names: .plain)
    try folder.store(Self.theirs, as: "photo.jpg")
    let replacement = "\(folder.directory)/.syncthing.photo.jpg.securedData.tmp"
    try FileManager.default.copyItem(atPath: stored(folder), toPath: replacement)
    // With its seal, as `rsync -X` brings it.
    let seal = FileName("user.photovault.place")
    let source = try Syscalls.open(FileName(stored(folder)), flags: O_RDONLY)
    let target = try Syscalls.open(FileName(replacement), flags: O_RDONLY)
    try Syscalls.setExtendedAttribute(
      target.rawValue, seal, try Syscalls.extendedAttribute(source.rawValue, seal))
    try folder.store(Self.old, as: "photo.jpg")
    try folder.remount()
    return (folder, replacement)
  }

  private func stored(_ folder: Folder, _ name: String = "photo.jpg") -> String {
    "\(folder.directory)/\(name).securedData"
  }

  private func conflicted(_ folder: Folder) throws -> [String] {
    try folder.names().filter { $0.hasPrefix("photo (conflicted copy ") && $0.hasSuffix(").jpg") }
  }

  private func expectBoth(_ folder: Folder, _ mine: [UInt8]) throws {
    for _ in 0..<2 {
      let copies = try conflicted(folder)
      #expect(copies.count == 1)
      #expect(try folder.contents("photo.jpg") == mine)
      #expect(try copies.map { try folder.contents($0) } == [Self.theirs])
      #expect(try folder.names().count == 2)
      try folder.remount()
    }
    #expect(try folder.check().findings.isEmpty)
  }

  @Test("a version that came during a change is kept beside it", arguments: [true, false])
  func bothAreKept(isLookedUp: Bool) throws {
    let (folder, replacement) = try prepared()
    let handle = try folder.open("photo.jpg", flags: O_RDWR)
    try folder.write(handle, Array(Self.mine[..<10]), at: 100_000)
    #expect(rename(replacement, stored(folder)) == 0)
    if isLookedUp { #expect(try folder.contents("photo.jpg") == Self.theirs) }
    try folder.write(handle, Array(Self.mine[10..<20]), at: 100_010)
    try folder.close(handle)
    var edited = Self.old
    edited.replaceSubrange(100_000..<100_020, with: Self.mine[..<20])
    try expectBoth(folder, edited)
  }

  @Test func aWholeNewVersionKeepsTheOtherToo() throws {
    let (folder, replacement) = try prepared()
    let handle = try folder.open("photo.jpg", flags: O_WRONLY | O_TRUNC)
    try folder.write(handle, Self.mine)
    #expect(rename(replacement, stored(folder)) == 0)
    try folder.close(handle)
    try expectBoth(folder, Self.mine)
  }

  @Test func aNewFileKeepsOneThatCameUnderItsName() throws {
    let (folder, replacement) = try prepared()
    try folder.fileSystem.unlink(FileName("photo.jpg"), in: 1)
    let handle = try folder.create("photo.jpg")
    try folder.write(handle, Self.mine)
    #expect(rename(replacement, stored(folder)) == 0)
    try folder.close(handle)
    try expectBoth(folder, Self.mine)
  }

  @Test func aNewFileThatTakesAnothersNameKeepsWhatCameThere() throws {
    let (folder, replacement) = try prepared()
    let handle = try folder.create("new.jpg")
    try folder.write(handle, Self.mine)
    try folder.fileSystem.rename(
      FileName("new.jpg"), in: 1, to: FileName("photo.jpg"), in: 1, flags: [])
    #expect(rename(replacement, stored(folder)) == 0)
    try folder.close(handle)
    try expectBoth(folder, Self.mine)
  }

  @Test func aCopyOfTheSameVersionIsNoConflict() throws {
    let (folder, replacement) = try prepared()
    try FileManager.default.removeItem(atPath: replacement)
    let handle = try folder.open("photo.jpg", flags: O_RDWR)
    try FileManager.default.copyItem(atPath: stored(folder), toPath: replacement)
    #expect(rename(replacement, stored(folder)) == 0)
    try folder.write(handle, Self.mine)
    try folder.fileSystem.flush(handle)
    try folder.write(handle, Self.mine, at: 10)
    try folder.close(handle)
    #expect(try folder.names() == ["photo.jpg"])
  }

  @Test func otherNamesOfTheSameFileFollow() throws {
    let (folder, replacement) = try prepared()
    _ = try folder.fileSystem.link(folder.node("photo.jpg"), as: FileName("second.jpg"), in: 1)
    let handle = try folder.open("second.jpg", flags: O_WRONLY | O_TRUNC)
    try folder.write(handle, Self.mine)
    #expect(rename(replacement, stored(folder)) == 0)
    try folder.close(handle)
    #expect(try conflicted(folder).map { try folder.contents($0) } == [Self.theirs])
    #expect(try folder.contents("photo.jpg") == Self.mine)
    #expect(try folder.contents("second.jpg") == Self.mine)
  }

  @Test func whoHoldsAVersionReadsItToItsEnd() throws {
    let (folder, replacement) = try prepared()
    let node = try folder.node("photo.jpg")
    let handle = try folder.fileSystem.open(node, flags: O_RDONLY).handle
    #expect(rename(replacement, stored(folder)) == 0)
    #expect(try folder.contents("photo.jpg") == Self.theirs)
    #expect(try folder.fileSystem.attributes(node).st_size == Self.old.count)
    #expect(try folder.read(handle, 300_000) == Self.old)
    #expect(try folder.node("photo.jpg") != node)
    try FileManager.default.removeItem(atPath: stored(folder))
    #expect(try folder.read(handle, 300_000) == Self.old)
    try folder.close(handle)
    #expect(try folder.names().isEmpty)
  }

  @Test func aFileThatWasRemovedBelowIsStoredAgain() throws {
    let (folder, _) = try prepared()
    let handle = try folder.open("photo.jpg", flags: O_RDWR)
    try FileManager.default.removeItem(atPath: stored(folder))
    try folder.write(handle, Self.mine)
    try folder.close(handle)
    var edited = Self.old
    edited.replaceSubrange(..<Self.mine.count, with: Self.mine)
    #expect(try folder.contents("photo.jpg") == edited)
    #expect(try folder.names() == ["photo.jpg"])
  }

  @Test func nothingIsMadeInADirectoryThatWasRemovedBelow() throws {
    let folder = try Folder(names: .plain)
    let album = try folder.fileSystem.makeDirectory(
      FileName("album"), in: 1, mode: 0o755, caller: Folder.me
    ).nodeID
    let handle = try folder.fileSystem.openDirectory(album).handle
    try FileManager.default.removeItem(atPath: "\(folder.directory)/album")
    let error = #expect(throws: FileSystemError.self) {
      _ = try folder.fileSystem.create(
        FileName("new"), in: album, mode: 0o644, flags: O_WRONLY | O_CREAT, caller: Folder.me)
    }
    #expect(error?.errno == .noSuchEntry)
    folder.fileSystem.releaseDirectory(handle)
  }
}
