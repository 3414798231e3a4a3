import CLinux
package import Glibc

/// Every call of the package that changes or reads the disk, one function each. The C function has
/// the name in quotes. EINTR is asked again where the call allows it. Tests make any of them fail
/// or stop through `SyscallFaults`.
package enum Syscalls {
  /// "openat". `mode` counts with O_CREAT and O_TMPFILE; O_CLOEXEC is added.
  package static func open(
    _ path: FileName, in directory: CInt = AT_FDCWD, flags: CInt, mode: mode_t = 0
  ) throws(Errno) -> FileDescriptor {
    FileDescriptor(
      owning: try path.withCString { cPath throws(Errno) in
        try retrying(.open) { pv_openat(directory, cPath, flags | O_CLOEXEC, mode) }
      })
  }

  /// "openat" with O_TMPFILE: a file without a name, readable and writable.
  package static func openTemporary(
    in directory: CInt, mode: mode_t
  ) throws(Errno) -> FileDescriptor {
    FileDescriptor(
      owning: try retrying(.openTemporary) {
        pv_openat(directory, ".", pv_O_TMPFILE | O_RDWR | O_CLOEXEC, mode)
      })
  }

  /// O_NOATIME, for `open`: only the file's owner and root may.
  package static let withoutAccessTime = pv_O_NOATIME

  package static func duplicate(_ fd: CInt) throws(Errno) -> FileDescriptor {
    FileDescriptor(owning: try retrying(.open) { pv_fcntl_int(fd, F_DUPFD_CLOEXEC, 3) })
  }

  /// "pread": fills `buffer` unless the file ends before; returns the bytes read.
  package static func read(
    _ fd: CInt, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(Errno) -> Int {
    var done = 0
    while done < buffer.count {
      let limit = try SyscallFaults.short(.read, of: buffer.count - done)
      let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<(done + limit)])
      let count = try retrying(.read) {
        pread(fd, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
      }
      if count == 0 { break }
      done += count
    }
    return done
  }

  /// "pwrite": all of `buffer`, or an error; the file may then hold a part of it.
  package static func write(
    _ fd: CInt, _ buffer: UnsafeRawBufferPointer, at offset: Int64
  ) throws(Errno) {
    var done = 0
    while done < buffer.count {
      var rest = UnsafeRawBufferPointer(rebasing: buffer[done...])
      let limit = try SyscallFaults.short(.write, of: rest.count)
      rest = UnsafeRawBufferPointer(rebasing: rest[..<limit])
      let count = try retrying(.write) {
        pwrite(fd, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
      }
      if count == 0 { throw .inputOutput }
      done += count
    }
  }

  /// "fstat".
  package static func status(_ fd: CInt) throws(Errno) -> stat {
    var result = stat()
    try check(.status) { fstat(fd, &result) }
    return result
  }

  /// "fstatat" with AT_SYMLINK_NOFOLLOW.
  package static func status(of name: FileName, in directory: CInt) throws(Errno) -> stat {
    var result = stat()
    try name.withCString { cName throws(Errno) in
      try check(.status) { fstatat(directory, cName, &result, AT_SYMLINK_NOFOLLOW) }
    }
    return result
  }

  /// "fstatvfs".
  package static func fileSystemStatus(_ fd: CInt) throws(Errno) -> statvfs {
    var result = statvfs()
    try check(.status) { fstatvfs(fd, &result) }
    return result
  }

  /// Whether the disk is another machine's, or a program's that may be: NFS, SMB, Ceph, sshfs. Such
  /// a disk tells that it had no room when a file is synchronized, not when it is written.
  package static func isFarDisk(_ fd: CInt) -> Bool {
    switch pv_file_system_type(fd) {
    case 0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x00C3_6400: true  // statfs(2)
    // A FUSE program with a disk of its own, such as ntfs-3g, has that one's number.
    case 0x6573_5546: (try? status(fd)).map { $0.st_dev >> 8 == 0 } ?? true
    default: false
    }
  }

  package static func synchronize(_ fd: CInt) throws(Errno) {
    try check(.synchronize) { fsync(fd) }
  }

  package static func synchronizeData(_ fd: CInt) throws(Errno) {
    try check(.synchronize) { fdatasync(fd) }
  }

  /// Starts writing `range` back without waiting; a hint, so failure is nobody's business.
  package static func startWriteback(_ fd: CInt, _ range: Range<Int64>) {
    _ = pv_sync_file_range_write(fd, off_t(range.lowerBound), off_t(range.count))
  }

  /// "posix_fadvise" with POSIX_FADV_DONTNEED: what is read next comes from the disk again, as far
  /// as it was written back. A hint, too.
  package static func dropPages(of fd: CInt) { _ = posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) }

  package static func truncate(_ fd: CInt, to size: Int64) throws(Errno) {
    try check(.truncate) { ftruncate(fd, off_t(size)) }
  }

  package static func allocate(_ fd: CInt, _ range: Range<Int64>) throws(Errno) {
    try check(.allocate) { pv_fallocate(fd, 0, off_t(range.lowerBound), off_t(range.count)) }
  }

  /// "linkat" of an open file, which may have no name yet.
  package static func link(
    descriptor: CInt, as name: FileName, in directory: CInt
  ) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.link) { pv_link_descriptor(descriptor, directory, cName) }
    }
  }

  /// "linkat".
  package static func link(
    _ old: FileName, in oldDirectory: CInt, as new: FileName, in newDirectory: CInt
  ) throws(Errno) {
    try old.withCString { cOld throws(Errno) in
      try new.withCString { cNew throws(Errno) in
        try check(.link) { linkat(oldDirectory, cOld, newDirectory, cNew, 0) }
      }
    }
  }

  package struct RenameFlags: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }
    package static let noReplace = RenameFlags(rawValue: pv_RENAME_NOREPLACE)
    package static let exchange = RenameFlags(rawValue: pv_RENAME_EXCHANGE)
  }

  /// "renameat2".
  package static func rename(
    _ old: FileName, in oldDirectory: CInt, to new: FileName, in newDirectory: CInt,
    flags: RenameFlags = []
  ) throws(Errno) {
    try old.withCString { cOld throws(Errno) in
      try new.withCString { cNew throws(Errno) in
        try check(.rename) {
          pv_renameat2(oldDirectory, cOld, newDirectory, cNew, flags.rawValue)
        }
      }
    }
  }

  /// "unlinkat".
  package static func unlink(_ name: FileName, in directory: CInt) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.unlink) { unlinkat(directory, cName, 0) }
    }
  }

  /// "unlinkat" with AT_REMOVEDIR.
  package static func removeDirectory(_ name: FileName, in directory: CInt) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.unlink) { unlinkat(directory, cName, AT_REMOVEDIR) }
    }
  }

  /// "mkdirat".
  package static func makeDirectory(
    _ name: FileName, in directory: CInt, mode: mode_t
  ) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.makeDirectory) { mkdirat(directory, cName, mode) }
    }
  }

  /// "mknodat": fifos, sockets, devices.
  package static func makeNode(
    _ name: FileName, in directory: CInt, mode: mode_t, device: dev_t
  ) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.makeNode) { mknodat(directory, cName, mode, device) }
    }
  }

  /// "symlinkat".
  package static func makeSymbolicLink(
    to target: FileName, as name: FileName, in directory: CInt
  ) throws(Errno) {
    try target.withCString { cTarget throws(Errno) in
      try name.withCString { cName throws(Errno) in
        try check(.makeSymbolicLink) { symlinkat(cTarget, directory, cName) }
      }
    }
  }

  /// "readlinkat".
  package static func readSymbolicLink(
    _ name: FileName, in directory: CInt
  ) throws(Errno) -> FileName {
    var buffer = [UInt8](repeating: 0, count: Int(PATH_MAX))
    let count = try name.withCString { cName throws(Errno) in
      try retrying(.readSymbolicLink) {
        buffer.withUnsafeMutableBytes { bytes in
          let text = bytes.assumingMemoryBound(to: CChar.self)
          return readlinkat(directory, cName, text.baseAddress.unsafelyUnwrapped, text.count)
        }
      }
    }
    return FileName(Array(buffer[..<count]))
  }

  /// "getdents64": fills `buffer` with `struct linux_dirent64`; 0 at the end of the directory.
  package static func directoryEntries(
    _ fd: CInt, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    guard let base = buffer.baseAddress else { return 0 }
    return try retrying(.readDirectory) { pv_getdents64(fd, base, buffer.count) }
  }

  /// "flock" with LOCK_EX: waits for it; it goes with the last descriptor of this open file.
  package static func lockExclusively(_ fd: CInt) throws(Errno) {
    try check(.lock) { flock(fd, LOCK_EX) }
  }

  /// "read": what is there, at most `buffer`; 0 at the end.
  package static func read(
    _ fd: CInt, into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    let limit = try SyscallFaults.short(.read, of: buffer.count)
    return try retrying(.read) { Glibc.read(fd, buffer.baseAddress, limit) }
  }

  /// "write": all of `buffer` at the descriptor's own offset.
  package static func write(_ fd: CInt, _ buffer: UnsafeRawBufferPointer) throws(Errno) {
    var done = 0
    while done < buffer.count {
      var rest = UnsafeRawBufferPointer(rebasing: buffer[done...])
      let limit = try SyscallFaults.short(.write, of: rest.count)
      rest = UnsafeRawBufferPointer(rebasing: rest[..<limit])
      let count = try retrying(.write) { Glibc.write(fd, rest.baseAddress, rest.count) }
      if count == 0 { throw .inputOutput }
      done += count
    }
  }

  /// "fcntl" with F_OFD_SETLK: a write lock on the whole file that goes with the last descriptor of
  /// this open. Throws EAGAIN or EACCES while another holds it.
  package static func lockWholeFile(_ fd: CInt) throws(Errno) {
    try check(.lock) { pv_lock_whole_file(fd) }
  }

  /// "fcntl" with F_OFD_GETLK: whether another open of the file holds what `lockWholeFile` takes.
  package static func isWholeFileLocked(_ fd: CInt) throws(Errno) -> Bool {
    try retrying(.lock) { pv_is_whole_file_locked(fd) } > 0
  }

  /// "fstatat": of what a symbolic link leads to.
  package static func statusBehindLinks(of path: FileName) throws(Errno) -> stat {
    var result = stat()
    try path.withCString { cPath throws(Errno) in
      try check(.status) { fstatat(AT_FDCWD, cPath, &result, 0) }
    }
    return result
  }

  @inline(__always)
  static func retrying<Number: SignedInteger>(
    _ name: SyscallFaults.Call, _ call: () -> Number
  ) throws(Errno) -> Number {
    while true {
      do throws(Errno) { try SyscallFaults.before(name) } catch {
        if error == .interrupted { continue }
        throw error
      }
      let result = call()
      if result >= 0 { return result }
      let error = Errno.current
      if error != .interrupted { throw error }
    }
  }

  @inline(__always)
  static func check(
    _ name: SyscallFaults.Call, _ call: () -> CInt
  ) throws(Errno) { _ = try retrying(name, call) }
}
