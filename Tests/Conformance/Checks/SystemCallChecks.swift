import CLinux
import Glibc
import Platform

/// What only shows through the kernel: locks, positions, descriptors of directories, programs.
enum SystemCallChecks {
  static let all: [Check] = [
    Check("flockExcludes", needs: .systemCalls, flockExcludes),
    Check("recordLocksExclude", needs: .systemCalls, recordLocksExclude),
    Check("filesWithoutANameAreRefused", needs: .systemCalls, filesWithoutANameAreRefused),
    Check("directAccessWorksOrIsRefused", needs: .systemCalls, directAccessWorksOrIsRefused),
    Check("synchronousWritesAreKept", needs: .systemCalls, synchronousWritesAreKept),
    Check("fifosCarryBytes", needs: .systemCalls, fifosCarryBytes),
    Check("socketsAccept", needs: .systemCalls, socketsAccept),
    Check("programsRun", needs: .systemCalls, programsRun),
    Check("aRemovedDirectoryIsDead", needs: .systemCalls, aRemovedDirectoryIsDead),
    Check("directoryDescriptorsFollowRenames", needs: .systemCalls, descriptorsFollowRenames),
    Check("accessAnswers", needs: .systemCalls, accessAnswers),
    Check("positionsAreShared", needs: .systemCalls, positionsAreShared),
    Check("appendCanBeSwitchedOnLater", needs: .systemCalls, appendCanBeSwitchedOnLater),
    Check("sendfileCopies", needs: .systemCalls, sendfileCopies),
    Check("anUnlinkedFileIsReopenedThroughProc", needs: .systemCalls, unlinkedIsReopened),
    Check("anUnlinkedFileCannotBeLinkedAgain", needs: .systemCalls, unlinkedIsNotLinked),
    Check("syncfsKeepsWhatIsWritten", needs: .systemCalls, syncfsKeepsWhatIsWritten),
    Check("theRootStays", needs: .systemCalls, theRootStays),
  ]

  private static func descriptor(_ handle: Handle) -> CInt {
    CInt(truncatingIfNeeded: handle.number)
  }

  private static func checked<Number: SignedInteger>(
    _ result: Number, _ what: String, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> Number {
    if result >= 0 { return result }
    throw CheckFailure("\(what): \(Errno.current)", errno: .current, file, line)
  }

  private static func onPath<Number: SignedInteger>(
    _ fs: Volume, _ path: Path, _ what: String, _ file: StaticString = #filePath,
    _ line: UInt = #line, _ call: (UnsafePointer<CChar>) -> Number
  ) throws -> Number {
    let real = FileName(try fs.realPath(path, file, line).bytes)
    return try checked(real.withCString { call($0) }, what, file, line)
  }

  static func flockExcludes(_ fs: Volume) throws {
    try fs.make("a", "x")
    let first = try fs.open("a", O_RDWR)
    let second = try fs.open("a", O_RDWR)
    _ = try checked(flock(descriptor(first), LOCK_EX), "flock")
    try expectError(EAGAIN) { try checked(flock(descriptor(second), LOCK_EX | LOCK_NB), "") }
    try expectError(EAGAIN) { try checked(flock(descriptor(second), LOCK_SH | LOCK_NB), "") }
    _ = try checked(flock(descriptor(first), LOCK_SH), "flock")
    _ = try checked(flock(descriptor(second), LOCK_SH | LOCK_NB), "flock")
    try fs.write(first, "locked")
    try fs.close(first)
    _ = try checked(flock(descriptor(second), LOCK_EX | LOCK_NB), "flock")
    try fs.close(second)
    try fs.expectContents("a", "locked")
  }

  static func recordLocksExclude(_ fs: Volume) throws {
    let setOpenFileLock: CInt = 37  // F_OFD_SETLK
    try fs.make("a", pattern(1000))
    try fs.link("a", "b")
    let first = try fs.open("a", O_RDWR)
    let second = try fs.open("b", O_RDWR)
    var lock = flock()
    lock.l_type = Int16(F_WRLCK)
    lock.l_whence = Int16(SEEK_SET)
    lock.l_start = 100
    lock.l_len = 100
    // A lock of the process and one of an open file exclude each other, even within one process.
    _ = try checked(fcntl(descriptor(first), F_SETLK, &lock), "F_SETLK")
    try expectError(EAGAIN, EACCES) {
      try checked(fcntl(descriptor(second), setOpenFileLock, &lock), "")
    }
    lock.l_start = 200
    _ = try checked(fcntl(descriptor(second), setOpenFileLock, &lock), "F_OFD_SETLK")
    lock.l_start = 150
    try expectError(EAGAIN, EACCES) {
      try checked(fcntl(descriptor(second), setOpenFileLock, &lock), "")
    }
    lock.l_start = 100
    lock.l_type = Int16(F_UNLCK)
    _ = try checked(fcntl(descriptor(first), F_SETLK, &lock), "unlock")
    lock.l_type = Int16(F_WRLCK)
    _ = try checked(fcntl(descriptor(second), setOpenFileLock, &lock), "F_OFD_SETLK")
    try fs.close(first)
    try fs.close(second)
  }

  static func filesWithoutANameAreRefused(_ fs: Volume) throws {
    if fs.driver.isPlain {
      try fs.close(fs.open("", pv_O_TMPFILE | O_RDWR))
    } else {
      try expectError(EOPNOTSUPP) { try fs.open("", pv_O_TMPFILE | O_RDWR) }
    }
    try fs.expectNames("", [])
  }

  static func directAccessWorksOrIsRefused(_ fs: Volume) throws {
    #if arch(arm64)
      let direct: CInt = 0o200000  // O_DIRECT
    #else
      let direct: CInt = 0o40000  // O_DIRECT
    #endif
    let size = 131_072
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 4096)
    defer { memory.deallocate() }
    memory.copyBytes(from: pattern(size))
    let handle: Handle
    do {
      handle = try fs.open("a", O_CREAT | O_RDWR | direct)
    } catch let failure as CheckFailure where failure.errno == .invalidArgument { return }
    let written = try checked(pwrite(descriptor(handle), memory.baseAddress, size, 0), "pwrite")
    try expect(written, size)
    memory.copyBytes(from: zeros(size))
    try expect(checked(pread(descriptor(handle), memory.baseAddress, size, 0), "pread"), size)
    try expect(Array(memory), pattern(size))
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", pattern(size))
    let reader = try fs.open("a", O_RDONLY | direct)
    try expect(
      checked(pread(descriptor(reader), memory.baseAddress, 4096, 65_536), "pread"), 4096)
    try expect(Array(memory[..<4096]), Array(pattern(size)[65_536..<69_632]))
    try fs.close(reader)
  }

  static func synchronousWritesAreKept(_ fs: Volume) throws {
    for flags in [O_SYNC, O_DSYNC] {
      let handle = try fs.open("a", O_CREAT | O_RDWR | O_TRUNC | flags)
      try fs.write(handle, pattern(100_000))
      try fs.write(handle, "middle", at: 50_000)
      try fs.write(handle, "end", at: 100_000)
      try fs.close(handle)
      try fs.remount()
      var expected = pattern(100_000) + Array("end".utf8)
      expected.replaceSubrange(50_000..<50_006, with: Array("middle".utf8))
      try fs.expectContents("a", expected)
    }
  }

  static func fifosCarryBytes(_ fs: Volume) throws {
    try fs.mknod("fifo", S_IFIFO | 0o600)
    try fs.rename("fifo", "moved")
    let handle = try fs.open("moved", O_RDWR | O_NONBLOCK)
    var buffer = Array("through the fifo".utf8)
    let size = buffer.count
    try expect(checked(write(descriptor(handle), buffer, size), "write"), size)
    buffer = zeros(size)
    try expect(checked(read(descriptor(handle), &buffer, size), "read"), size)
    try expect(buffer, Array("through the fifo".utf8))
    try fs.close(handle)
  }

  static func socketsAccept(_ fs: Volume) throws {
    let stream = CInt(SOCK_STREAM.rawValue)
    let server = try checked(socket(AF_UNIX, stream, 0), "socket")
    let client = try checked(socket(AF_UNIX, stream, 0), "socket")
    defer {
      Glibc.close(server)
      Glibc.close(client)
    }
    // A socket's path has 107 bytes at most, so it is reached through its directory's descriptor.
    let directory = try fs.open("", O_RDONLY | O_DIRECTORY)
    let path = Array("/proc/self/fd/\(descriptor(directory))/s".utf8)
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    try withUnsafePointer(to: &address) { pointer in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
        _ = try checked(bind(server, pointer, length), "bind")
        _ = try checked(listen(server, 1), "listen")
        try expect(fs.stat("s").st_mode & S_IFMT, S_IFSOCK)
        _ = try checked(connect(client, pointer, length), "connect")
        try expectError(EADDRINUSE) { try checked(bind(client, pointer, length), "") }
      }
    }
    try fs.close(directory)
    try fs.unlink("s")
  }

  static func programsRun(_ fs: Volume) throws {
    let source = try Syscalls.open(FileName("/bin/true"), flags: O_RDONLY)
    let size = Int(try Syscalls.status(source.rawValue).st_size)
    var program = zeros(size)
    let got = try program.withUnsafeMutableBytes {
      try Syscalls.read(source.rawValue, into: $0, at: 0)
    }
    try expect(got, size)
    try fs.make("true", program, mode: 0o755)
    try fs.make("false", Array("#!/bin/sh\nexit 3\n".utf8), mode: 0o755)
    try fs.remount()
    for (name, wanted) in [("true", CInt(0)), ("false", 3)] {
      let path = FileName(try fs.realPath(Path(name)).bytes)
      var process = pid_t()
      let code = path.withCString { text in
        var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(text), nil]
        defer { free(arguments[0]) }
        return posix_spawn(&process, text, nil, nil, &arguments, nil)
      }
      try expect(code, 0, "posix_spawn \(name)")
      var status: CInt = 0
      try expect(waitpid(process, &status, 0), process)
      try expect(status, wanted << 8, name)
    }
  }

  static func aRemovedDirectoryIsDead(_ fs: Volume) throws {
    try fs.mkdir("d")
    let handle = try fs.open("d", O_RDONLY | O_DIRECTORY)
    try fs.rmdir("d")
    try expect(fs.stat(.handle(handle)).st_nlink, 0)
    try expectError(ENOENT) { try fs.readdir(handle, from: 0, 10) }
    try expectError(ENOENT) {
      try checked(pv_openat(descriptor(handle), "a", O_CREAT | O_RDWR, 0o600), "")
    }
    try expectError(ENOENT) { try checked(mkdirat(descriptor(handle), "e", 0o700), "") }
    try fs.mkdir("d")
    try expectError(ENOENT) {
      try checked(pv_openat(descriptor(handle), "a", O_CREAT | O_RDWR, 0o600), "")
    }
    try fs.close(handle)
    try fs.expectNames("d", [])
  }

  static func descriptorsFollowRenames(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("other")
    let handle = try fs.open("d", O_RDONLY | O_DIRECTORY)
    let directory = descriptor(handle)
    try fs.rename("d", "other/e")
    let file = try checked(pv_openat(directory, "a", O_CREAT | O_RDWR, 0o600), "openat")
    _ = try checked(write(file, "x", 1), "write")
    _ = try checked(renameat(directory, "a", directory, "b"), "renameat")
    _ = try checked(mkdirat(directory, "sub", 0o700), "mkdirat")
    _ = try checked(linkat(directory, "b", directory, "sub/c", 0), "linkat")
    Glibc.close(file)
    try fs.expectNames("other/e", ["b", "sub"])
    try fs.expectContents("other/e/sub/c", "x")
    _ = try checked(unlinkat(directory, "b", 0), "unlinkat")
    try fs.close(handle)
    try fs.remount()
    try fs.expectNames("other/e", ["sub"])
    try fs.expectContents("other/e/sub/c", "x")
  }

  static func accessAnswers(_ fs: Volume) throws {
    try fs.make("a", "x", mode: 0o600)
    for mode in [F_OK, R_OK, W_OK, R_OK | W_OK] {
      try expect(onPath(fs, "a", "access") { access($0, mode) }, 0)
    }
    try expectError(EACCES) { try onPath(fs, "a", "access") { access($0, X_OK) } }
    try expectError(ENOENT) { try onPath(fs, "missing", "access") { access($0, F_OK) } }
    try expectError(ENOTDIR) { try onPath(fs, "a/b", "access") { access($0, F_OK) } }
  }

  static func positionsAreShared(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    let duplicate = try checked(dup(descriptor(handle)), "dup")
    for text in ["one ", "two ", "three"] {
      let number = text == "two " ? duplicate : descriptor(handle)
      try expect(checked(write(number, text, text.utf8.count), "write"), text.utf8.count)
    }
    Glibc.close(duplicate)
    try expect(checked(lseek(descriptor(handle), 0, SEEK_CUR), "lseek"), 13)
    try expect(checked(lseek(descriptor(handle), -5, SEEK_END), "lseek"), 8)
    var buffer = zeros(100)
    try expect(checked(read(descriptor(handle), &buffer, 100), "read"), 5)
    try expect(Array(buffer[..<5]), Array("three".utf8))
    try expect(checked(read(descriptor(handle), &buffer, 100), "read"), 0)
    try expectError(EINVAL) { try checked(lseek(descriptor(handle), -1, SEEK_SET), "") }
    try fs.close(handle)
    try fs.expectContents("a", "one two three")
  }

  static func appendCanBeSwitchedOnLater(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "12345")
    _ = try checked(fcntl(descriptor(handle), F_SETFL, O_APPEND), "F_SETFL")
    try fs.write(handle, "67", at: 0)
    _ = try checked(fcntl(descriptor(handle), F_SETFL, CInt(0)), "F_SETFL")
    try fs.write(handle, "X", at: 0)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "X234567")
  }

  static func sendfileCopies(_ fs: Volume) throws {
    try fs.make("a", pattern(500_000))
    let source = try fs.open("a")
    let target = try fs.open("b", O_CREAT | O_RDWR)
    var done = 0
    while done < 500_000 {
      let count = try checked(
        sendfile(descriptor(target), descriptor(source), nil, 500_000), "sendfile")
      if count == 0 { break }
      done += count
    }
    try fs.close(source)
    try fs.close(target)
    try fs.remount()
    try fs.expectContents("b", pattern(500_000))
  }

  static func unlinkedIsReopened(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.unlink("a")
    let again = try checked(open("/proc/self/fd/\(descriptor(handle))", O_RDWR), "open")
    var buffer = zeros(100_000)
    try expect(checked(pread(again, &buffer, 100_000, 0), "pread"), 100_000)
    try expect(buffer, pattern(100_000))
    _ = try checked(pwrite(again, "again", 5, 0), "pwrite")
    Glibc.close(again)
    try expect(fs.read(handle, 5), Array("again".utf8))
    try fs.close(handle)
    try fs.expectNames("", [])
  }

  static func unlinkedIsNotLinked(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "x")
    try fs.unlink("a")
    try expectError(ENOENT) {
      try onPath(fs, "b", "link") { pv_link_descriptor(descriptor(handle), AT_FDCWD, $0) }
    }
    try fs.close(handle)
    try fs.expectNames("", [])
  }

  static func syncfsKeepsWhatIsWritten(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    _ = try checked(pv_syncfs(descriptor(handle)), "syncfs")
    try fs.write(handle, "more", at: 100_000)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", pattern(100_000) + Array("more".utf8))
  }

  static func theRootStays(_ fs: Volume) throws {
    let status = try fs.stat("/")
    try expect(status.st_mode & S_IFMT, S_IFDIR)
    try expectError(EBUSY, ENOTEMPTY) { try fs.rmdir("/") }
    try fs.utimens("/", .seconds(1000, 1), .seconds(2000, 2))
    try expect(fs.stat("/").st_mtim.total, timespec.seconds(2000, 2).total)
    try fs.remount()
    try expect(fs.stat("/").st_mtim.total, timespec.seconds(2000, 2).total)
  }
}
