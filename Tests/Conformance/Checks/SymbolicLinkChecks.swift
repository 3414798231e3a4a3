import Glibc

/// Symbolic links, fifos and sockets.
enum SymbolicLinkChecks {
  static let all: [Check] = [
    Check("symbolicLinksComeBack", symbolicLinksComeBack),
    Check("targetsOfAnyBytesComeBack", targetsOfAnyBytesComeBack),
    Check("longTargetsComeBack", longTargetsComeBack),
    Check("overlongTargetsAreRefused", overlongTargetsAreRefused),
    Check("danglingLinksAreLinks", danglingLinksAreLinks),
    Check("linksToDirectoriesAreWalked", linksToDirectoriesAreWalked),
    Check("linksInCirclesFail", linksInCirclesFail),
    Check("chainsOfLinksAreFollowed", chainsOfLinksAreFollowed),
    Check("readlinkOfWhatIsNoLinkFails", readlinkOfWhatIsNoLinkFails),
    Check("symlinkRefusesWhatExists", symlinkRefusesWhatExists),
    Check("linksHaveTimesAndOwnersOfTheirOwn", linksHaveTimesAndOwnersOfTheirOwn),
    Check("writingThroughALinkReachesItsTarget", writingThroughALinkReachesItsTarget),
    Check("fifosAndSocketsComeBack", fifosAndSocketsComeBack),
    Check("mknodMakesARegularFile", mknodMakesARegularFile),
    Check("mknodRefusesWhatExists", mknodRefusesWhatExists),
  ]

  static func symbolicLinksComeBack(_ fs: Volume) throws {
    let target = "some/where/photo.jpg"
    try fs.symlink(Path(target), "link")
    for _ in 0..<2 {
      try expect(fs.readlink("link"), Array(target.utf8))
      let status = try fs.stat(.link("link"))
      try expect(status.st_mode & S_IFMT, S_IFLNK)
      try expect(status.st_size, target.utf8.count)
      try expect(status.st_nlink, 1)
      try fs.expectNames("", ["link"])
      try fs.remount()
    }
  }

  static func targetsOfAnyBytesComeBack(_ fs: Volume) throws {
    let targets: [[UInt8]] = [
      Array(1...255), [0xFF, 0xFE], Array("/absolute/target".utf8), Array("..".utf8),
      Array(".".utf8), Array("/".utf8), Array("a.securedData".utf8), [0x0A], Array(" ".utf8),
    ]
    for (number, target) in targets.enumerated() { try fs.symlink(Path(target), "l\(number)") }
    for _ in 0..<2 {
      for (number, target) in targets.enumerated() {
        try expect(fs.readlink("l\(number)"), target)
        try expect(fs.stat(.link(Path("l\(number)"))).st_size, target.count)
      }
      try fs.remount()
    }
    try expectError(ENOENT) { try fs.symlink("", "empty") }
  }

  static func longTargetsComeBack(_ fs: Volume) throws {
    for size in [59, 60, 61, 255, 256, 1000, 2000, 3000] {
      try fs.symlink(Path([UInt8](repeating: 0x78, count: size)), "l\(size)")
    }
    try fs.remount()
    for size in [59, 60, 61, 255, 256, 1000, 2000, 3000] {
      try expect(fs.readlink("l\(size)"), [UInt8](repeating: 0x78, count: size))
      try expect(fs.stat(.link(Path("l\(size)"))).st_size, size)
    }
  }

  static func overlongTargetsAreRefused(_ fs: Volume) throws {
    try expectError(ENAMETOOLONG) {
      try fs.symlink(Path([UInt8](repeating: 0x78, count: 4096)), "link")
    }
    try fs.expectNames("", [])
  }

  static func danglingLinksAreLinks(_ fs: Volume) throws {
    try fs.symlink("nowhere", "link")
    try expectError(ENOENT) { try fs.stat("link") }
    try expectError(ENOENT) { try fs.open("link") }
    try expectError(ENOENT) { try fs.truncate("link", to: 0) }
    try expect(fs.stat(.link("link")).st_mode & S_IFMT, S_IFLNK)
    try fs.make("nowhere", "found")
    try fs.expectContents("link", "found")
  }

  static func linksToDirectoriesAreWalked(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try fs.make("d/e/a", "x")
    try fs.symlink("d/e", "link")
    try fs.symlink("../../d", "d/e/back")
    try fs.expectContents("link/a", "x")
    try fs.expectContents("link/back/e/back/e/a", "x")
    try expect(fs.stat("link/").st_mode & S_IFMT, S_IFDIR)
    try expect(fs.stat(.link("link/")).st_mode & S_IFMT, S_IFDIR)
    try fs.make("link/b", "made through the link")
    try fs.remount()
    try fs.expectContents("d/e/b", "made through the link")
    try fs.expectNames("link", ["a", "b", "back"])
  }

  static func linksInCirclesFail(_ fs: Volume) throws {
    try fs.symlink("self", "self")
    try fs.symlink("b", "a")
    try fs.symlink("a", "b")
    for name in ["self", "a", "b", "a/x"] {
      try expectError(ELOOP) { try fs.stat(.path(Path(name))) }
      try expectError(ELOOP) { try fs.open(Path(name)) }
      try expectError(ELOOP) { try fs.open(Path(name), O_CREAT | O_WRONLY) }
    }
    try fs.rename("a", "c")
    try expectError(ENOENT) { try fs.stat("b") }
  }

  static func chainsOfLinksAreFollowed(_ fs: Volume) throws {
    try fs.make("l0", "x")
    for number in 1...41 { try fs.symlink("l\(number - 1)", "l\(number)") }
    try fs.expectContents("l40", "x")
    try expectError(ELOOP) { try fs.open("l41") }
  }

  static func readlinkOfWhatIsNoLinkFails(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    for name: Path in ["a", "d", "fifo"] { try expectError(EINVAL) { try fs.readlink(name) } }
    try expectError(ENOENT) { try fs.readlink("missing") }
  }

  static func symlinkRefusesWhatExists(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("nowhere", "link")
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    for name: Path in ["a", "d", "link", "new"] {
      try expectError(EEXIST) { try fs.symlink("other", name) }
    }
    try fs.close(handle)
    try expect(fs.readlink("link"), Array("nowhere".utf8))
    try fs.expectContents("a", "x")
  }

  static func linksHaveTimesAndOwnersOfTheirOwn(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.utimens("a", .seconds(1, 1), .seconds(2, 2))
    try fs.symlink("a", "link")
    try fs.utimens(.link("link"), .seconds(3, 3), .seconds(4, 4))
    if geteuid() == 0 { try fs.chown(.link("link"), 1234, 4321) }
    for _ in 0..<2 {
      try expect(fs.stat(.link("link")).st_mtim.total, timespec.seconds(4, 4).total)
      try expect(fs.stat("a").st_mtim.total, timespec.seconds(2, 2).total)
      if geteuid() == 0 {
        try expect(fs.stat(.link("link")).st_uid, 1234)
        try expect(fs.stat(.link("link")).st_gid, 4321)
        try expect(fs.stat("a").st_uid, 0)
      }
      try fs.remount()
    }
    try fs.utimens("link", .seconds(5, 5), .seconds(6, 6))
    try expect(fs.stat("a").st_mtim.total, timespec.seconds(6, 6).total)
  }

  static func writingThroughALinkReachesItsTarget(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "old")
    try fs.symlink("d/a", "link")
    let handle = try fs.open("link", O_RDWR)
    try fs.write(handle, "new content")
    try fs.unlink("link")
    try fs.write(handle, "!", at: 11)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("d/a", "new content!")
    try fs.expectNames("", ["d"])
  }

  static func fifosAndSocketsComeBack(_ fs: Volume) throws {
    try fs.mknod("fifo", S_IFIFO | 0o640)
    try fs.mknod("socket", S_IFSOCK | 0o600)
    try fs.utimens("fifo", .seconds(1, 1), .seconds(2, 2))
    for _ in 0..<2 {
      try expect(fs.stat("fifo").st_mode, S_IFIFO | 0o640)
      try expect(fs.stat("socket").st_mode, S_IFSOCK | 0o600)
      try expect(fs.stat("fifo").st_mtim.total, timespec.seconds(2, 2).total)
      try expect(fs.stat("fifo").st_size, 0)
      try fs.expectNames("", ["fifo", "socket"])
      try fs.remount()
    }
    try fs.chmod("socket", 0o666)
    try fs.remount()
    try expect(fs.stat("socket").st_mode, S_IFSOCK | 0o666)
  }

  static func mknodMakesARegularFile(_ fs: Volume) throws {
    try fs.mknod("a", S_IFREG | 0o640)
    try fs.mknod("b", 0o600)
    try expect(fs.stat("b").st_mode, S_IFREG | 0o600)
    try fs.expectContents("a", "")
    try fs.remount()
    try expect(fs.stat("a").st_mode, S_IFREG | 0o640)
    try fs.expectContents("a", "")
    try fs.make("a", "content")
    try fs.remount()
    try fs.expectContents("a", "content")
  }

  static func mknodRefusesWhatExists(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("nowhere", "link")
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    for name: Path in ["a", "d", "link", "new"] {
      for type in [S_IFREG, S_IFIFO, S_IFSOCK] {
        try expectError(EEXIST) { try fs.mknod(name, type | 0o600) }
      }
    }
    try fs.close(handle)
    try fs.expectContents("a", "x")
  }
}
