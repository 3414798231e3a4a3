import Glibc

/// unlink(2), above all of what is open or not committed yet.
enum UnlinkChecks {
  static let all: [Check] = [
    Check("unlinkRemovesAFile", unlinkRemovesAFile),
    Check("unlinkOfWhatIsNoFileFails", unlinkOfWhatIsNoFileFails),
    Check("unlinkOfASymbolicLinkLeavesItsTarget", unlinkOfASymbolicLinkLeavesItsTarget),
    Check("anUnlinkedFileIsReadOn", anUnlinkedFileIsReadOn),
    Check("anUnlinkedFileIsWrittenOn", anUnlinkedFileIsWrittenOn),
    Check("anUnlinkedNewFileIsWrittenOn", anUnlinkedNewFileIsWrittenOn),
    Check("anUnlinkedFileIsTruncatedAndExtended", anUnlinkedFileIsTruncatedAndExtended),
    Check("anUnlinkedFileKeepsItsAttributes", anUnlinkedFileKeepsItsAttributes),
    Check("anUnlinkedFileStaysGoneAfterFsync", anUnlinkedFileStaysGoneAfterFsync),
    Check("aFileIsRecreatedWhileTheOldIsOpen", aFileIsRecreatedWhileTheOldIsOpen),
    Check("aNewFileIsRecreatedWhileTheOldIsOpen", aNewFileIsRecreatedWhileTheOldIsOpen),
    Check("twoHandlesShareAnUnlinkedFile", twoHandlesShareAnUnlinkedFile),
    Check("unlinkWhileRewritingRemovesBothVersions", unlinkWhileRewritingRemovesBothVersions),
    Check("noHiddenNameAppearsForAnUnlinkedFile", noHiddenNameAppearsForAnUnlinkedFile),
    Check("aDirectoryOfUnlinkedOpenFilesIsEmpty", aDirectoryOfUnlinkedOpenFilesIsEmpty),
    Check("anUnlinkedFileOutlivesItsDirectory", anUnlinkedFileOutlivesItsDirectory),
    Check("unlinkOfASpecialFile", unlinkOfASpecialFile),
    Check("aNameIsReusedByAnotherKind", aNameIsReusedByAnotherKind),
    Check("aThousandFilesComeAndGo", aThousandFilesComeAndGo),
  ]

  static func unlinkRemovesAFile(_ fs: Volume) throws {
    try fs.make("a", pattern(70_000))
    try fs.make("b", "stays")
    try fs.unlink("a")
    try fs.expectMissing("a")
    try expectError(ENOENT) { try fs.open("a") }
    try fs.expectNames("", ["b"])
    try fs.remount()
    try fs.expectMissing("a")
    try fs.expectNames("", ["b"])
  }

  static func unlinkOfWhatIsNoFileFails(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("a", "x")
    try expectError(ENOENT) { try fs.unlink("missing") }
    try expectError(ENOENT) { try fs.unlink("missing/a") }
    try expectError(EISDIR) { try fs.unlink("d") }
    try expectError(ENOTDIR) { try fs.unlink("a/b") }
    try fs.expectNames("", ["a", "d"])
  }

  static func unlinkOfASymbolicLinkLeavesItsTarget(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    try fs.symlink("a", "link")
    try fs.symlink("d", "dirlink")
    try fs.unlink("link")
    try fs.unlink("dirlink")
    try fs.remount()
    try fs.expectNames("", ["a", "d"])
    try fs.expectContents("a", "x")
  }

  static func anUnlinkedFileIsReadOn(_ fs: Volume) throws {
    try fs.make("a", pattern(500_000))
    let handle = try fs.open("a")
    try expect(fs.read(handle, 10), pattern(10))
    try fs.unlink("a")
    try expect(fs.stat(.handle(handle)).st_nlink, 0)
    try fs.expectContents(handle, pattern(500_000))
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func anUnlinkedFileIsWrittenOn(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.unlink("a")
    try fs.write(handle, "edited", at: 50_000)
    try fs.write(handle, "end", at: 100_000)
    var expected = pattern(100_000) + Array("end".utf8)
    expected.replaceSubrange(50_000..<50_006, with: Array("edited".utf8))
    try fs.expectContents(handle, expected)
    try fs.closeDuplicate(handle)
    try fs.expectMissing("a")
    try fs.close(handle)
    try fs.expectMissing("a")
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func anUnlinkedNewFileIsWrittenOn(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.unlink("a")
    try fs.expectNames("", [])
    try expect(fs.stat(.handle(handle)).st_nlink, 0)
    try fs.write(handle, "more", at: 100_000)
    try fs.write(handle, "X", at: 0)
    try fs.expectContents(
      handle, [UInt8(ascii: "X")] + pattern(100_000).dropFirst() + Array("more".utf8))
    try fs.close(handle)
    try fs.expectNames("", [])
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func anUnlinkedFileIsTruncatedAndExtended(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.unlink("a")
    try fs.truncate(.handle(handle), to: 10)
    try fs.expectContents(handle, pattern(10))
    try fs.truncate(.handle(handle), to: 70_000)
    try fs.expectContents(handle, pattern(10) + zeros(69_990))
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func anUnlinkedFileKeepsItsAttributes(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.setxattr("a", "user.old", [1])
    let handle = try fs.open("a", O_RDWR)
    try fs.unlink("a")
    try fs.chmod(.handle(handle), 0o640)
    try fs.utimens(.handle(handle), .seconds(10, 1), .seconds(20, 2))
    try fs.setxattr(.handle(handle), "user.new", [2])
    try expect(fs.stat(.handle(handle)).st_mode, S_IFREG | 0o640)
    try expect(fs.stat(.handle(handle)).st_mtim.total, timespec.seconds(20, 2).total)
    try expect(fs.getxattr(.handle(handle), "user.old"), [1])
    try expect(fs.getxattr(.handle(handle), "user.new"), [2])
    try fs.fsync(handle)
    try fs.close(handle)
    try fs.expectNames("", [])
  }

  static func anUnlinkedFileStaysGoneAfterFsync(_ fs: Volume) throws {
    let new = try fs.open("new", O_CREAT | O_RDWR)
    try fs.make("old", "old")
    let old = try fs.open("old", O_RDWR)
    try fs.unlink("new")
    try fs.unlink("old")
    for handle in [new, old] {
      try fs.write(handle, "written after the unlink")
      try fs.fsync(handle)
      try fs.fdatasync(handle)
      try fs.expectContents(handle, "written after the unlink")
    }
    try fs.expectNames("", [])
    try fs.close(new)
    try fs.close(old)
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func aFileIsRecreatedWhileTheOldIsOpen(_ fs: Volume) throws {
    try fs.make("a", pattern(70_000))
    let old = try fs.open("a", O_RDWR)
    try fs.unlink("a")
    let new = try fs.open("a", O_CREAT | O_EXCL | O_RDWR)
    try fs.write(new, "new")
    try fs.write(old, "old", at: 70_000)
    try expect(fs.stat(.handle(new)).st_ino != fs.stat(.handle(old)).st_ino, "one inode for two")
    try fs.expectContents(old, pattern(70_000) + Array("old".utf8))
    try fs.expectContents(new, "new")
    try fs.expectContents("a", "new")
    try fs.close(new)
    try fs.close(old)
    try fs.expectContents("a", "new")
    try fs.remount()
    try fs.expectContents("a", "new")
    try fs.expectNames("", ["a"])
  }

  static func aNewFileIsRecreatedWhileTheOldIsOpen(_ fs: Volume) throws {
    var handles: [Handle] = []
    for round in 0..<5 {
      let handle = try fs.open("a", O_CREAT | O_EXCL | O_RDWR)
      try fs.write(handle, "version \(round)")
      if round < 4 { try fs.unlink("a") }
      handles.append(handle)
    }
    for (round, handle) in handles.enumerated() {
      try fs.expectContents(handle, "version \(round)")
    }
    for handle in handles.reversed() { try fs.close(handle) }
    try fs.expectContents("a", "version 4")
    try fs.remount()
    try fs.expectContents("a", "version 4")
    try fs.expectNames("", ["a"])
  }

  static func twoHandlesShareAnUnlinkedFile(_ fs: Volume) throws {
    try fs.make("a", "content")
    let reader = try fs.open("a")
    let writer = try fs.open("a", O_RDWR)
    try fs.unlink("a")
    try fs.write(writer, "CON")
    try fs.expectContents(reader, "CONtent")
    try fs.close(writer)
    try fs.expectContents(reader, "CONtent")
    try fs.close(reader)
    try fs.expectNames("", [])
  }

  static func unlinkWhileRewritingRemovesBothVersions(_ fs: Volume) throws {
    try fs.make("a", "old")
    let handle = try fs.open("a", O_WRONLY | O_TRUNC)
    try fs.write(handle, pattern(2_000_000))
    try fs.unlink("a")
    try fs.expectMissing("a")
    try fs.close(handle)
    try fs.expectMissing("a")
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func noHiddenNameAppearsForAnUnlinkedFile(_ fs: Volume) throws {
    try fs.make("a", "x")
    let handle = try fs.open("a", O_RDWR)
    try fs.unlink("a")
    try fs.write(handle, "y")
    try fs.expectNames("", [])
    try fs.fsync(handle)
    try fs.expectNames("", [])
    try fs.close(handle)
  }

  static func aDirectoryOfUnlinkedOpenFilesIsEmpty(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", "x")
    let committed = try fs.open("d/a", O_RDWR)
    let new = try fs.open("d/b", O_CREAT | O_RDWR)
    try fs.write(new, "y")
    try expectError(ENOTEMPTY) { try fs.rmdir("d") }
    try fs.unlink("d/a")
    try fs.unlink("d/b")
    try fs.rmdir("d")
    try fs.expectMissing("d")
    try fs.write(committed, "z")
    try fs.expectContents(committed, "z")
    try fs.expectContents(new, "y")
    try fs.close(committed)
    try fs.close(new)
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func anUnlinkedFileOutlivesItsDirectory(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.make("d/a", pattern(200_000))
    let handle = try fs.open("d/a", O_RDWR)
    try fs.unlink("d/a")
    try fs.rmdir("d")
    try fs.mkdir("d")
    try fs.make("d/a", "another")
    try fs.write(handle, "edited", at: 100_000)
    try fs.fsync(handle)
    try expect(fs.read(handle, 6, at: 100_000), Array("edited".utf8))
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("d/a", "another")
  }

  static func unlinkOfASpecialFile(_ fs: Volume) throws {
    try fs.mknod("fifo", S_IFIFO | 0o600)
    try fs.mknod("socket", S_IFSOCK | 0o600)
    try fs.unlink("fifo")
    try fs.unlink("socket")
    try fs.remount()
    try fs.expectNames("", [])
  }

  static func aNameIsReusedByAnotherKind(_ fs: Volume) throws {
    for round in 0..<2 {
      try fs.make("name", "file")
      if round == 1 { try fs.remount() }
      try expectError(EEXIST) { try fs.mkdir("name") }
      try fs.unlink("name")
      try fs.mkdir("name")
      try expectError(EEXIST) { try fs.symlink("x", "name") }
      try expectError(EISDIR) { try fs.open("name", O_CREAT | O_WRONLY) }
      try fs.rmdir("name")
      try fs.symlink("nowhere", "name")
      if round == 1 { try fs.remount() }
      try expectError(EEXIST) { try fs.mknod("name", S_IFIFO | 0o600) }
      try fs.unlink("name")
      try fs.mknod("name", S_IFIFO | 0o600)
      try expectError(EEXIST) { try fs.open("name", O_CREAT | O_EXCL | O_WRONLY) }
      try fs.unlink("name")
      try fs.expectNames("", [])
    }
  }

  static func aThousandFilesComeAndGo(_ fs: Volume) throws {
    for round in 0..<1000 {
      let handle = try fs.open("f\(round % 10)", O_CREAT | O_EXCL | O_WRONLY)
      if round % 3 == 0 { try fs.write(handle, pattern(100)) }
      if round % 2 == 0 { try fs.unlink("f\(round % 10)") }
      try fs.close(handle)
      if round % 2 == 1 { try fs.unlink("f\(round % 10)") }
    }
    try fs.expectNames("", [])
    try fs.remount()
    try fs.expectNames("", [])
  }
}
