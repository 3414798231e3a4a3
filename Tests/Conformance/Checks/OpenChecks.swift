import Glibc

/// The flags of open(2).
enum OpenChecks {
  static let all: [Check] = [
    Check("openingAMissingNameFails", openingAMissingNameFails),
    Check("creatMakesAnEmptyFile", creatMakesAnEmptyFile),
    Check("creatAppliesTheUmask", creatAppliesTheUmask),
    Check("creatOpensAnExistingFileUnchanged", creatOpensAnExistingFileUnchanged),
    Check("exclMakesAMissingFile", exclMakesAMissingFile),
    Check("exclRefusesWhatExists", exclRefusesWhatExists),
    Check("creatThroughADanglingLinkMakesItsTarget", creatThroughADanglingLinkMakesItsTarget),
    Check("truncEmptiesAFile", truncEmptiesAFile),
    Check("truncEmptiesAFileOpenedForReading", truncEmptiesAFileOpenedForReading),
    Check("truncIsSeenByOtherHandlesAtOnce", truncIsSeenByOtherHandlesAtOnce),
    Check("truncThenNewContentReplaces", truncThenNewContentReplaces),
    Check("flushBeforeTheFirstByteLosesNothing", flushBeforeTheFirstByteLosesNothing),
    Check("accessModesAreKept", accessModesAreKept),
    Check("appendFromTwoHandlesInterleaves", appendFromTwoHandlesInterleaves),
    Check("appendIgnoresTheOffset", appendIgnoresTheOffset),
    Check("appendFollowsTruncation", appendFollowsTruncation),
    Check("appendToACommittedFileKeepsItsBeginning", appendToACommittedFileKeepsItsBeginning),
    Check("directoriesCannotBeOpenedForWriting", directoriesCannotBeOpenedForWriting),
    Check("openChecksTheKind", openChecksTheKind),
    Check("creatNeedsItsDirectory", creatNeedsItsDirectory),
    Check("aFileCreatedWithoutWritePermissionIsWritten", aFileCreatedWithoutPermissionIsWritten),
    Check("sixtyFourHandlesSeeOneFile", sixtyFourHandlesSeeOneFile),
    Check("closingUnchangedKeepsContentAndTimes", closingUnchangedKeepsContentAndTimes),
    Check("creatingTwiceOpensTheSameNewFile", creatingTwiceOpensTheSameNewFile),
    Check("aReaderSeesTheWriterAtOnce", aReaderSeesTheWriterAtOnce),
    Check("closingOneOfTwoWritersKeepsTheOther", closingOneOfTwoWritersKeepsTheOther),
  ]

  static func openingAMissingNameFails(_ fs: Volume) throws {
    for flags in [O_RDONLY, O_WRONLY, O_RDWR, O_RDWR | O_TRUNC, O_WRONLY | O_APPEND, O_EXCL] {
      try expectError(ENOENT) { try fs.open("a", flags) }
    }
    try fs.expectNames("", [])
  }

  static func creatMakesAnEmptyFile(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR, mode: 0o640)
    try expect(fs.stat("a").st_mode, S_IFREG | 0o640)
    try expect(fs.stat(.handle(handle)).st_size, 0)
    try expect(fs.stat(.handle(handle)).st_nlink, 1)
    try expect(fs.read(handle, 10), [])
    try fs.close(handle)
    try fs.expectContents("a", "")
    try fs.remount()
    try fs.expectContents("a", "")
    try expect(fs.stat("a").st_mode, S_IFREG | 0o640)
    try fs.expectNames("", ["a"])
  }

  static func creatAppliesTheUmask(_ fs: Volume) throws {
    // Test programs run under the usual umask of 022, and so says the driver without a process.
    umask(0o022)
    try fs.make("a", [], mode: 0o666)
    try fs.mkdir("d", mode: 0o777)
    try fs.mknod("p", S_IFIFO | 0o666)
    for _ in 0..<2 {
      try expect(fs.stat("a").st_mode, S_IFREG | 0o644)
      try expect(fs.stat("d").st_mode, S_IFDIR | 0o755)
      try expect(fs.stat("p").st_mode, S_IFIFO | 0o644)
      try fs.remount()
    }
  }

  static func creatOpensAnExistingFileUnchanged(_ fs: Volume) throws {
    try fs.make("a", "old", mode: 0o600)
    let handle = try fs.open("a", O_CREAT | O_RDWR, mode: 0o666)
    try fs.expectContents(handle, "old")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "old")
    try expect(fs.stat("a").st_mode, S_IFREG | 0o600)
  }

  static func exclMakesAMissingFile(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_EXCL | O_WRONLY)
    try fs.write(handle, "new")
    try expectError(EEXIST) { try fs.open("a", O_CREAT | O_EXCL | O_WRONLY) }
    try fs.close(handle)
    try expectError(EEXIST) { try fs.open("a", O_CREAT | O_EXCL | O_WRONLY) }
    try fs.remount()
    try fs.expectContents("a", "new")
  }

  static func exclRefusesWhatExists(_ fs: Volume) throws {
    try fs.make("file", "content")
    try fs.mkdir("directory")
    try fs.symlink("nowhere", "dangling")
    try fs.symlink("file", "link")
    for name: Path in ["file", "directory", "dangling", "link"] {
      try expectError(EEXIST) { try fs.open(name, O_CREAT | O_EXCL | O_RDWR | O_TRUNC) }
    }
    try fs.expectContents("file", "content")
    try fs.expectMissing("nowhere")
  }

  static func creatThroughADanglingLinkMakesItsTarget(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.symlink("d/target", "link")
    try fs.make("link", "x")
    try fs.remount()
    try fs.expectContents("d/target", "x")
    try expect(fs.stat(.link("link")).st_mode & S_IFMT, S_IFLNK)
  }

  static func truncEmptiesAFile(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR | O_TRUNC)
    try fs.expectContents(handle, "")
    try expect(fs.stat("a").st_size, 0)
    try fs.close(handle)
    try fs.expectContents("a", "")
    try fs.remount()
    try fs.expectContents("a", "")
  }

  static func truncEmptiesAFileOpenedForReading(_ fs: Volume) throws {
    try fs.make("a", pattern(5000))
    try fs.close(fs.open("a", O_RDONLY | O_TRUNC))
    try fs.expectContents("a", "")
    try fs.remount()
    try fs.expectContents("a", "")
  }

  static func truncIsSeenByOtherHandlesAtOnce(_ fs: Volume) throws {
    try fs.make("a", pattern(70_000))
    let reader = try fs.open("a")
    try expect(fs.read(reader, 10), pattern(10))
    let writer = try fs.open("a", O_WRONLY | O_TRUNC)
    try fs.expectContents(reader, "")
    try fs.write(writer, "new")
    try fs.expectContents(reader, "new")
    try fs.close(writer)
    try fs.expectContents(reader, "new")
    try fs.close(reader)
    try fs.remount()
    try fs.expectContents("a", "new")
  }

  static func truncThenNewContentReplaces(_ fs: Volume) throws {
    for (old, new) in [(10, 200_000), (200_000, 10), (65_536, 65_536), (0, 17), (17, 0)] {
      try fs.make("a", pattern(old, seed: 1))
      try fs.make("a", pattern(new, seed: 2))
      try fs.expectContents("a", pattern(new, seed: 2))
      try fs.remount()
      try fs.expectContents("a", pattern(new, seed: 2))
    }
  }

  /// A shell's `> photo` duplicates the descriptor and closes the first: a FLUSH before any byte.
  static func flushBeforeTheFirstByteLosesNothing(_ fs: Volume) throws {
    try fs.make("a", "old content")
    let handle = try fs.open("a", O_WRONLY | O_CREAT | O_TRUNC)
    try fs.closeDuplicate(handle)
    try fs.write(handle, "new")
    try fs.closeDuplicate(handle)
    try fs.write(handle, "er", at: 3)
    try fs.closeDuplicate(handle)
    try fs.expectContents("a", "newer")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "newer")
  }

  static func accessModesAreKept(_ fs: Volume) throws {
    try fs.make("a", "content")
    let reader = try fs.open("a")
    let writer = try fs.open("a", O_WRONLY)
    try expectError(EBADF) { try fs.write(reader, "x") }
    try expectError(EBADF) { try fs.read(writer, 1) }
    try expectError(EINVAL) { try fs.truncate(.handle(reader), to: 0) }
    try fs.close(reader)
    try fs.close(writer)
    try fs.expectContents("a", "content")
  }

  static func appendFromTwoHandlesInterleaves(_ fs: Volume) throws {
    let first = try fs.open("a", O_CREAT | O_WRONLY | O_APPEND)
    let second = try fs.open("a", O_WRONLY | O_APPEND)
    var expected: [UInt8] = []
    for round in 0..<20 {
      for handle in [first, second] {
        let piece = pattern(1000 + 7 * round, seed: UInt64(expected.count))
        try fs.write(handle, piece)
        expected += piece
      }
    }
    try fs.expectContents("a", expected)
    try fs.close(first)
    try fs.write(second, "end")
    try fs.close(second)
    try fs.expectContents("a", expected + Array("end".utf8))
    try fs.remount()
    try fs.expectContents("a", expected + Array("end".utf8))
  }

  static func appendIgnoresTheOffset(_ fs: Volume) throws {
    try fs.make("a", "12345")
    let handle = try fs.open("a", O_RDWR | O_APPEND)
    try fs.write(handle, "67", at: 0)
    try fs.write(handle, "89", at: 1_000_000)
    try fs.expectContents(handle, "123456789")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "123456789")
  }

  static func appendFollowsTruncation(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR | O_APPEND)
    try fs.write(handle, pattern(70_000))
    try fs.truncate(.handle(handle), to: 3)
    try fs.write(handle, "abc")
    try fs.truncate("a", to: 10)
    try fs.write(handle, "end")
    let expected = pattern(3) + Array("abc".utf8) + zeros(4) + Array("end".utf8)
    try fs.expectContents(handle, expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func appendToACommittedFileKeepsItsBeginning(_ fs: Volume) throws {
    var expected: [UInt8] = []
    for (round, size) in [1, 15, 4096, 65_535, 1, 65_537, 100].enumerated() {
      let handle = try fs.open("a", O_CREAT | O_WRONLY | O_APPEND)
      let piece = pattern(size, seed: UInt64(round))
      try fs.write(handle, piece)
      try fs.close(handle)
      expected += piece
      try fs.expectContents("a", expected)
      if round % 2 == 0 { try fs.remount() }
    }
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func directoriesCannotBeOpenedForWriting(_ fs: Volume) throws {
    try fs.mkdir("d")
    for flags in [O_WRONLY, O_RDWR, O_CREAT | O_RDONLY, O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND] {
      try expectError(EISDIR) { try fs.open("d", flags) }
    }
    try fs.close(fs.open("d", O_RDONLY | O_DIRECTORY))
  }

  static func openChecksTheKind(_ fs: Volume) throws {
    try fs.make("file", "x")
    try fs.symlink("file", "link")
    try fs.mknod("socket", S_IFSOCK | 0o600)
    try expectError(ENOTDIR) { try fs.open("file", O_RDONLY | O_DIRECTORY) }
    try expectError(ENOTDIR) { try fs.open("file/", O_RDONLY) }
    try expectError(ELOOP) { try fs.open("link", O_RDONLY | O_NOFOLLOW) }
    try expectError(ENXIO) { try fs.open("socket", O_RDONLY) }
    try expectError(EISDIR) { try fs.open("new/", O_CREAT | O_WRONLY) }
    try fs.expectMissing("new")
    try fs.expectContents("link", "x")
  }

  static func creatNeedsItsDirectory(_ fs: Volume) throws {
    try fs.make("file", "x")
    try expectError(ENOENT) { try fs.open("missing/a", O_CREAT | O_WRONLY) }
    try expectError(ENOTDIR) { try fs.open("file/a", O_CREAT | O_WRONLY) }
    try expectError(ENOTDIR) { try fs.open("file/a", O_RDONLY) }
    try fs.expectNames("", ["file"])
  }

  static func aFileCreatedWithoutPermissionIsWritten(_ fs: Volume) throws {
    for mode: mode_t in [0o400, 0o000, 0o444] {
      let handle = try fs.open("a", O_CREAT | O_EXCL | O_RDWR, mode: mode)
      try fs.write(handle, pattern(70_000))
      try fs.close(handle)
      try fs.remount()
      try expect(fs.stat("a").st_mode, S_IFREG | mode)
      try fs.chmod("a", 0o600)
      try fs.expectContents("a", pattern(70_000))
      try fs.unlink("a")
    }
  }

  static func sixtyFourHandlesSeeOneFile(_ fs: Volume) throws {
    let size = 3000
    let handles = try (0..<64).map { _ in try fs.open("a", O_CREAT | O_RDWR) }
    var expected: [UInt8] = []
    for (number, handle) in handles.enumerated() {
      let piece = pattern(size, seed: UInt64(number))
      try fs.write(handle, piece, at: Int64(expected.count))
      expected += piece
    }
    for handle in handles {
      try expect(fs.stat(.handle(handle)).st_size, expected.count)
      try expect(fs.contents(handle), expected)
    }
    for handle in handles.dropLast() { try fs.close(handle) }
    if let last = handles.last {
      try fs.write(last, "last", at: 100)
      try fs.close(last)
    }
    expected.replaceSubrange(100..<104, with: Array("last".utf8))
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func closingUnchangedKeepsContentAndTimes(_ fs: Volume) throws {
    try fs.make("a", pattern(70_000))
    try fs.utimens("a", .seconds(1000, 1), .seconds(2000, 2))
    let before = try fs.stat("a")
    for flags in [O_RDWR, O_WRONLY, O_CREAT | O_RDWR, O_WRONLY | O_APPEND] {
      let handle = try fs.open("a", flags)
      try fs.write(handle, [])
      try fs.fsync(handle)
      try fs.closeDuplicate(handle)
      try fs.close(handle)
    }
    try expect(fs.stat("a").st_mtim.total, before.st_mtim.total)
    try expect(fs.stat("a").st_ino, before.st_ino)
    try fs.remount()
    try expect(fs.stat("a").st_mtim.total, before.st_mtim.total)
    try fs.expectContents("a", pattern(70_000))
  }

  static func creatingTwiceOpensTheSameNewFile(_ fs: Volume) throws {
    let first = try fs.open("a", O_CREAT | O_RDWR)
    let second = try fs.open("a", O_CREAT | O_RDWR)
    try expect(fs.stat(.handle(first)).st_ino, fs.stat(.handle(second)).st_ino)
    try fs.write(first, "one")
    try fs.expectContents(second, "one")
    try fs.write(second, "two", at: 3)
    try fs.expectContents(first, "onetwo")
    try fs.close(first)
    try fs.close(second)
    try fs.remount()
    try fs.expectContents("a", "onetwo")
  }

  static func aReaderSeesTheWriterAtOnce(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    var expected = pattern(100_000)
    let reader = try fs.open("a")
    try fs.expectContents(reader, expected)
    let writer = try fs.open("a", O_WRONLY)
    for offset in stride(from: 0, to: 120_000, by: 17_000) {
      let piece = pattern(500, seed: UInt64(offset))
      try fs.write(writer, piece, at: Int64(offset))
      if offset + 500 > expected.count { expected += zeros(offset + 500 - expected.count) }
      expected.replaceSubrange(offset..<offset + 500, with: piece)
      try fs.expectContents(reader, expected)
    }
    try fs.close(writer)
    try fs.expectContents(reader, expected)
    try fs.close(reader)
  }

  static func closingOneOfTwoWritersKeepsTheOther(_ fs: Volume) throws {
    let first = try fs.open("a", O_CREAT | O_WRONLY)
    let second = try fs.open("a", O_RDWR)
    try fs.write(first, pattern(70_000))
    try fs.close(first)
    try fs.write(second, "more", at: 70_000)
    try fs.write(second, "X", at: 10)
    var expected = pattern(70_000) + Array("more".utf8)
    expected[10] = UInt8(ascii: "X")
    try fs.expectContents(second, expected)
    try fs.close(second)
    try fs.remount()
    try fs.expectContents("a", expected)
  }
}
