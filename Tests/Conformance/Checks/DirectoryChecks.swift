import Glibc

/// mkdir(2), rmdir(2) and trees.
enum DirectoryChecks {
  static let all: [Check] = [
    Check("mkdirMakesAnEmptyDirectory", mkdirMakesAnEmptyDirectory),
    Check("mkdirRefusesWhatExists", mkdirRefusesWhatExists),
    Check("mkdirNeedsItsParent", mkdirNeedsItsParent),
    Check("mkdirKeepsSpecialModeBits", mkdirKeepsSpecialModeBits),
    Check("rmdirRemovesAnEmptyDirectory", rmdirRemovesAnEmptyDirectory),
    Check("rmdirRefusesANonEmptyDirectory", rmdirRefusesANonEmptyDirectory),
    Check("rmdirRefusesADirectoryWithANewFile", rmdirRefusesADirectoryWithANewFile),
    Check("rmdirOfWhatIsNoDirectoryFails", rmdirOfWhatIsNoDirectoryFails),
    Check("rmdirOfDotNamesFails", rmdirOfDotNamesFails),
    Check("aRemovedDirectoryIsMadeAnew", aRemovedDirectoryIsMadeAnew),
    Check("linkCountsOfDirectoriesMeanSomething", linkCountsOfDirectoriesMeanSomething),
    Check("deepNestingWorks", deepNestingWorks),
    Check("deepNestingWithLongNamesWorks", deepNestingWithLongNamesWorks),
    Check("pathsThroughWhatIsNoDirectoryFail", pathsThroughWhatIsNoDirectoryFail),
    Check("dotsAndDoubleSlashesResolve", dotsAndDoubleSlashesResolve),
    Check("newFilesTakeTheGroupOfASetGroupIDDirectory", newFilesTakeTheGroup),
    Check("aWholeTreeIsRemoved", aWholeTreeIsRemoved),
    Check("directoriesKeepModesOwnersAndTimes", directoriesKeepModesOwnersAndTimes),
    Check("wideTreesComeBack", wideTreesComeBack),
  ]

  static func mkdirMakesAnEmptyDirectory(_ fs: Volume) throws {
    try fs.mkdir("d", mode: 0o750)
    try expect(fs.stat("d").st_mode, S_IFDIR | 0o750)
    try fs.expectNames("d", [])
    try fs.expectNames("", ["d"])
    try fs.remount()
    try expect(fs.stat("d").st_mode, S_IFDIR | 0o750)
    try fs.expectNames("d", [])
    try fs.mkdir("d/e")
    try fs.make("d/e/a", "x")
    try fs.remount()
    try fs.expectContents("d/e/a", "x")
  }

  static func mkdirRefusesWhatExists(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("a", "x")
    try fs.symlink("nowhere", "dangling")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    for name: Path in ["d", "a", "dangling", "fifo", "new", ".", "d/..", "d/"] {
      try expectError(EEXIST) { try fs.mkdir(name) }
    }
    try fs.close(handle)
    try fs.expectMissing("nowhere")
  }

  static func mkdirNeedsItsParent(_ fs: Volume) throws {
    try fs.make("a", "x")
    try expectError(ENOENT) { try fs.mkdir("missing/d") }
    try expectError(ENOTDIR) { try fs.mkdir("a/d") }
    try fs.mkdir("slash/")
    try fs.expectNames("", ["a", "slash"])
  }

  static func mkdirKeepsSpecialModeBits(_ fs: Volume) throws {
    try fs.mkdir("sticky", mode: 0o1755)
    try fs.mkdir("none", mode: 0o000)
    try fs.mkdir("d")
    try fs.chmod("d", 0o3770)
    for _ in 0..<2 {
      try expect(fs.stat("sticky").st_mode, S_IFDIR | 0o1755)
      try expect(fs.stat("none").st_mode, S_IFDIR)
      try expect(fs.stat("d").st_mode, S_IFDIR | 0o3770)
      try fs.remount()
    }
  }

  static func rmdirRemovesAnEmptyDirectory(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try fs.make("d/e/a", "x")
    try fs.unlink("d/e/a")
    try fs.rmdir("d/e")
    try fs.expectNames("d", [])
    try fs.rmdir("d")
    try fs.expectMissing("d")
    try expectError(ENOENT) { try fs.open("d/a", O_CREAT | O_WRONLY) }
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func rmdirRefusesANonEmptyDirectory(_ fs: Volume) throws {
    let makers: [(Path) throws -> Void] = [
      { try fs.make($0, "x") }, { try fs.mkdir($0) }, { try fs.symlink("x", $0) },
      { try fs.mknod($0, S_IFIFO | 0o600) }, { try fs.make($0) },
    ]
    for (number, make) in makers.enumerated() {
      try fs.mkdir("d\(number)")
      try make("d\(number)/inside")
      try expectError(ENOTEMPTY) { try fs.rmdir("d\(number)") }
      if number % 2 == 0 { try fs.remount() }
      try expectError(ENOTEMPTY) { try fs.rmdir("d\(number)") }
      try fs.expectNames("d\(number)", ["inside"])
    }
  }

  static func rmdirRefusesADirectoryWithANewFile(_ fs: Volume) throws {
    try fs.mkdir("d")
    let handle = try fs.open("d/new", O_CREAT | O_RDWR)
    try expectError(ENOTEMPTY) { try fs.rmdir("d") }
    try fs.write(handle, pattern(100_000))
    try expectError(ENOTEMPTY) { try fs.rmdir("d") }
    try fs.expectNames("d", ["new"])
    try fs.close(handle)
    try expectError(ENOTEMPTY) { try fs.rmdir("d") }
    try fs.remount()
    try fs.expectContents("d/new", pattern(100_000))
    try fs.unlink("d/new")
    try fs.rmdir("d")
  }

  static func rmdirOfWhatIsNoDirectoryFails(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("d", "link")
    try expectError(ENOTDIR) { try fs.rmdir("a") }
    try expectError(ENOTDIR) { try fs.rmdir("link") }
    try expectError(ENOENT) { try fs.rmdir("missing") }
    try expectError(ENOTDIR) { try fs.rmdir("a/b") }
    try fs.expectNames("", ["a", "d", "link"])
  }

  static func rmdirOfDotNamesFails(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try expectError(EINVAL) { try fs.rmdir("d/e/.") }
    try expectError(ENOTEMPTY) { try fs.rmdir("d/e/..") }
    try fs.expectNames("d", ["e"])
  }

  static func aRemovedDirectoryIsMadeAnew(_ fs: Volume) throws {
    for round in 0..<5 {
      try fs.mkdir("d")
      try fs.expectNames("d", [])
      try fs.make("d/a\(round)", "x")
      try fs.expectNames("d", ["a\(round)"])
      if round == 2 { try fs.remount() }
      try fs.unlink("d/a\(round)")
      try fs.rmdir("d")
    }
    try fs.expectNames("", [])
  }

  /// 2 and one for each subdirectory, or 1 where the disk's file system doesn't count.
  static func linkCountsOfDirectoriesMeanSomething(_ fs: Volume) throws {
    try fs.mkdir("d")
    let empty = try fs.stat("d").st_nlink
    try expect(empty == 2 || empty == 1, "an empty directory has \(empty) links")
    try fs.mkdir("d/e")
    try fs.mkdir("d/f")
    try fs.make("d/a", "files don't count")
    for _ in 0..<2 {
      try expect(fs.stat("d").st_nlink, empty == 1 ? 1 : 4)
      try fs.remount()
    }
    try fs.rmdir("d/e")
    try expect(fs.stat("d").st_nlink, empty == 1 ? 1 : 3)
  }

  static func deepNestingWorks(_ fs: Volume) throws {
    let depth = 150
    var path: Path = "d"
    try fs.mkdir(path)
    for level in 1..<depth {
      path = path / Path("level\(level)")
      try fs.mkdir(path)
    }
    try fs.make(path / "a", "deep")
    try fs.remount()
    try fs.expectContents(path / "a", "deep")
    try fs.rename(path / "a", "up")
    try fs.expectContents("up", "deep")
    try fs.rename("d", "e")
    try fs.remount()
    try fs.expectNames(Path([UInt8(ascii: "e")] + path.bytes.dropFirst()), [])
  }

  static func deepNestingWithLongNamesWorks(_ fs: Volume) throws {
    var path = Path(String(repeating: "a", count: 255))
    try fs.mkdir(path)
    for letter in ["b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
      path = path / Path(String(repeating: letter, count: 255))
      try fs.mkdir(path)
    }
    try fs.make(path / "photo", pattern(70_000))
    try fs.remount()
    try fs.expectContents(path / "photo", pattern(70_000))
    try fs.rename(path, "moved")
    try fs.remount()
    try fs.expectContents("moved/photo", pattern(70_000))
  }

  static func pathsThroughWhatIsNoDirectoryFail(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    try fs.symlink("a", "link")
    for name in ["a", "fifo", "link"] {
      try expectError(ENOTDIR) { try fs.stat(.path(Path("\(name)/b"))) }
      try expectError(ENOTDIR) { try fs.stat(.path(Path("\(name)/."))) }
      try expectError(ENOTDIR) { try fs.open("\(name)/b", O_CREAT | O_WRONLY) }
      try expectError(ENOTDIR) { try fs.mknod("\(name)/b", S_IFIFO | 0o600) }
      try expectError(ENOTDIR) { try fs.symlink("x", "\(name)/b") }
      try expectError(ENOTDIR) { try fs.readlink("\(name)/b") }
      try expectError(ENOTDIR) { try fs.chmod(.path(Path("\(name)/b")), 0o600) }
    }
    try expectError(ENOENT) { try fs.stat("missing/b") }
    try expectError(ENOENT) { try fs.stat("missing/../a") }
  }

  static func dotsAndDoubleSlashesResolve(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    try fs.make("d/a", "x")
    for path: Path in ["d/./a", "d//a", "d/e/../a", "./d/e/.././e/../a", "d/e/../../d/a"] {
      try fs.expectContents(path, "x")
    }
    try fs.symlink("e/..", "d/link")
    try fs.expectContents("d/link/a", "x")
  }

  static func newFilesTakeTheGroup(_ fs: Volume) throws {
    let group: gid_t = 54_321
    // Only root may give a directory to a group it isn't in.
    guard geteuid() == 0 else { return }
    try fs.mkdir("d")
    try fs.chown("d", 12_345, group)
    try fs.chmod("d", 0o2755)
    try fs.make("d/a", "x")
    try fs.mkdir("d/e")
    try fs.symlink("x", "d/link")
    try fs.mknod("d/fifo", S_IFIFO | 0o600)
    for _ in 0..<2 {
      for name in ["d/a", "d/e", "d/link", "d/fifo"] {
        try expect(fs.stat(.link(Path(name))).st_gid, group, name)
        try expect(fs.stat(.link(Path(name))).st_uid, geteuid(), name)
      }
      try expect(fs.stat("d/e").st_mode, S_IFDIR | 0o2755)
      try expect(fs.stat("d/a").st_mode, S_IFREG | 0o644)
      try fs.remount()
    }
  }

  static func aWholeTreeIsRemoved(_ fs: Volume) throws {
    try fs.mkdir("top")
    for branch in 0..<5 {
      try fs.mkdir("top/b\(branch)")
      for leaf in 0..<10 { try fs.make("top/b\(branch)/f\(leaf)", "x") }
      try fs.symlink("../b0/f0", "top/b\(branch)/link")
    }
    try fs.remount()
    for branch in try fs.names("top") {
      for leaf in try fs.names("top" / Path(branch)) {
        try fs.unlink("top" / Path(branch) / Path(leaf))
      }
      try fs.rmdir("top" / Path(branch))
    }
    try fs.rmdir("top")
    try fs.expectNames("", [])
  }

  static func directoriesKeepModesOwnersAndTimes(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.chmod("d", 0o711)
    if geteuid() == 0 { try fs.chown("d", 1234, 4321) }
    try fs.utimens("d", .seconds(1000, 1), .seconds(2000, 2))
    let before = try fs.stat("d")
    try fs.rename("d", "e")
    for _ in 0..<2 {
      let after = try fs.stat("e")
      try expect(after.st_mode, S_IFDIR | 0o711)
      try expect(after.st_uid, before.st_uid)
      try expect(after.st_gid, before.st_gid)
      try expect(after.st_mtim.total, timespec.seconds(2000, 2).total)
      try fs.remount()
    }
    if geteuid() == 0 { try expect(before.st_uid, 1234) }
  }

  static func wideTreesComeBack(_ fs: Volume) throws {
    for top in 0..<20 {
      try fs.mkdir("d\(top)")
      for sub in 0..<10 { try fs.mkdir("d\(top)/e\(sub)") }
      try fs.make("d\(top)/e5/a", "\(top)")
    }
    try fs.remount()
    try fs.expectNames("", (0..<20).map { "d\($0)" })
    for top in 0..<20 {
      try fs.expectNames(Path("d\(top)"), (0..<10).map { "e\($0)" })
      try fs.expectContents("d\(top)/e5/a", "\(top)")
    }
  }
}
