import Glibc
import Platform

/// Hard links: one inode, whatever happens to it.
enum LinkChecks {
  static let all: [Check] = [
    Check("linksShareOneInode", linksShareOneInode),
    Check("contentEditedThroughOneNameShowsThroughAll", contentEditedThroughOneName),
    Check("appendThroughAnotherNameKeepsTheBeginning", appendThroughAnotherName),
    Check("rewritingThroughOneNameKeepsTheLink", rewritingThroughOneNameKeepsTheLink),
    Check("truncatingThroughOneNameShowsThroughAll", truncatingThroughOneName),
    Check("unlinkingOneNameKeepsTheOther", unlinkingOneNameKeepsTheOther),
    Check("unlinkingTheFirstNameWhileWritingKeepsTheOther", unlinkingTheFirstNameWhileWriting),
    Check("linksOfAFileBeingWritten", linksOfAFileBeingWritten),
    Check("linksOfANewEmptyFile", linksOfANewEmptyFile),
    Check("linksAcrossDirectories", linksAcrossDirectories),
    Check("attributesThroughOneNameShowThroughAll", attributesThroughOneNameShowThroughAll),
    Check("handlesThroughTwoNamesAreOneFile", handlesThroughTwoNamesAreOneFile),
    Check("handlesThroughTwoNamesAreOneFileAfterRemount", handlesThroughTwoNamesAfterRemount),
    Check("linkCountsOnOpenHandles", linkCountsOnOpenHandles),
    Check("linkRefusesWhatItMust", linkRefusesWhatItMust),
    Check("linkOfASymbolicLinkIsASymbolicLink", linkOfASymbolicLinkIsASymbolicLink),
    Check("linkOfAFifoIsTheFifo", linkOfAFifoIsTheFifo),
    Check("linkThenUnlinkRenames", linkThenUnlinkRenames),
    Check("renamedLinksStayOneFile", renamedLinksStayOneFile),
    Check("manyLinksOfOneFile", manyLinksOfOneFile),
    Check("linksWithLongNames", linksWithLongNames),
    Check("oneOfTwoLinksIsExchanged", oneOfTwoLinksIsExchanged),
    Check("editsAfterEveryRemountShowThroughAll", editsAfterEveryRemountShowThroughAll),
    Check("aRemovedLinkElsewhereDoesNotComeBack", aRemovedLinkElsewhereDoesNotComeBack),
    Check("aNewFileReplacesOneLinkOfTwo", aNewFileReplacesOneLinkOfTwo),
  ]

  static func aRemovedLinkElsewhereDoesNotComeBack(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("a", "content")
    let handle = try fs.open("a", O_RDWR)
    try fs.link("a", "d/b")
    try fs.link("a", "d/c")
    try fs.unlink("d/b")
    try fs.write(handle, "CON", at: 0)
    try fs.close(handle)
    for _ in 0..<2 {
      try fs.expectMissing("d/b")
      try fs.expectContents("a", "CONtent")
      try fs.expectContents("d/c", "CONtent")
      try expect(fs.stat("a").st_nlink, 2)
      try fs.remount()
    }
  }

  static func aNewFileReplacesOneLinkOfTwo(_ fs: Volume) throws {
    try fs.make("a", "old")
    try fs.link("a", "b")
    let old = try fs.open("b", O_RDWR)
    let new = try fs.open("new", O_CREAT | O_RDWR)
    try fs.write(new, "newer", at: 0)
    try fs.rename("new", "a")
    try expect(fs.stat("b").st_nlink, 1)
    try expect(fs.stat("a").st_nlink, 1)
    try fs.write(old, "OLD", at: 0)
    try fs.write(new, " still", at: 5)
    try fs.close(old)
    try fs.close(new)
    for _ in 0..<2 {
      try fs.expectContents("a", "newer still")
      try fs.expectContents("b", "OLD")
      try expect(fs.stat("b").st_nlink, 1)
      try fs.remount()
    }
  }

  static func linksShareOneInode(_ fs: Volume) throws {
    try fs.make("a", "content")
    try expect(fs.stat("a").st_nlink, 1)
    try fs.link("a", "b")
    for _ in 0..<2 {
      try expect(fs.stat("a").st_ino, fs.stat("b").st_ino)
      try expect(fs.stat("a").st_nlink, 2)
      try expect(fs.stat("b").st_nlink, 2)
      try fs.expectContents("b", "content")
      try fs.remount()
    }
    try fs.link("b", "c")
    try expect(fs.stat("a").st_nlink, 3)
    try fs.make("d", "content")
    try expect(fs.stat("a").st_ino != fs.stat("d").st_ino, "a stranger has the same inode")
    for item in try fs.items("")
    where ["a", "b", "c"].contains(String(decoding: item.name, as: UTF8.self)) {
      try expect(item.inode, UInt64(fs.stat("a").st_ino), "d_ino")
    }
  }

  static func contentEditedThroughOneName(_ fs: Volume) throws {
    var expected = pattern(100_000)
    try fs.make("a", expected)
    try fs.link("a", "b")
    try fs.expectContents("b", expected)
    let handle = try fs.open("b", O_RDWR)
    try fs.write(handle, "edited", at: 70_000)
    expected.replaceSubrange(70_000..<70_006, with: Array("edited".utf8))
    try fs.expectContents("a", expected)
    try fs.close(handle)
    for _ in 0..<2 {
      try fs.expectContents("a", expected)
      try fs.expectContents("b", expected)
      try expect(fs.stat("a").st_nlink, 2)
      try expect(fs.stat("a").st_ino, fs.stat("b").st_ino)
      try fs.remount()
    }
  }

  static func appendThroughAnotherName(_ fs: Volume) throws {
    try fs.make("a", "one ")
    try fs.link("a", "b")
    for (name, text) in [("b", "two "), ("a", "three "), ("b", "four")] {
      let handle = try fs.open(Path(name), O_WRONLY | O_APPEND)
      try fs.write(handle, text)
      try fs.close(handle)
    }
    for _ in 0..<2 {
      try fs.expectContents("a", "one two three four")
      try fs.expectContents("b", "one two three four")
      try fs.remount()
    }
  }

  static func rewritingThroughOneNameKeepsTheLink(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    try fs.link("a", "b")
    try fs.make("b", "short")
    for _ in 0..<2 {
      try fs.expectContents("a", "short")
      try fs.expectContents("b", "short")
      try expect(fs.stat("a").st_nlink, 2)
      try expect(fs.stat("a").st_ino, fs.stat("b").st_ino)
      try fs.remount()
    }
  }

  static func truncatingThroughOneName(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    try fs.link("a", "b")
    try fs.truncate("b", to: 1000)
    try fs.expectContents("a", pattern(1000))
    try fs.truncate("a", to: 2000)
    try fs.remount()
    try fs.expectContents("a", pattern(1000) + zeros(1000))
    try fs.expectContents("b", pattern(1000) + zeros(1000))
    try expect(fs.stat("b").st_nlink, 2)
  }

  static func unlinkingOneNameKeepsTheOther(_ fs: Volume) throws {
    for (gone, kept) in [("a", "b"), ("b", "a")] {
      try fs.make("a", "content")
      try fs.link("a", "b")
      try fs.unlink(Path(gone))
      try expect(fs.stat(.path(Path(kept))).st_nlink, 1)
      try fs.expectContents(Path(kept), "content")
      try fs.remount()
      try expect(fs.stat(.path(Path(kept))).st_nlink, 1)
      try fs.expectContents(Path(kept), "content")
      let handle = try fs.open(Path(kept), O_WRONLY | O_APPEND)
      try fs.write(handle, " and more")
      try fs.close(handle)
      try fs.expectContents(Path(kept), "content and more")
      try fs.expectNames("", [kept])
      try fs.unlink(Path(kept))
    }
  }

  static func unlinkingTheFirstNameWhileWriting(_ fs: Volume) throws {
    try fs.make("a", "old")
    try fs.link("a", "b")
    let handle = try fs.open("a", O_RDWR)
    try fs.write(handle, "new content")
    try fs.unlink("a")
    try expect(fs.stat(.handle(handle)).st_nlink, 1)
    try fs.expectContents("b", "new content")
    try fs.write(handle, "!", at: 11)
    try fs.close(handle)
    try fs.expectContents("b", "new content!")
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", "new content!")
    try expect(fs.stat("b").st_nlink, 1)
  }

  static func linksOfAFileBeingWritten(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.link("a", "b")
    try expect(fs.stat(.handle(handle)).st_nlink, 2)
    try fs.expectNames("", ["a", "b"])
    try fs.expectContents("b", pattern(100_000))
    try fs.write(handle, "more", at: 100_000)
    try fs.expectContents("b", pattern(100_000) + Array("more".utf8))
    try fs.close(handle)
    for _ in 0..<2 {
      try fs.expectContents("a", pattern(100_000) + Array("more".utf8))
      try fs.expectContents("b", pattern(100_000) + Array("more".utf8))
      try expect(fs.stat("a").st_ino, fs.stat("b").st_ino)
      try expect(fs.stat("b").st_nlink, 2)
      try fs.remount()
    }
  }

  static func linksOfANewEmptyFile(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.link("a", "b")
    try fs.unlink("a")
    try fs.write(handle, "content")
    try fs.expectContents("b", "content")
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", "content")
    try expect(fs.stat("b").st_nlink, 1)
  }

  static func linksAcrossDirectories(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try fs.make("d/a", "content")
    try fs.link("d/a", "d/e/b")
    try fs.link("d/e/b", "c")
    try fs.make("d/e/b", "rewritten")
    for _ in 0..<2 {
      for name in ["d/a", "d/e/b", "c"] {
        try fs.expectContents(Path(name), "rewritten")
        try expect(fs.stat(.path(Path(name))).st_nlink, 3)
      }
      try expect(fs.stat("d/a").st_ino, fs.stat("c").st_ino)
      try fs.remount()
    }
    try fs.unlink("d/e/b")
    try fs.rmdir("d/e")
    try expect(fs.stat("c").st_nlink, 2)
  }

  static func attributesThroughOneNameShowThroughAll(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.link("a", "b")
    try fs.chmod("b", 0o640)
    try fs.utimens("b", .seconds(10, 1), .seconds(20, 2))
    try fs.setxattr("b", "user.tag", [1])
    for _ in 0..<2 {
      try expect(fs.stat("a").st_mode, S_IFREG | 0o640)
      try expect(fs.stat("a").st_mtim.total, timespec.seconds(20, 2).total)
      try expect(fs.getxattr("a", "user.tag"), [1])
      try fs.remount()
    }
  }

  static func handlesThroughTwoNamesAreOneFile(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.link("a", "b")
    try handlesAreOneFile(fs)
  }

  static func handlesThroughTwoNamesAfterRemount(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.link("a", "b")
    try fs.remount()
    try handlesAreOneFile(fs)
  }

  private static func handlesAreOneFile(_ fs: Volume) throws {
    let first = try fs.open("a", O_RDWR)
    let second = try fs.open("b", O_RDWR)
    try fs.write(first, "CON")
    try fs.expectContents(second, "CONtent")
    try fs.write(second, "TENT", at: 3)
    try fs.expectContents(first, "CONTENT")
    try fs.close(first)
    try fs.expectContents(second, "CONTENT")
    try fs.write(second, "!", at: 7)
    try fs.close(second)
    try fs.expectContents("a", "CONTENT!")
    try fs.remount()
    try fs.expectContents("a", "CONTENT!")
    try fs.expectContents("b", "CONTENT!")
    try expect(fs.stat("a").st_nlink, 2)
  }

  static func linkCountsOnOpenHandles(_ fs: Volume) throws {
    try fs.make("a", "content")
    let handle = try fs.open("a")
    for (number, name) in ["b", "c", "d"].enumerated() {
      try fs.link("a", Path(name))
      try expect(Int(fs.stat(.handle(handle)).st_nlink), number + 2)
    }
    for (number, name) in ["a", "c", "b", "d"].enumerated() {
      try fs.unlink(Path(name))
      try expect(Int(fs.stat(.handle(handle)).st_nlink), 3 - number)
    }
    try fs.expectContents(handle, "content")
    try fs.close(handle)
  }

  static func linkRefusesWhatItMust(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.make("b", "y")
    try fs.mkdir("d")
    try expectError(EEXIST) { try fs.link("a", "b") }
    try expectError(EEXIST) { try fs.link("a", "a") }
    try expectError(EEXIST) { try fs.link("a", "d") }
    try expectError(ENOENT) { try fs.link("missing", "c") }
    try expectError(ENOENT) { try fs.link("a", "missing/c") }
    try expectError(ENOTDIR) { try fs.link("a", "b/c") }
    try expectError(EPERM) { try fs.link("d", "e") }
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    try expectError(EEXIST) { try fs.link("a", "new") }
    try fs.close(handle)
    try fs.expectContents("b", "y")
    try expect(fs.stat("a").st_nlink, 1)
    try fs.expectNames("", ["a", "b", "d", "new"])
  }

  static func linkOfASymbolicLinkIsASymbolicLink(_ fs: Volume) throws {
    try fs.symlink("target", "a")
    try fs.link("a", "b")
    try expect(fs.stat(.link("a")).st_ino, fs.stat(.link("b")).st_ino)
    try fs.remount()
    try expect(fs.readlink("b"), Array("target".utf8))
    try expect(fs.stat(.link("b")).st_nlink, 2)
    try fs.unlink("a")
    try expect(fs.readlink("b"), Array("target".utf8))
  }

  static func linkOfAFifoIsTheFifo(_ fs: Volume) throws {
    try fs.mknod("a", S_IFIFO | 0o600)
    try fs.link("a", "b")
    try expect(fs.stat("a").st_ino, fs.stat("b").st_ino)
    try fs.chmod("a", 0o644)
    try fs.remount()
    try expect(fs.stat("b").st_mode, S_IFIFO | 0o644)
    try expect(fs.stat("b").st_nlink, 2)
  }

  /// What programs do that don't trust rename: link to the final name, unlink the temporary one.
  static func linkThenUnlinkRenames(_ fs: Volume) throws {
    for round in 0..<10 {
      try fs.make("tmp", "version \(round)")
      if round > 0 { try fs.unlink("final") }
      try fs.link("tmp", "final")
      try fs.unlink("tmp")
      try expect(fs.stat("final").st_nlink, 1)
    }
    try fs.remount()
    try fs.expectNames("", ["final"])
    try fs.expectContents("final", "version 9")
  }

  static func renamedLinksStayOneFile(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("a", "content")
    try fs.link("a", "b")
    try fs.rename("a", "d/a2")
    let handle = try fs.open("b", O_WRONLY | O_APPEND)
    try fs.write(handle, "!")
    try fs.rename("b", "c")
    try fs.close(handle)
    for _ in 0..<2 {
      try fs.expectContents("d/a2", "content!")
      try fs.expectContents("c", "content!")
      try expect(fs.stat("c").st_ino, fs.stat("d/a2").st_ino)
      try fs.expectNames("", ["c", "d"])
      try fs.remount()
    }
  }

  static func manyLinksOfOneFile(_ fs: Volume) throws {
    try fs.make("f0", "content")
    for number in 1..<100 { try fs.link("f\(number - 1)", "f\(number)") }
    try expect(fs.stat("f50").st_nlink, 100)
    try fs.make("f77", "rewritten")
    try fs.remount()
    for number in 0..<100 { try fs.expectContents("f\(number)", "rewritten") }
    for number in 0..<99 { try fs.unlink("f\(number)") }
    try expect(fs.stat("f99").st_nlink, 1)
    try fs.expectContents("f99", "rewritten")
  }

  static func linksWithLongNames(_ fs: Volume) throws {
    let long = Path(String(repeating: "x", count: 255))
    try fs.mkdir("d")
    try fs.make("a", "content")
    try fs.link("a", long)
    try fs.link(long, "d" / long)
    try fs.make(long, "rewritten")
    try fs.remount()
    try fs.expectContents("a", "rewritten")
    try fs.expectContents("d" / long, "rewritten")
    try expect(fs.stat("a").st_nlink, 3)
    try fs.unlink(long)
    try fs.unlink("d" / long)
    try fs.rmdir("d")
    try fs.expectNames("", ["a"])
  }

  static func oneOfTwoLinksIsExchanged(_ fs: Volume) throws {
    try fs.make("a", "linked")
    try fs.link("a", "b")
    try fs.make("c", "single")
    try fs.rename("a", "c", .exchange)
    try fs.make("b", "rewritten")
    for _ in 0..<2 {
      try fs.expectContents("a", "single")
      try fs.expectContents("c", "rewritten")
      try expect(fs.stat("c").st_ino, fs.stat("b").st_ino)
      try fs.remount()
    }
  }

  static func editsAfterEveryRemountShowThroughAll(_ fs: Volume) throws {
    let names: [Path] = ["a", "b", "c"]
    var expected = pattern(70_000)
    try fs.make("a", expected)
    try fs.link("a", "b")
    try fs.link("a", "c")
    for round in 0..<6 {
      try fs.remount()
      let handle = try fs.open(names[round % 3], O_RDWR)
      try fs.write(handle, "round \(round)", at: Int64(round * 10_000))
      expected.replaceSubrange(
        round * 10_000..<round * 10_000 + 7, with: Array("round \(round)".utf8))
      if round % 2 == 0 { try fs.fsync(handle) }
      try fs.close(handle)
      for name in names { try fs.expectContents(name, expected) }
    }
  }
}
