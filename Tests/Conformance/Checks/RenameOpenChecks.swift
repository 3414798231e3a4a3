import Glibc
import Platform

/// renameat2(2) of files that are open, and of new ones that aren't committed yet.
enum RenameOpenChecks {
  static let all: [Check] = [
    Check("anOpenTargetKeepsItsOldContent", anOpenTargetKeepsItsOldContent),
    Check("anOpenSourceIsReadOnUnderItsNewName", anOpenSourceIsReadOnUnderItsNewName),
    Check("aFileBeingWrittenIsWrittenOnAfterRename", aFileBeingWrittenIsWrittenOnAfterRename),
    Check("aFileBeingEditedIsEditedOnAfterRename", aFileBeingEditedIsEditedOnAfterRename),
    Check("aNewFileRenamedBeforeCloseReplaces", aNewFileRenamedBeforeCloseReplaces),
    Check("closingAReplacedFileDoesNotBringItBack", closingAReplacedFileDoesNotBringItBack),
    Check("closingAReplacedNewFileDoesNotBringItBack", closingAReplacedNewFile),
    Check("closingAReplacedRewrittenFileDoesNotBringItBack", closingAReplacedRewrittenFile),
    Check("exchangeOfFilesBeingWritten", exchangeOfFilesBeingWritten),
    Check("exchangeOfANewFileAndADirectory", exchangeOfANewFileAndADirectory),
    Check("noReplaceSeesANewFile", noReplaceSeesANewFile),
    Check("openFilesFollowTheirDirectory", openFilesFollowTheirDirectory),
    Check("openFilesFollowTheirDirectoryAcross", openFilesFollowTheirDirectoryAcross),
    Check("aDirectoryWithANewFileIsNotEmpty", aDirectoryWithANewFileIsNotEmpty),
    Check("renameChainOfAnOpenFile", renameChainOfAnOpenFile),
    Check("renameAwayAndRecreateWhileOpen", renameAwayAndRecreateWhileOpen),
    Check("renameOverTheFileBeingWrittenTwice", renameOverTheFileBeingWrittenTwice),
    Check("attributesSetBeforeRenameBeforeCloseSurvive", attributesSetBeforeRenameBeforeClose),
    Check("openDirectoryHandleSurvivesRename", openDirectoryHandleSurvivesRename),
  ]

  static func anOpenTargetKeepsItsOldContent(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    try fs.make("new", "new")
    let handle = try fs.open("a")
    try fs.rename("new", "a")
    try fs.expectContents(handle, pattern(100_000))
    try expect(fs.stat(.handle(handle)).st_nlink, 0)
    try fs.expectContents("a", "new")
    try expect(fs.stat("a").st_ino != fs.stat(.handle(handle)).st_ino, "inodes are the same")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "new")
  }

  static func anOpenSourceIsReadOnUnderItsNewName(_ fs: Volume) throws {
    try fs.make("a", pattern(300_000))
    let handle = try fs.open("a")
    try expect(fs.read(handle, 100), pattern(100))
    try fs.rename("a", "b")
    try fs.expectContents(handle, pattern(300_000))
    try fs.make("a", "another")
    try fs.expectContents(handle, pattern(300_000))
    try expect(fs.stat(.handle(handle)).st_ino, fs.stat("b").st_ino)
    try fs.close(handle)
  }

  static func aFileBeingWrittenIsWrittenOnAfterRename(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(150_000))
    try fs.rename("a", "b")
    try fs.expectMissing("a")
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", pattern(150_000))
    try fs.write(handle, "more", at: 150_000)
    try fs.expectContents("b", pattern(150_000) + Array("more".utf8))
    try fs.close(handle)
    try fs.expectNames("", ["b"])
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", pattern(150_000) + Array("more".utf8))
  }

  static func aFileBeingEditedIsEditedOnAfterRename(_ fs: Volume) throws {
    try fs.make("a", pattern(150_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.write(handle, "edited", at: 1000)
    try fs.rename("a", "b")
    try fs.write(handle, "again", at: 2000)
    var expected = pattern(150_000)
    expected.replaceSubrange(1000..<1006, with: Array("edited".utf8))
    expected.replaceSubrange(2000..<2005, with: Array("again".utf8))
    try fs.expectContents("b", expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", expected)
  }

  static func aNewFileRenamedBeforeCloseReplaces(_ fs: Volume) throws {
    try fs.make("a", "old")
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    try fs.write(handle, "new")
    try fs.rename("new", "a")
    try fs.expectContents("a", "new")
    try fs.expectNames("", ["a"])
    try fs.write(handle, "er", at: 3)
    try fs.close(handle)
    try fs.expectContents("a", "newer")
    try fs.remount()
    try fs.expectNames("", ["a"])
    try fs.expectContents("a", "newer")
  }

  static func closingAReplacedFileDoesNotBringItBack(_ fs: Volume) throws {
    try fs.make("a", pattern(1000))
    let handle = try fs.open("a", O_RDWR)
    try fs.write(handle, "edited")
    try fs.make("new", "new")
    try fs.rename("new", "a")
    try fs.write(handle, "more", at: 1000)
    try expect(fs.read(handle, 6), Array("edited".utf8))
    try fs.fsync(handle)
    try fs.expectContents("a", "new")
    try fs.close(handle)
    try fs.expectContents("a", "new")
    try fs.remount()
    try fs.expectNames("", ["a"])
    try fs.expectContents("a", "new")
  }

  static func closingAReplacedNewFile(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.make("new", "new")
    try fs.rename("new", "a")
    try fs.expectContents(handle, pattern(100_000))
    try fs.write(handle, "more", at: 100_000)
    try fs.close(handle)
    try fs.expectNames("", ["a"])
    try fs.remount()
    try fs.expectNames("", ["a"])
    try fs.expectContents("a", "new")
  }

  static func closingAReplacedRewrittenFile(_ fs: Volume) throws {
    try fs.make("a", "old")
    let handle = try fs.open("a", O_RDWR | O_TRUNC)
    try fs.write(handle, "rewritten")
    try fs.make("new", "new")
    try fs.rename("new", "a")
    try fs.closeDuplicate(handle)
    try fs.write(handle, "!", at: 9)
    try fs.expectContents(handle, "rewritten!")
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("", ["a"])
    try fs.expectContents("a", "new")
  }

  static func exchangeOfFilesBeingWritten(_ fs: Volume) throws {
    try fs.make("b", "old b")
    let first = try fs.open("a", O_CREAT | O_RDWR)
    let second = try fs.open("b", O_RDWR)
    try fs.write(first, "first")
    try fs.write(second, "second")
    try fs.rename("a", "b", .exchange)
    try fs.expectContents("b", "first")
    try fs.expectContents("a", "second")
    try fs.write(first, "!", at: 5)
    try fs.write(second, "!", at: 6)
    try fs.close(second)
    try fs.close(first)
    try fs.remount()
    try fs.expectContents("b", "first!")
    try fs.expectContents("a", "second!")
    try fs.expectNames("", ["a", "b"])
  }

  static func exchangeOfANewFileAndADirectory(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/x", "inside")
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "new")
    try fs.rename("a", "d", .exchange)
    try fs.write(handle, "er", at: 3)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("d", "newer")
    try fs.expectContents("a/x", "inside")
    try fs.expectNames("", ["a", "d"])
  }

  static func noReplaceSeesANewFile(_ fs: Volume) throws {
    try fs.make("a", "a")
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    try expectError(EEXIST) { try fs.rename("a", "new", .noReplace) }
    try fs.rename("new", "free", .noReplace)
    try fs.write(handle, "x")
    try expectError(EEXIST) { try fs.rename("free", "a", .noReplace) }
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("", ["a", "free"])
    try fs.expectContents("free", "x")
  }

  static func openFilesFollowTheirDirectory(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/old", "old content")
    let edited = try fs.open("d/old", O_RDWR)
    let new = try fs.open("d/new", O_CREAT | O_RDWR)
    try fs.write(edited, "OLD")
    try fs.write(new, "new content")
    try fs.rename("d", "e")
    try fs.write(edited, "CONTENT", at: 4)
    try fs.write(new, "NEW")
    try fs.expectNames("e", ["new", "old"])
    try fs.close(edited)
    try fs.close(new)
    try fs.expectContents("e/old", "OLD CONTENT")
    try fs.remount()
    try fs.expectNames("", ["e"])
    try fs.expectNames("e", ["new", "old"])
    try fs.expectContents("e/old", "OLD CONTENT")
    try fs.expectContents("e/new", "NEW content")
  }

  static func openFilesFollowTheirDirectoryAcross(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/sub")
    try fs.mkdir("other")
    let handle = try fs.open("d/sub/a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.rename("d/sub", "other/sub2")
    try fs.rmdir("d")
    try fs.mkdir("d")
    try fs.mkdir("d/sub")
    try fs.make("d/sub/a", "unrelated")
    try fs.write(handle, "end", at: 100_000)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("d/sub/a", "unrelated")
    try fs.expectContents("other/sub2/a", pattern(100_000) + Array("end".utf8))
  }

  static func aDirectoryWithANewFileIsNotEmpty(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("target")
    let handle = try fs.open("target/new", O_CREAT | O_WRONLY)
    try expectError(ENOTEMPTY, EEXIST) { try fs.rename("d", "target") }
    try fs.write(handle, "x")
    try expectError(ENOTEMPTY, EEXIST) { try fs.rename("d", "target") }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("target/new", "x")
    try fs.unlink("target/new")
    try fs.rename("d", "target")
    try fs.expectNames("", ["target"])
  }

  static func renameChainOfAnOpenFile(_ fs: Volume) throws {
    try fs.mkdir("d")
    let handle = try fs.open("a0", O_CREAT | O_RDWR)
    var name: Path = "a0"
    for round in 1...20 {
      try fs.write(handle, pattern(10_000, seed: UInt64(round)), at: Int64(round - 1) * 10_000)
      let next: Path = round % 2 == 0 ? "a\(round)" : "d/a\(round)"
      try fs.rename(name, next)
      if round % 5 == 0 { try fs.fsync(handle) }
      name = next
    }
    try fs.close(handle)
    let expected = (1...20).flatMap { pattern(10_000, seed: UInt64($0)) }
    try fs.expectContents(name, expected)
    try fs.remount()
    try fs.expectContents(name, expected)
    try fs.expectNames("", ["a20", "d"])
    try fs.expectNames("d", [])
  }

  static func renameAwayAndRecreateWhileOpen(_ fs: Volume) throws {
    try fs.make("a", "first")
    let first = try fs.open("a", O_RDWR)
    try fs.write(first, "FIRST")
    try fs.rename("a", "backup")
    let second = try fs.open("a", O_CREAT | O_EXCL | O_RDWR)
    try fs.write(second, "second")
    try fs.write(first, "!", at: 5)
    try fs.close(second)
    try fs.close(first)
    try fs.remount()
    try fs.expectContents("backup", "FIRST!")
    try fs.expectContents("a", "second")
    try fs.expectNames("", ["a", "backup"])
  }

  static func renameOverTheFileBeingWrittenTwice(_ fs: Volume) throws {
    var handles: [Handle] = []
    for round in 0..<3 {
      let handle = try fs.open("new", O_CREAT | O_EXCL | O_RDWR)
      try fs.write(handle, "version \(round)")
      try fs.rename("new", "a")
      handles.append(handle)
    }
    for (round, handle) in handles.enumerated() {
      try fs.expectContents(handle, "version \(round)")
    }
    for handle in handles.reversed() { try fs.close(handle) }
    try fs.expectContents("a", "version 2")
    try fs.remount()
    try fs.expectNames("", ["a"])
    try fs.expectContents("a", "version 2")
  }

  static func attributesSetBeforeRenameBeforeClose(_ fs: Volume) throws {
    try fs.make("a", "old")
    let handle = try fs.open("new", O_CREAT | O_RDWR, mode: 0o600)
    try fs.write(handle, "content")
    try fs.setxattr(.handle(handle), "user.tag", [7])
    try fs.chmod(.handle(handle), 0o604)
    try fs.utimens(.handle(handle), .seconds(10, 11), .seconds(12, 13))
    try fs.rename("new", "a")
    try fs.close(handle)
    for _ in 0..<2 {
      try expect(fs.stat("a").st_mode, S_IFREG | 0o604)
      try expect(fs.stat("a").st_mtim.total, timespec.seconds(12, 13).total)
      try expect(fs.getxattr("a", "user.tag"), [7])
      try fs.expectContents("a", "content")
      try fs.remount()
    }
  }

  static func openDirectoryHandleSurvivesRename(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "x")
    let handle = try fs.open("d", O_RDONLY | O_DIRECTORY)
    try fs.rename("d", "e")
    try fs.make("e/b", "y")
    let names = try fs.items(handle).map { String(decoding: $0.name, as: UTF8.self) }.sorted()
    try expect(names, [".", "..", "a", "b"])
    try expect(fs.stat(.handle(handle)).st_ino, fs.stat("e").st_ino)
    try fs.close(handle)
  }
}
