import Glibc
import Platform

/// renameat2(2) of closed files and directories.
enum RenameChecks {
  static let all: [Check] = [
    Check("renameMovesAFile", renameMovesAFile),
    Check("renameReplacesAnExistingFile", renameReplacesAnExistingFile),
    Check("renameKeepsInodeModeTimesAndAttributes", renameKeepsInodeModeTimesAndAttributes),
    Check("renameBetweenDirectories", renameBetweenDirectories),
    Check("renameMovesADirectoryWithItsContents", renameMovesADirectoryWithItsContents),
    Check("renameReplacesAnEmptyDirectory", renameReplacesAnEmptyDirectory),
    Check("renameOverANonEmptyDirectoryFails", renameOverANonEmptyDirectoryFails),
    Check("renameNeverMixesFilesAndDirectories", renameNeverMixesFilesAndDirectories),
    Check("renameIntoItsOwnSubdirectoryFails", renameIntoItsOwnSubdirectoryFails),
    Check("renameOntoAnAncestorFails", renameOntoAnAncestorFails),
    Check("renameOfAMissingNameFails", renameOfAMissingNameFails),
    Check("renameToItselfDoesNothing", renameToItselfDoesNothing),
    Check("renameBetweenTwoLinksOfOneFileDoesNothing", renameBetweenTwoLinksDoesNothing),
    Check("renameOverAHardLinkKeepsTheOtherName", renameOverAHardLinkKeepsTheOtherName),
    Check("renameMovesLinksAndSpecialFiles", renameMovesLinksAndSpecialFiles),
    Check("renameReplacesOneKindByAnother", renameReplacesOneKindByAnother),
    Check("renameOfASymbolicLinkLeavesItsTarget", renameOfASymbolicLinkLeavesItsTarget),
    Check("noReplaceRefusesAnExistingTarget", noReplaceRefusesAnExistingTarget),
    Check("noReplaceMovesToAFreeName", noReplaceMovesToAFreeName),
    Check("exchangeSwapsFiles", exchangeSwapsFiles),
    Check("exchangeSwapsDirectories", exchangeSwapsDirectories),
    Check("exchangeSwapsAFileAndADirectory", exchangeSwapsAFileAndADirectory),
    Check("exchangeNeedsBoth", exchangeNeedsBoth),
    Check("exchangeBetweenDirectoriesAndKinds", exchangeBetweenDirectoriesAndKinds),
    Check("renameBetweenShortAndLongNames", renameBetweenShortAndLongNames),
    Check("renameChangesOnlyTheCase", renameChangesOnlyTheCase),
    Check("savingByRenameFiftyTimes", savingByRenameFiftyTimes),
    Check("renameInCirclesKeepsContents", renameInCirclesKeepsContents),
  ]

  static func renameMovesAFile(_ fs: Volume) throws {
    try fs.make("a", pattern(70_000))
    try fs.rename("a", "b")
    try fs.expectMissing("a")
    try fs.expectContents("b", pattern(70_000))
    try fs.expectNames("", ["b"])
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", pattern(70_000))
  }

  static func renameReplacesAnExistingFile(_ fs: Volume) throws {
    try fs.make("new", "new content")
    try fs.make("old", pattern(100_000))
    try fs.rename("new", "old")
    try fs.expectContents("old", "new content")
    try fs.expectNames("", ["old"])
    try fs.remount()
    try fs.expectContents("old", "new content")
    try fs.expectNames("", ["old"])
  }

  static func renameKeepsInodeModeTimesAndAttributes(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.chmod("a", 0o640)
    try fs.utimens("a", .seconds(1000, 111), .seconds(2000, 222))
    try fs.setxattr("a", "user.tag", [1, 2, 3])
    let before = try fs.stat("a")
    try fs.rename("a", "b")
    try expect(fs.stat("b").st_ino, before.st_ino)
    try expect(fs.stat("b").st_mtim.total, before.st_mtim.total)
    try fs.remount()
    try expect(fs.stat("b").st_mode, S_IFREG | 0o640)
    try expect(fs.stat("b").st_mtim.total, before.st_mtim.total)
    try expect(fs.getxattr("b", "user.tag"), [1, 2, 3])
  }

  static func renameBetweenDirectories(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("e")
    try fs.make("d/a", "moved")
    try fs.make("e/a", "replaced")
    try fs.rename("d/a", "e/b")
    try fs.expectNames("d", [])
    try fs.expectNames("e", ["a", "b"])
    try fs.rename("e/b", "e/a")
    try fs.rename("e/a", "top")
    try fs.remount()
    try fs.expectContents("top", "moved")
    try fs.expectNames("d", [])
    try fs.expectNames("e", [])
  }

  static func renameMovesADirectoryWithItsContents(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/sub")
    try fs.make("d/sub/a", pattern(5000))
    try fs.symlink("sub/a", "d/link")
    try fs.mkdir("other")
    let inode = try fs.stat("d").st_ino
    try fs.rename("d", "other/e")
    try expect(fs.stat("other/e").st_ino, inode)
    try fs.expectContents("other/e/sub/a", pattern(5000))
    try fs.expectMissing("d")
    try expect(fs.stat("other/e/sub/../..").st_ino, fs.stat("other").st_ino)
    try fs.make("other/e/sub/b", "made after the move")
    try fs.remount()
    try fs.expectNames("", ["other"])
    try fs.expectNames("other/e", ["sub", "link"])
    try fs.expectContents("other/e/link", pattern(5000))
    try fs.expectContents("other/e/sub/b", "made after the move")
  }

  static func renameReplacesAnEmptyDirectory(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "x")
    try fs.mkdir("empty")
    try fs.rename("d", "empty")
    try fs.expectNames("", ["empty"])
    try fs.expectContents("empty/a", "x")
    try fs.remount()
    try fs.expectNames("", ["empty"])
    try fs.expectContents("empty/a", "x")
  }

  static func renameOverANonEmptyDirectoryFails(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "x")
    try fs.mkdir("full")
    try fs.make("full/b", "y")
    try expectError(ENOTEMPTY, EEXIST) { try fs.rename("d", "full") }
    try fs.remount()
    try fs.expectContents("d/a", "x")
    try fs.expectContents("full/b", "y")
  }

  static func renameNeverMixesFilesAndDirectories(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("a", "x")
    try fs.symlink("nowhere", "link")
    try expectError(EISDIR) { try fs.rename("a", "d") }
    try expectError(ENOTDIR) { try fs.rename("d", "a") }
    try expectError(EISDIR) { try fs.rename("link", "d") }
    try expectError(ENOTDIR) { try fs.rename("d", "link") }
    try fs.expectContents("a", "x")
    try fs.expectNames("", ["a", "d", "link"])
  }

  static func renameIntoItsOwnSubdirectoryFails(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try expectError(EINVAL) { try fs.rename("d", "d/x") }
    try expectError(EINVAL) { try fs.rename("d", "d/e/x") }
    try expectError(EINVAL) { try fs.rename("d", "d/e") }
    try fs.expectNames("d", ["e"])
  }

  static func renameOntoAnAncestorFails(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try fs.make("d/e/a", "x")
    try expectError(ENOTEMPTY) { try fs.rename("d/e", "d") }
    try expectError(ENOTEMPTY) { try fs.rename("d/e/a", "d") }
    try fs.expectContents("d/e/a", "x")
  }

  static func renameOfAMissingNameFails(_ fs: Volume) throws {
    try fs.make("a", "x")
    try expectError(ENOENT) { try fs.rename("missing", "b") }
    try expectError(ENOENT) { try fs.rename("missing", "a") }
    try expectError(ENOENT) { try fs.rename("a", "missing/b") }
    try expectError(ENOTDIR) { try fs.rename("a", "a/b") }
    try fs.expectContents("a", "x")
    try fs.expectNames("", ["a"])
  }

  static func renameToItselfDoesNothing(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.make("d/b", "y")
    try fs.rename("a", "a")
    try fs.rename("d", "d")
    try fs.remount()
    try fs.expectContents("a", "x")
    try fs.expectContents("d/b", "y")
  }

  static func renameBetweenTwoLinksDoesNothing(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.link("a", "b")
    try fs.rename("a", "b")
    try fs.expectNames("", ["a", "b"])
    try expect(fs.stat("a").st_nlink, 2)
    try fs.remount()
    try fs.expectNames("", ["a", "b"])
    try fs.rename("b", "a")
    try fs.expectNames("", ["a", "b"])
    try fs.expectContents("a", "x")
    try fs.expectContents("b", "x")
  }

  static func renameOverAHardLinkKeepsTheOtherName(_ fs: Volume) throws {
    try fs.make("a", "linked")
    try fs.link("a", "b")
    try fs.make("new", "new")
    try fs.rename("new", "a")
    try expect(fs.stat("b").st_nlink, 1)
    try fs.expectContents("b", "linked")
    try fs.expectContents("a", "new")
    try fs.remount()
    try fs.expectContents("b", "linked")
    try fs.expectContents("a", "new")
    try fs.expectNames("", ["a", "b"])
  }

  static func renameMovesLinksAndSpecialFiles(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.symlink("target", "link")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    try fs.mknod("socket", S_IFSOCK | 0o600)
    for name in ["link", "fifo", "socket"] { try fs.rename(Path(name), "d/\(name)-moved") }
    try fs.remount()
    try fs.expectNames("", ["d"])
    try expect(fs.readlink("d/link-moved"), Array("target".utf8))
    try expect(fs.stat(.link("d/fifo-moved")).st_mode, S_IFIFO | 0o600)
    try expect(fs.stat(.link("d/socket-moved")).st_mode, S_IFSOCK | 0o600)
  }

  /// A blob and a symbolic link of one name have different names on the disk.
  static func renameReplacesOneKindByAnother(_ fs: Volume) throws {
    try fs.make("file", "content")
    try fs.symlink("target", "name")
    try fs.rename("file", "name")
    try fs.expectContents("name", "content")
    try fs.expectNames("", ["name"])
    try fs.mknod("fifo", S_IFIFO | 0o600)
    try fs.rename("fifo", "name")
    try fs.expectNames("", ["name"])
    try fs.remount()
    try fs.expectNames("", ["name"])
    try expect(fs.stat(.link("name")).st_mode & S_IFMT, S_IFIFO)
    try fs.make("again", "content")
    try fs.rename("again", "name")
    try fs.remount()
    try fs.expectNames("", ["name"])
    try fs.expectContents("name", "content")
  }

  static func renameOfASymbolicLinkLeavesItsTarget(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.make("b", "y")
    try fs.symlink("a", "link")
    try fs.rename("link", "b")
    try expect(fs.readlink("b"), Array("a".utf8))
    try fs.expectContents("b", "x")
    try fs.expectNames("", ["a", "b"])
  }

  static func noReplaceRefusesAnExistingTarget(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("nowhere", "link")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    for name in ["d", "link", "fifo", "a"] {
      try expectError(EEXIST) { try fs.rename("a", Path(name), .noReplace) }
      try expectError(EEXIST) { try fs.rename("d", Path(name), .noReplace) }
    }
    try fs.expectContents("a", "x")
    try fs.expectNames("", ["a", "d", "fifo", "link"])
  }

  static func noReplaceMovesToAFreeName(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.rename("a", "b", .noReplace)
    try fs.rename("d", "e", .noReplace)
    try fs.rename("b", "e/c", .noReplace)
    try fs.remount()
    try fs.expectNames("", ["e"])
    try fs.expectContents("e/c", "x")
  }

  static func exchangeSwapsFiles(_ fs: Volume) throws {
    try fs.make("a", "one")
    try fs.make("b", pattern(70_000))
    let inodes = try (fs.stat("a").st_ino, fs.stat("b").st_ino)
    try fs.rename("a", "b", .exchange)
    try expect(fs.stat("b").st_ino, inodes.0)
    try expect(fs.stat("a").st_ino, inodes.1)
    try fs.expectContents("a", pattern(70_000))
    try fs.expectContents("b", "one")
    try fs.remount()
    try fs.expectContents("a", pattern(70_000))
    try fs.expectContents("b", "one")
    try fs.expectNames("", ["a", "b"])
  }

  static func exchangeSwapsDirectories(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("top")
    try fs.mkdir("top/e")
    try fs.make("d/a", "one")
    try fs.make("top/e/b", "two")
    try fs.rename("d", "top/e", .exchange)
    try fs.expectContents("d/b", "two")
    try fs.expectContents("top/e/a", "one")
    try expect(fs.stat("top/e/..").st_ino, fs.stat("top").st_ino)
    try fs.remount()
    try fs.expectNames("d", ["b"])
    try fs.expectNames("top/e", ["a"])
    try fs.expectContents("d/b", "two")
  }

  static func exchangeSwapsAFileAndADirectory(_ fs: Volume) throws {
    try fs.make("a", "file")
    try fs.mkdir("d")
    try fs.make("d/inside", "x")
    try fs.rename("a", "d", .exchange)
    try fs.expectContents("d", "file")
    try fs.expectContents("a/inside", "x")
    try fs.remount()
    try fs.expectNames("", ["a", "d"])
    try fs.expectContents("d", "file")
    try fs.expectContents("a/inside", "x")
    try fs.rename("a", "d", .exchange)
    try fs.remount()
    try fs.expectNames("", ["a", "d"])
    try fs.expectContents("a", "file")
    try fs.expectNames("d", ["inside"])
  }

  static func exchangeNeedsBoth(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try expectError(ENOENT) { try fs.rename("a", "missing", .exchange) }
    try expectError(ENOENT) { try fs.rename("missing", "a", .exchange) }
    try expectError(EINVAL) { try fs.rename("a", "b", [.exchange, .noReplace]) }
    try expectError(EINVAL) { try fs.rename("d", "d/e", .exchange) }
    try expectError(EINVAL) { try fs.rename("d/e", "d", .exchange) }
    try fs.rename("a", "a", .exchange)
    try fs.expectContents("a", "x")
    try fs.expectNames("", ["a", "d"])
  }

  static func exchangeBetweenDirectoriesAndKinds(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "file")
    try fs.symlink("target", "link")
    try fs.rename("d/a", "link", .exchange)
    try fs.expectContents("link", "file")
    try expect(fs.readlink("d/a"), Array("target".utf8))
    try fs.remount()
    try fs.expectContents("link", "file")
    try expect(fs.readlink("d/a"), Array("target".utf8))
    try fs.expectNames("d", ["a"])
  }

  static func renameBetweenShortAndLongNames(_ fs: Volume) throws {
    let long = Path(String(repeating: "l", count: 250))
    let other = Path(String(repeating: "o", count: 255))
    try fs.make("a", "content")
    try fs.make(other, "replaced")
    try fs.rename("a", long)
    try fs.expectContents(long, "content")
    try fs.remount()
    try fs.rename(long, other)
    try fs.expectContents(other, "content")
    try fs.expectNames("", ["\(String(repeating: "o", count: 255))"])
    try fs.make("b", "second")
    try fs.rename("b", other, .exchange)
    try fs.remount()
    try fs.expectContents(other, "second")
    try fs.expectContents("b", "content")
    try fs.rename(other, "b")
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", "second")
    try fs.unlink("b")
  }

  static func renameChangesOnlyTheCase(_ fs: Volume) throws {
    try fs.make("photo.jpg", "x")
    try fs.rename("photo.jpg", "PHOTO.JPG")
    try fs.expectMissing("photo.jpg")
    try fs.remount()
    try fs.expectNames("", ["PHOTO.JPG"])
    try fs.expectContents("PHOTO.JPG", "x")
  }

  static func savingByRenameFiftyTimes(_ fs: Volume) throws {
    for round in 0..<50 {
      let handle = try fs.open("a.tmp", O_CREAT | O_EXCL | O_WRONLY)
      try fs.write(handle, pattern(1000 * round, seed: UInt64(round)))
      if round % 2 == 0 { try fs.fsync(handle) }
      try fs.close(handle)
      try fs.rename("a.tmp", "a")
      try fs.expectContents("a", pattern(1000 * round, seed: UInt64(round)))
    }
    try fs.expectNames("", ["a"])
    try fs.remount()
    try fs.expectContents("a", pattern(49_000, seed: 49))
    try fs.expectNames("", ["a"])
  }

  static func renameInCirclesKeepsContents(_ fs: Volume) throws {
    let names = ["a", "b", "c"]
    for name in names { try fs.make(Path(name), name) }
    for _ in 0..<4 {
      try fs.rename("a", "swap")
      try fs.rename("b", "a")
      try fs.rename("c", "b")
      try fs.rename("swap", "c")
    }
    for _ in 0..<2 {
      try fs.expectContents("a", "b")
      try fs.expectContents("b", "c")
      try fs.expectContents("c", "a")
      try fs.remount()
    }
  }
}
