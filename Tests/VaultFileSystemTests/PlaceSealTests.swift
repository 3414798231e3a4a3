import Glibc
import Platform
import Testing
import VaultFileSystem
import VaultStorage

/// What `check` says of a photo's place after everything that programs do with names.
@Suite struct PlaceSealTests {
  private static let sizes = [10, 400_000]

  /// Not one finding, and as many photos without a seal as said.
  private func expectSealed(_ folder: Folder, except unsealed: Int = 0) throws {
    let report = try folder.check()
    #expect(report.findings.map(\.reason) == [])
    #expect(report.counts.unsealed == unsealed)
  }

  private func rename(
    _ folder: Folder, _ old: String, _ new: String, in parent: NodeID = 1,
    flags: Syscalls.RenameFlags = []
  ) throws {
    try folder.fileSystem.rename(
      FileName(old), in: 1, to: FileName(new), in: parent, flags: flags)
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func renamesTakeItAlong(_ names: NamesMode) throws {
    let folder = try Folder(names: names)
    let album = try folder.fileSystem.makeDirectory(
      FileName("album"), in: 1, mode: 0o755, caller: Folder.me
    ).nodeID
    for size in Self.sizes { try folder.store(pattern(size), as: "photo-\(size)") }
    for size in Self.sizes {
      try rename(folder, "photo-\(size)", "other-\(size)")
      try rename(folder, "other-\(size)", String(repeating: "n", count: 250) + "\(size % 7)")
    }
    try expectSealed(folder)
    try folder.store(pattern(20), as: "new")
    try rename(folder, "new", "moved", in: album)
    try folder.store(pattern(30), as: "over")
    try rename(folder, "over", "moved", in: album)
    try folder.store(pattern(40), as: "one")
    try folder.store(pattern(50), as: "two")
    try rename(folder, "one", "two", flags: .exchange)
    try rename(folder, "album", "elsewhere")
    try expectSealed(folder)
  }

  @Test func aNewVersionHasOne() throws {
    let folder = try Folder()
    try folder.store(pattern(10), as: "photo")
    try folder.store(pattern(400_000), as: "photo")
    let handle = try folder.open("photo", flags: O_RDWR)
    try folder.write(handle, [1, 2, 3], at: 70_000)
    try folder.close(handle)
    // Renamed while it is written, and saved as many programs do it.
    let part = try folder.create("photo.part")
    try folder.write(part, pattern(20))
    try rename(folder, "photo.part", "photo")
    try folder.close(part)
    try expectSealed(folder)
  }

  @Test func aReadOnlyPhotoHasOne() throws {
    let folder = try Folder()
    let (entry, opened) = try folder.fileSystem.create(
      FileName("photo"), in: 1, mode: 0o444, flags: O_RDWR | O_CREAT, caller: Folder.me)
    try folder.write(opened.handle, pattern(10))
    try folder.close(opened.handle)
    try rename(folder, "photo", "renamed")
    try expectSealed(folder)
    #expect(try folder.fileSystem.attributes(entry.nodeID).st_mode & 0o777 == 0o444)
  }

  @Test func aFileOfSeveralNamesBelongsToNone() throws {
    let folder = try Folder()
    try folder.store(pattern(10), as: "one")
    _ = try folder.fileSystem.link(try folder.node("one"), as: FileName("two"), in: 1)
    try rename(folder, "two", "three")
    try expectSealed(folder)
    try folder.fileSystem.unlink(FileName("one"), in: 1)
    try expectSealed(folder, except: 1)
    // The next version belongs to the name that is left.
    let handle = try folder.open("three", flags: O_RDWR)
    try folder.write(handle, [7])
    try folder.close(handle)
    try expectSealed(folder)
  }

  /// A photo that was put somewhere else below the mount doesn't get away by a rename in it.
  @Test func aWrongOneStaysWrong() throws {
    let folder = try Folder()
    try folder.store(pattern(10), as: "photo")
    try folder.store(pattern(20), as: "other")
    let stored = try folder.stored()
    try Syscalls.rename(
      FileName("\(folder.directory)/\(stored[0])"), in: AT_FDCWD,
      to: FileName("\(folder.directory)/\(stored[1])"), in: AT_FDCWD)
    try folder.remount()
    let left = try #require(try folder.names().first)
    try rename(folder, left, "renamed")
    #expect(try folder.check().findings.map { $0.kind } == [.moved])
  }
}
