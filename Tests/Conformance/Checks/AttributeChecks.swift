import Glibc

/// Modes, owners, sizes and inode numbers.
enum AttributeChecks {
  static let all: [Check] = [
    Check("chmodSurvives", chmodSurvives),
    Check("chmodWhileWritingSurvivesTheCommit", chmodWhileWritingSurvivesTheCommit),
    Check("modesSurviveARewrite", modesSurviveARewrite),
    Check("chownSurvives", chownSurvives),
    Check("chownWhileWritingSurvivesTheCommit", chownWhileWritingSurvivesTheCommit),
    Check("chownClearsTheSetUserIDBit", chownClearsTheSetUserIDBit),
    Check("setIDBitsSurvive", setIDBitsSurvive),
    Check("pathsAndHandlesShowTheSame", pathsAndHandlesShowTheSame),
    Check("blocksMeanSomething", blocksMeanSomething),
    Check("inodeNumbersStayOverCommits", inodeNumbersStayOverCommits),
    Check("inodeNumbersDiffer", inodeNumbersDiffer),
    Check("inodeNumbersInListingsAreThoseOfStat", inodeNumbersInListingsAreThoseOfStat),
    Check("everythingIsOnOneDevice", everythingIsOnOneDevice),
    Check("attributesOfAMissingNameFail", attributesOfAMissingNameFail),
    Check("freeSpaceIsThatOfTheDisk", freeSpaceIsThatOfTheDisk),
  ]

  static func chmodSurvives(_ fs: Volume) throws {
    try fs.make("a", "x")
    for mode: mode_t in [0o600, 0o777, 0o000, 0o444, 0o7777, 0o1640] {
      try fs.chmod("a", mode)
      try expect(fs.stat("a").st_mode, S_IFREG | mode)
      try fs.remount()
      try expect(fs.stat("a").st_mode, S_IFREG | mode)
    }
    try fs.symlink("a", "link")
    try fs.chmod("link", 0o611)
    try expect(fs.stat("a").st_mode, S_IFREG | 0o611)
  }

  static func chmodWhileWritingSurvivesTheCommit(_ fs: Volume) throws {
    try fs.make("old", pattern(1000))
    let new = try fs.open("new", O_CREAT | O_RDWR)
    let old = try fs.open("old", O_RDWR)
    try fs.write(new, pattern(100_000))
    try fs.chmod(.handle(new), 0o604)
    try fs.chmod("old", 0o640)
    try fs.write(new, "more", at: 100_000)
    try fs.write(old, "edited")
    try expect(fs.stat("new").st_mode, S_IFREG | 0o604)
    try fs.close(new)
    try fs.close(old)
    for _ in 0..<2 {
      try expect(fs.stat("new").st_mode, S_IFREG | 0o604)
      try expect(fs.stat("old").st_mode, S_IFREG | 0o640)
      try fs.remount()
    }
  }

  static func modesSurviveARewrite(_ fs: Volume) throws {
    try fs.make("a", "old", mode: 0o600)
    try fs.chmod("a", 0o751)
    try fs.make("a", "new", mode: 0o644)
    try expect(fs.stat("a").st_mode, S_IFREG | 0o751)
    let handle = try fs.open("a", O_WRONLY | O_APPEND)
    try fs.write(handle, "er")
    try fs.close(handle)
    try fs.truncate("a", to: 3)
    try fs.remount()
    try expect(fs.stat("a").st_mode, S_IFREG | 0o751)
    try fs.expectContents("a", "new")
  }

  static func chownSurvives(_ fs: Volume) throws {
    // Only root may give files away; anybody may leave things as they are.
    let user = geteuid() == 0 ? 1234 : geteuid()
    let group = geteuid() == 0 ? 4321 : getegid()
    try fs.make("a", "x")
    try fs.chown("a", user, .max)
    try fs.chown("a", .max, group)
    try fs.chown("a", .max, .max)
    for round in 0..<3 {
      try expect(fs.stat("a").st_uid, user)
      try expect(fs.stat("a").st_gid, group)
      if round == 0 { try fs.make("a", "rewritten") }
      try fs.remount()
    }
  }

  static func chownWhileWritingSurvivesTheCommit(_ fs: Volume) throws {
    let user = geteuid() == 0 ? 1234 : geteuid()
    let group = geteuid() == 0 ? 4321 : getegid()
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.chown(.handle(handle), user, group)
    try expect(fs.stat("a").st_uid, user)
    try fs.write(handle, "more", at: 100_000)
    try fs.close(handle)
    for _ in 0..<2 {
      try expect(fs.stat("a").st_uid, user)
      try expect(fs.stat("a").st_gid, group)
      try fs.expectContents("a", pattern(100_000) + Array("more".utf8))
      try fs.remount()
    }
  }

  static func chownClearsTheSetUserIDBit(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.chmod("a", 0o4755)
    try fs.chown("a", geteuid(), getegid())
    try expect(fs.stat("a").st_mode, S_IFREG | 0o755)
    try fs.mkdir("d")
    try fs.chmod("d", 0o2755)
    try fs.chown("d", geteuid(), getegid())
    try expect(fs.stat("d").st_mode, S_IFDIR | 0o2755)
  }

  static func setIDBitsSurvive(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.chmod("a", 0o6755)
    try fs.remount()
    try expect(fs.stat("a").st_mode, S_IFREG | 0o6755)
    let handle = try fs.open("b", O_CREAT | O_WRONLY)
    try fs.write(handle, "x")
    try fs.chmod(.handle(handle), 0o5711)
    try fs.close(handle)
    try fs.rename("b", "c")
    try fs.remount()
    try expect(fs.stat("c").st_mode, S_IFREG | 0o5711)
  }

  static func pathsAndHandlesShowTheSame(_ fs: Volume) throws {
    try fs.make("a", pattern(12_345))
    let handle = try fs.open("a", O_RDWR)
    for round in 0..<4 {
      if round == 1 { try fs.write(handle, pattern(100_000)) }
      if round == 2 { try fs.fsync(handle) }
      if round == 3 { try fs.truncate(.handle(handle), to: 5) }
      let byPath = try fs.stat("a")
      let byHandle = try fs.stat(.handle(handle))
      try expect(byPath.st_ino, byHandle.st_ino)
      try expect(byPath.st_size, byHandle.st_size)
      try expect(byPath.st_mode, byHandle.st_mode)
      try expect(byPath.st_mtim.total, byHandle.st_mtim.total)
      try expect(byPath.st_ctim.total, byHandle.st_ctim.total)
      try expect(byPath.st_nlink, byHandle.st_nlink)
      try expect(byPath.st_blocks, byHandle.st_blocks)
    }
    try fs.close(handle)
  }

  static func blocksMeanSomething(_ fs: Volume) throws {
    for size in [1, 4096, 100_000, 3_000_000] {
      let name = Path("f\(size)")
      try fs.make(name, pattern(size))
      for _ in 0..<2 {
        let status = try fs.stat(.path(name))
        let space = Int(status.st_blocks) * 512
        try expect(space >= size && space <= size * 5 / 4 + 65_536, "\(size) bytes take \(space)")
        try expect(status.st_blksize >= 512, "st_blksize is \(status.st_blksize)")
        try fs.remount()
      }
    }
  }

  static func inodeNumbersStayOverCommits(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    let reader = try fs.open("a")
    let inode = try fs.stat(.handle(handle)).st_ino
    try expect(inode != 0, "inode number 0")
    try fs.write(handle, pattern(100_000))
    try expect(fs.stat("a").st_ino, inode)
    try fs.fsync(handle)
    try expect(fs.stat("a").st_ino, inode)
    try fs.write(handle, "edited")
    try fs.close(handle)
    try expect(fs.stat("a").st_ino, inode)
    try fs.make("a", "rewritten")
    try expect(fs.stat("a").st_ino, inode)
    try expect(fs.stat(.handle(reader)).st_ino, inode)
    try fs.expectContents(reader, "rewritten")
    try fs.truncate("a", to: 3)
    try fs.chmod("a", 0o600)
    try fs.rename("a", "b")
    try expect(fs.stat("b").st_ino, inode)
    try expect(fs.items("").first { $0.name == [UInt8(ascii: "b")] }?.inode, UInt64(inode))
    try fs.close(reader)
  }

  static func inodeNumbersDiffer(_ fs: Volume) throws {
    var seen: Set<ino_t> = []
    for number in 0..<100 {
      let name = Path("f\(number)")
      switch number % 4 {
      case 0: try fs.make(name)
      case 1: try fs.make(name, "x")
      case 2: try fs.mkdir(name)
      default: try fs.symlink("x", name)
      }
      let inode = try fs.stat(.link(name)).st_ino
      try expect(seen.insert(inode).inserted, "inode number \(inode) twice")
    }
    for number in 0..<100 where number % 4 == 0 { try fs.make("f\(number)", "rewritten") }
    try fs.remount()
    let inodes = try fs.items("").dropLast(0).filter { $0.name.first == UInt8(ascii: "f") }
    try expect(Set(inodes.map(\.inode)).count, 100)
  }

  static func inodeNumbersInListingsAreThoseOfStat(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("x", "link")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    let handle = try fs.open("new", O_CREAT | O_WRONLY)
    try fs.write(handle, pattern(100_000))
    try fs.make("a", "rewritten")
    for round in 0..<2 {
      for item in try fs.items("") where item.name != Array("..".utf8) {
        let status = try fs.stat(.link(Path(item.name)))
        try expect(item.inode, UInt64(status.st_ino), "d_ino of \(Path(item.name))")
        try expect(item.type, status.st_mode & S_IFMT, "d_type of \(Path(item.name))")
      }
      if round == 0 {
        try fs.close(handle)
        try fs.remount()
      }
    }
  }

  static func everythingIsOnOneDevice(_ fs: Volume) throws {
    let device = try fs.stat("").st_dev
    try fs.mkdir("d")
    try fs.make("d/a", "x")
    let handle = try fs.open("d/new", O_CREAT | O_WRONLY)
    for path in ["d", "d/a", "d/new"] { try expect(fs.stat(.path(Path(path))).st_dev, device) }
    try expect(fs.stat(.handle(handle)).st_dev, device)
    try fs.close(handle)
  }

  static func attributesOfAMissingNameFail(_ fs: Volume) throws {
    try expectError(ENOENT) { try fs.stat("missing") }
    try expectError(ENOENT) { try fs.chmod("missing", 0o600) }
    try expectError(ENOENT) { try fs.chown("missing", .max, .max) }
    try expectError(ENOENT) { try fs.utimens("missing", .now, .now) }
    try expectError(ENOENT) { try fs.getxattr("missing", "user.x") }
    try expectError(ENOENT) { try fs.setxattr("missing", "user.x", []) }
    try expectError(ENOENT) { try fs.listxattr("missing") }
  }

  static func freeSpaceIsThatOfTheDisk(_ fs: Volume) throws {
    // Others write to the disk in the meantime.
    let tolerance = 4 << 30
    let got = try fs.statvfs()
    var disk = statvfs()
    let code = String(decoding: fs.driver.backingDirectory.bytes, as: UTF8.self).withCString {
      statvfs($0, &disk)
    }
    try expect(code, 0)
    let pairs = [
      ("all", got.f_blocks, disk.f_blocks), ("free", got.f_bfree, disk.f_bfree),
      ("available", got.f_bavail, disk.f_bavail),
    ]
    for (what, vault, backing) in pairs {
      let difference = Int(vault) * Int(got.f_frsize) - Int(backing) * Int(disk.f_frsize)
      try expect(abs(difference) < tolerance, "\(what): \(difference) bytes away from the disk's")
    }
    try expect(got.f_namemax, 255)
    try expect(got.f_files > 0 || disk.f_files == 0, "no inodes")
  }
}
