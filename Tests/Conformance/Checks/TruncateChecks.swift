import Glibc

/// truncate(2) and ftruncate(2).
enum TruncateChecks {
  static let all: [Check] = [
    Check("truncatingByPathCutsAtEverySize", truncatingByPathCutsAtEverySize),
    Check("truncatingByPathExtendsWithZeros", truncatingByPathExtendsWithZeros),
    Check("truncatingAnOpenFileCutsAndExtends", truncatingAnOpenFileCutsAndExtends),
    Check("shrinkingThenExtendingShowsZeros", shrinkingThenExtendingShowsZeros),
    Check("shrinkingThenExtendingAcrossCommitsShowsZeros", shrinkingThenExtendingAcrossCommits),
    Check("shrinkingThenWritingBeyondShowsZeros", shrinkingThenWritingBeyondShowsZeros),
    Check("truncatingToTheSameSizeChangesNothing", truncatingToTheSameSizeChangesNothing),
    Check("truncatingWhileAnotherHandleWritesLeavesAHole", truncatingWhileAnotherWrites),
    Check("aReaderSeesTheNewEndAtOnce", aReaderSeesTheNewEndAtOnce),
    Check("truncatingAStreamingFileByPath", truncatingAStreamingFileByPath),
    Check("truncatingAStreamingFileThenGoingOn", truncatingAStreamingFileThenGoingOn),
    Check("truncatingANewFileMakesZeros", truncatingANewFileMakesZeros),
    Check("truncatingFollowsSymbolicLinks", truncatingFollowsSymbolicLinks),
    Check("truncatingWhatIsNoFileFails", truncatingWhatIsNoFileFails),
    Check("truncatingAFileOpenedByTruncCounts", truncatingAFileOpenedByTruncCounts),
    Check("extendingByMegabytesIsZeros", extendingByMegabytesIsZeros),
  ]

  static func truncatingByPathCutsAtEverySize(_ fs: Volume) throws {
    let content = pattern(140_000)
    let sizes = [0, 1, 15, 16, 17, 4095, 4096, 65_535, 65_536, 65_537, 131_072, 139_999]
    for size in sizes {
      try fs.make("f\(size)", content)
      try fs.truncate("f\(size)", to: Int64(size))
      try fs.expectContents("f\(size)", Array(content[..<size]))
    }
    try fs.remount()
    for size in sizes { try fs.expectContents("f\(size)", Array(content[..<size])) }
  }

  static func truncatingByPathExtendsWithZeros(_ fs: Volume) throws {
    for (old, new) in [(0, 1), (1, 16), (16, 17), (10, 4096), (4097, 65_536), (65_536, 200_000)] {
      let name = Path("f\(old)")
      try fs.make(name, pattern(old))
      try fs.truncate(.path(name), to: Int64(new))
      try fs.expectContents(name, pattern(old) + zeros(new - old))
      try fs.remount()
      try fs.expectContents(name, pattern(old) + zeros(new - old))
    }
  }

  static func truncatingAnOpenFileCutsAndExtends(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.truncate(.handle(handle), to: 70_000)
    try fs.expectContents(handle, Array(pattern(100_000)[..<70_000]))
    try fs.truncate(.handle(handle), to: 90_000)
    let expected = Array(pattern(100_000)[..<70_000]) + zeros(20_000)
    try fs.expectContents(handle, expected)
    try fs.expectContents("a", expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func shrinkingThenExtendingShowsZeros(_ fs: Volume) throws {
    for size in [1, 17, 4097, 65_535, 100_000] {
      try fs.make("a", pattern(150_000))
      let handle = try fs.open("a", O_RDWR)
      try fs.truncate(.handle(handle), to: Int64(size))
      try fs.truncate(.handle(handle), to: 150_000)
      let expected = Array(pattern(150_000)[..<size]) + zeros(150_000 - size)
      try fs.expectContents(handle, expected)
      try fs.close(handle)
      try fs.remount()
      try fs.expectContents("a", expected)
    }
  }

  static func shrinkingThenExtendingAcrossCommits(_ fs: Volume) throws {
    try fs.make("a", pattern(150_000))
    try fs.truncate("a", to: 5000)
    try fs.truncate("a", to: 80_000)
    try fs.truncate("a", to: 70_000)
    try fs.truncate("a", to: 150_000)
    let expected = Array(pattern(150_000)[..<5000]) + zeros(145_000)
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func shrinkingThenWritingBeyondShowsZeros(_ fs: Volume) throws {
    try fs.make("a", pattern(150_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.truncate(.handle(handle), to: 1001)
    try fs.write(handle, "end", at: 140_000)
    let expected = Array(pattern(150_000)[..<1001]) + zeros(138_999) + Array("end".utf8)
    try fs.expectContents(handle, expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func truncatingToTheSameSizeChangesNothing(_ fs: Volume) throws {
    try fs.make("a", pattern(70_000))
    try fs.truncate("a", to: 70_000)
    let handle = try fs.open("a", O_WRONLY)
    try fs.truncate(.handle(handle), to: 70_000)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", pattern(70_000))
  }

  static func truncatingWhileAnotherWrites(_ fs: Volume) throws {
    let writer = try fs.open("a", O_CREAT | O_WRONLY)
    let cutter = try fs.open("a", O_RDWR)
    try fs.write(writer, pattern(100_000))
    try fs.truncate(.handle(cutter), to: 10)
    try fs.write(writer, "more", at: 100_000)
    let expected = pattern(100_000).prefix(10) + zeros(99_990) + Array("more".utf8)
    try fs.expectContents(cutter, Array(expected))
    try fs.close(cutter)
    try fs.close(writer)
    try fs.remount()
    try fs.expectContents("a", Array(expected))
  }

  static func aReaderSeesTheNewEndAtOnce(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let reader = try fs.open("a")
    try fs.expectContents(reader, pattern(100_000))
    try fs.truncate("a", to: 50_001)
    try fs.expectContents(reader, Array(pattern(100_000)[..<50_001]))
    try fs.truncate("a", to: 0)
    try fs.expectContents(reader, "")
    try fs.truncate("a", to: 3)
    try fs.expectContents(reader, [0, 0, 0])
    try fs.close(reader)
  }

  static func truncatingAStreamingFileByPath(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(2_000_000))
    try fs.truncate("a", to: 1_500_000)
    try fs.expectContents(handle, Array(pattern(2_000_000)[..<1_500_000]))
    try fs.truncate("a", to: 0)
    try fs.expectContents(handle, "")
    try fs.write(handle, "afresh")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "afresh")
  }

  static func truncatingAStreamingFileThenGoingOn(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    try fs.write(handle, pattern(200_000))
    try fs.truncate(.handle(handle), to: 150_000)
    try fs.write(handle, pattern(100_000, seed: 2), at: 150_000)
    try fs.truncate(.handle(handle), to: 300_000)
    try fs.write(handle, pattern(1000, seed: 3), at: 300_000)
    try fs.close(handle)
    let expected =
      Array(pattern(200_000)[..<150_000]) + pattern(100_000, seed: 2) + zeros(50_000)
      + pattern(1000, seed: 3)
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func truncatingANewFileMakesZeros(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.truncate(.handle(handle), to: 100_000)
    try fs.expectContents(handle, zeros(100_000))
    try fs.close(handle)
    try fs.make("b")
    try fs.truncate("b", to: 65_536)
    try fs.remount()
    try fs.expectContents("a", zeros(100_000))
    try fs.expectContents("b", zeros(65_536))
  }

  static func truncatingFollowsSymbolicLinks(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.symlink("a", "link")
    try fs.truncate("link", to: 4)
    try fs.remount()
    try fs.expectContents("a", "cont")
  }

  static func truncatingWhatIsNoFileFails(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mknod("fifo", S_IFIFO | 0o644)
    try expectError(EISDIR) { try fs.truncate("d", to: 0) }
    try expectError(EINVAL) { try fs.truncate("fifo", to: 0) }
    try expectError(ENOENT) { try fs.truncate("missing", to: 0) }
    try expectError(ENOTDIR) { try fs.truncate("fifo/a", to: 0) }
  }

  static func truncatingAFileOpenedByTruncCounts(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR | O_TRUNC)
    try fs.truncate(.handle(handle), to: 50_000)
    try fs.expectContents(handle, zeros(50_000))
    try fs.write(handle, "x", at: 60_000)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", zeros(60_000) + [UInt8(ascii: "x")])
  }

  static func extendingByMegabytesIsZeros(_ fs: Volume) throws {
    try fs.make("a", "head")
    try fs.truncate("a", to: 10 << 20)
    try expect(fs.stat("a").st_size, 10 << 20)
    try fs.remount()
    try fs.expectContents("a", Array("head".utf8) + zeros((10 << 20) - 4))
  }
}
