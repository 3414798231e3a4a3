import Glibc

/// Times that are set, and times that operations set.
enum TimeChecks {
  static let all: [Check] = [
    Check("timesAreKeptToTheNanosecond", timesAreKeptToTheNanosecond),
    Check("timesFarAwayAreKept", timesFarAwayAreKept),
    Check("omittedTimesStay", omittedTimesStay),
    Check("nowIsNow", nowIsNow),
    Check("timesSetWhileWritingSurviveTheCommit", timesSetWhileWritingSurviveTheCommit),
    Check("timesSetByPathWhileWritingSurviveTheCommit", timesSetByPathWhileWriting),
    Check("timesSetThenWrittenAreNew", timesSetThenWrittenAreNew),
    Check("timesSetAfterFsyncSurvive", timesSetAfterFsyncSurvive),
    Check("writingChangesTheTimes", writingChangesTheTimes),
    Check("truncatingChangesTheTimes", truncatingChangesTheTimes),
    Check("readingKeepsTheModificationTime", readingKeepsTheModificationTime),
    Check("changingAttributesChangesOnlyTheChangeTime", changingAttributesChangesOnlyCtime),
    Check("linkingAndRenamingChangeTheChangeTime", linkingAndRenamingChangeTheChangeTime),
    Check("aDirectorysTimesFollowItsEntries", aDirectorysTimesFollowItsEntries),
    Check("aDirectorysTimesIgnoreContents", aDirectorysTimesIgnoreContents),
    Check("aDirectorysTimesSurviveALateClose", aDirectorysTimesSurviveALateClose),
    Check("committedTimesAreThoseOfTheLastWrite", committedTimesAreThoseOfTheLastWrite),
    Check("newFilesHaveNewTimes", newFilesHaveNewTimes),
  ]

  private static let old = timespec.seconds(1_000_000_000, 123_456_789)

  private static func age(_ fs: Volume, _ paths: Subject...) throws {
    for path in paths { try fs.utimens(path, old, old) }
  }

  private static func expectOld(
    _ fs: Volume, _ subject: Subject, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try expect(fs.stat(subject, file, line).st_mtim.total, old.total, "\(subject)", file, line)
  }

  private static func expectNew(
    _ fs: Volume, _ subject: Subject, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    // The kernel's coarse clock is up to a tick behind; a commit must not be minutes late either.
    let age = timeNow().total - (try fs.stat(subject, file, line).st_mtim.total)
    try expect(age > -1_000_000_000 && age < 60_000_000_000, "\(subject): age \(age)", file, line)
  }

  private static func timeNow() -> timespec {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time
  }

  /// The change time moves on in `body`; long enough apart for a clock of 100 Hz.
  private static func expectCtimeMoves(
    _ fs: Volume, _ before: Subject, _ after: Subject, _ what: String,
    _ file: StaticString = #filePath, _ line: UInt = #line, _ body: () throws -> Void
  ) throws {
    let first = try fs.stat(before, file, line).st_ctim.total
    usleep(25_000)
    try body()
    let second = try fs.stat(after, file, line).st_ctim.total
    try expect(second > first, "\(what) leaves the change time", file, line)
  }

  static func timesAreKeptToTheNanosecond(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("a", "link")
    for path: Subject in ["a", "d", .link("link")] {
      try fs.utimens(path, .seconds(1_500_000_000, 1), .seconds(1_600_000_000, 999_999_999))
    }
    for round in 0..<2 {
      for path: Subject in ["a", "d", .link("link")] {
        let status = try fs.stat(path)
        try expect(status.st_mtim.total, timespec.seconds(1_600_000_000, 999_999_999).total)
        if round == 0 { try expect(status.st_atim.total, timespec.seconds(1_500_000_000, 1).total) }
      }
      try fs.remount()
    }
  }

  static func timesFarAwayAreKept(_ fs: Volume) throws {
    try fs.make("a", "x")
    for seconds in [0, 1, -1, -1_000_000_000, 2_147_483_647, 2_147_483_648, 4_294_967_296] {
      try fs.utimens("a", .seconds(seconds, 5), .seconds(seconds, 6))
      try fs.remount()
      try expect(fs.stat("a").st_mtim.total, timespec.seconds(seconds, 6).total)
    }
    let handle = try fs.open("a", O_RDWR)
    try fs.write(handle, "y")
    try fs.utimens(.handle(handle), .seconds(-5, 1), .seconds(-6, 2))
    try fs.close(handle)
    try fs.remount()
    try expect(fs.stat("a").st_mtim.total, timespec.seconds(-6, 2).total)
  }

  static func omittedTimesStay(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.utimens("a", .seconds(10, 1), .seconds(20, 2))
    try fs.utimens("a", .omit, .seconds(30, 3))
    try expect(fs.stat("a").st_atim.total, timespec.seconds(10, 1).total)
    try expect(fs.stat("a").st_mtim.total, timespec.seconds(30, 3).total)
    try fs.utimens("a", .seconds(40, 4), .omit)
    try expect(fs.stat("a").st_atim.total, timespec.seconds(40, 4).total)
    try expect(fs.stat("a").st_mtim.total, timespec.seconds(30, 3).total)
    try fs.utimens("a", .omit, .omit)
    try expect(fs.stat("a").st_mtim.total, timespec.seconds(30, 3).total)
  }

  static func nowIsNow(_ fs: Volume) throws {
    try fs.make("a", "x")
    try age(fs, "a")
    try fs.utimens("a", .omit, .now)
    try expectNew(fs, "a")
    try expect(fs.stat("a").st_atim.total, old.total)
    try age(fs, "a")
    try fs.utimens("a", .now, .omit)
    try expectOld(fs, "a")
  }

  static func timesSetWhileWritingSurviveTheCommit(_ fs: Volume) throws {
    try fs.make("old", pattern(1000))
    for (name, flags) in [("new", O_CREAT | O_RDWR), ("old", O_RDWR), ("old", O_RDWR | O_TRUNC)] {
      for size in [0, 10, 200_000] {
        let handle = try fs.open(Path(name), flags)
        try fs.write(handle, pattern(size))
        try fs.utimens(.handle(handle), old, old)
        try expectOld(fs, .handle(handle))
        try expectOld(fs, .path(Path(name)))
        try fs.closeDuplicate(handle)
        try fs.close(handle)
        try expectOld(fs, .path(Path(name)))
        try fs.remount()
        try expectOld(fs, .path(Path(name)))
      }
    }
  }

  static func timesSetByPathWhileWriting(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try age(fs, "a")
    try fs.chmod("a", 0o600)
    try fs.setxattr("a", "user.x", [1])
    try fs.link("a", "b")
    try fs.rename("a", "c")
    try fs.close(handle)
    for _ in 0..<2 {
      try expectOld(fs, "b")
      try expectOld(fs, "c")
      try fs.remount()
    }
  }

  static func timesSetThenWrittenAreNew(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "x")
    try age(fs, .handle(handle))
    try fs.write(handle, "y", at: 1)
    try expectNew(fs, .handle(handle))
    try fs.close(handle)
    try expectNew(fs, "a")
    try fs.remount()
    try expectNew(fs, "a")
  }

  static func timesSetAfterFsyncSurvive(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.fsync(handle)
    try age(fs, .handle(handle))
    try fs.fsync(handle)
    try expectOld(fs, "a")
    try fs.close(handle)
    try expectOld(fs, "a")
    try fs.remount()
    try expectOld(fs, "a")
  }

  static func writingChangesTheTimes(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    for size in [1, 70_000] {
      try age(fs, "a")
      let handle = try fs.open("a", O_RDWR)
      try expectOld(fs, "a")
      try expectCtimeMoves(fs, "a", "a", "write") { try fs.write(handle, zeros(size)) }
      try expectNew(fs, "a")
      try fs.close(handle)
      try expectNew(fs, "a")
      try fs.remount()
      try expectNew(fs, "a")
    }
  }

  static func truncatingChangesTheTimes(_ fs: Volume) throws {
    try fs.make("a", pattern(1000))
    for size: Int64 in [500, 2000, 0, 1] {
      try age(fs, "a")
      try expectCtimeMoves(fs, "a", "a", "truncate") { try fs.truncate("a", to: size) }
      try expectNew(fs, "a")
    }
    try age(fs, "a")
    let handle = try fs.open("a", O_WRONLY | O_TRUNC)
    try expectNew(fs, "a")
    try fs.close(handle)
    try expectNew(fs, "a")
    try fs.remount()
    try expectNew(fs, "a")
  }

  static func readingKeepsTheModificationTime(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    try fs.mkdir("d")
    try age(fs, "a", "d")
    let ctime = try fs.stat("a").st_ctim.total
    try fs.expectContents("a", pattern(100_000))
    try fs.expectNames("d", [])
    try expectOld(fs, "a")
    try expectOld(fs, "d")
    try expect(fs.stat("a").st_ctim.total, ctime)
  }

  static func changingAttributesChangesOnlyCtime(_ fs: Volume) throws {
    try fs.make("a", "x")
    try age(fs, "a")
    try expectCtimeMoves(fs, "a", "a", "chmod") { try fs.chmod("a", 0o600) }
    try expectCtimeMoves(fs, "a", "a", "chown") { try fs.chown("a", geteuid(), getegid()) }
    try expectCtimeMoves(fs, "a", "a", "utimens") { try age(fs, "a") }
    try expectCtimeMoves(fs, "a", "a", "setxattr") { try fs.setxattr("a", "user.x", [1]) }
    try expectCtimeMoves(fs, "a", "a", "removexattr") { try fs.removexattr("a", "user.x") }
    try expectOld(fs, "a")
    try fs.mkdir("d")
    try age(fs, "d")
    try expectCtimeMoves(fs, "d", "d", "chmod") { try fs.chmod("d", 0o700) }
    try expectOld(fs, "d")
  }

  static func linkingAndRenamingChangeTheChangeTime(_ fs: Volume) throws {
    try fs.make("a", "x")
    try age(fs, "a")
    try expectCtimeMoves(fs, "a", "a", "link") { try fs.link("a", "b") }
    try expectCtimeMoves(fs, "a", "c", "rename") { try fs.rename("a", "c") }
    try expectCtimeMoves(fs, "b", "b", "unlink of another name") { try fs.unlink("c") }
    try expectOld(fs, "b")
    try fs.remount()
    try expectOld(fs, "b")
  }

  static func aDirectorysTimesFollowItsEntries(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("e")
    try fs.make("outside", "x")
    let changes: [(String, () throws -> Void)] = [
      ("create", { try fs.close(fs.open("d/a", O_CREAT | O_WRONLY)) }),
      ("mkdir", { try fs.mkdir("d/sub") }),
      ("symlink", { try fs.symlink("x", "d/link") }),
      ("mknod", { try fs.mknod("d/fifo", S_IFIFO | 0o600) }),
      ("link", { try fs.link("outside", "d/hard") }),
      ("rename within", { try fs.rename("d/a", "d/b") }),
      ("rename out", { try fs.rename("d/b", "e/b") }),
      ("rename in", { try fs.rename("e/b", "d/b") }),
      ("unlink", { try fs.unlink("d/b") }),
      ("unlink of a link", { try fs.unlink("d/hard") }),
      ("rmdir", { try fs.rmdir("d/sub") }),
    ]
    for (what, change) in changes {
      try age(fs, "d")
      try expectCtimeMoves(fs, "d", "d", what) { try change() }
      let mtime = try fs.stat("d").st_mtim.total
      try expect(mtime > old.total, "\(what) leaves the directory's modification time")
    }
    try expectNew(fs, "d")
    try fs.remount()
    try expectNew(fs, "d")
  }

  static func aDirectorysTimesIgnoreContents(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "x")
    try age(fs, "d")
    let handle = try fs.open("d/a", O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.fsync(handle)
    try fs.write(handle, "y")
    try fs.close(handle)
    try fs.chmod("d/a", 0o600)
    try fs.truncate("d/a", to: 5)
    try fs.setxattr("d/a", "user.x", [1])
    try fs.make("d/a", "rewritten")
    try expectOld(fs, "d")
    try fs.remount()
    try expectOld(fs, "d")
  }

  static func aDirectorysTimesSurviveALateClose(_ fs: Volume) throws {
    try fs.mkdir("d")
    let handle = try fs.open("d/a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try age(fs, "d")
    try fs.fsync(handle)
    try expectOld(fs, "d")
    try fs.write(handle, "more", at: 100_000)
    try fs.close(handle)
    try expectOld(fs, "d")
    try fs.remount()
    try expectOld(fs, "d")
  }

  static func committedTimesAreThoseOfTheLastWrite(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    let written = try fs.stat("a").st_mtim.total
    usleep(300_000)
    try fs.fsync(handle)
    try expect(fs.stat("a").st_mtim.total, written)
    try fs.close(handle)
    try expect(fs.stat("a").st_mtim.total, written)
    try fs.remount()
    try expect(fs.stat("a").st_mtim.total, written)
  }

  static func newFilesHaveNewTimes(_ fs: Volume) throws {
    try fs.make("a")
    try fs.mkdir("d")
    try fs.symlink("x", "link")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    for path: Subject in ["a", "d", .link("link"), "fifo"] {
      try expectNew(fs, path)
      let status = try fs.stat(path)
      try expect(abs(status.st_atim.total - status.st_mtim.total) < 1_000_000_000, "access time")
      try expect(status.st_ctim.total >= status.st_mtim.total - 1_000_000_000, "change time")
    }
  }
}
