import CLinux
package import Glibc
package import Platform

/// Drives a directory of the machine by system calls: a mounted vault or, as the measure for the
/// checks themselves, a plain directory.
package final class SystemCallDriver: FileSystemDriver {
  package let mountPoint: Path?
  package let backingDirectory: Path
  package let isPlain: Bool
  private let root: Path
  private let remounting: @Sendable () throws(Errno) -> Void
  private let ending: @Sendable () throws(Errno) -> Void

  package init(
    root: Path, backingDirectory: Path, isPlain: Bool,
    remounting: @escaping @Sendable () throws(Errno) -> Void,
    ending: @escaping @Sendable () throws(Errno) -> Void
  ) {
    self.root = root
    mountPoint = root
    self.backingDirectory = backingDirectory
    self.isPlain = isPlain
    self.remounting = remounting
    self.ending = ending
  }

  /// A new directory under $TMPDIR, removed at the end.
  package static func plain() throws(Errno) -> SystemCallDriver {
    let directory = try TemporaryDirectory()
    return SystemCallDriver(
      root: directory.path, backingDirectory: directory.path, isPlain: true, remounting: {},
      ending: { () throws(Errno) in directory.remove() })
  }

  package func remount() throws(Errno) { try remounting() }
  package func end() throws(Errno) { try ending() }

  package func open(_ path: Path, _ flags: CInt, _ mode: mode_t) throws(Errno) -> Handle {
    let number = try onPath(path) { pv_openat(AT_FDCWD, $0, flags | O_CLOEXEC, mode) }
    return Handle(number: UInt64(number))
  }

  package func close(_ handle: Handle) throws(Errno) { try check(Glibc.close(fd(handle))) }

  package func closeDuplicate(_ handle: Handle) throws(Errno) {
    let duplicate = try check(pv_fcntl_int(fd(handle), F_DUPFD_CLOEXEC, 3))
    try check(Glibc.close(duplicate))
  }

  package func read(_ handle: Handle, _ count: Int, at offset: Int64) throws(Errno) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let got = bytes.withUnsafeMutableBytes {
        pread(fd(handle), $0.baseAddress.map { $0 + done }, count - done, off_t(offset) + done)
      }
      if try check(got) == 0 { break }
      done += got
    }
    bytes.removeLast(count - done)
    return bytes
  }

  package func write(_ handle: Handle, _ bytes: [UInt8], at offset: Int64) throws(Errno) -> Int {
    try check(
      bytes.withUnsafeBytes { pwrite(fd(handle), $0.baseAddress, $0.count, off_t(offset)) })
  }

  package func synchronize(_ handle: Handle, dataOnly: Bool) throws(Errno) {
    try check(dataOnly ? fdatasync(fd(handle)) : fsync(fd(handle)))
  }

  package func allocate(
    _ handle: Handle, mode: CInt, _ offset: Int64, _ length: Int64
  ) throws(Errno) {
    try check(pv_fallocate(fd(handle), mode, off_t(offset), off_t(length)))
  }

  package func seek(_ handle: Handle, _ offset: Int64, _ whence: CInt) throws(Errno) -> Int64 {
    Int64(try check(lseek(fd(handle), off_t(offset), whence)))
  }

  package func truncate(_ subject: Subject, to size: Int64) throws(Errno) {
    switch subject {
    case .path(let path), .link(let path):
      try onPath(path) { Glibc.truncate($0, off_t(size)) }
    case .handle(let handle): try check(ftruncate(fd(handle), off_t(size)))
    }
  }

  package func status(_ subject: Subject) throws(Errno) -> stat {
    var result = stat()
    switch subject {
    case .path(let path): try onPath(path) { fstatat(AT_FDCWD, $0, &result, 0) }
    case .link(let path): try onPath(path) { lstat($0, &result) }
    case .handle(let handle): try check(fstat(fd(handle), &result))
    }
    return result
  }

  package func setMode(_ subject: Subject, _ mode: mode_t) throws(Errno) {
    switch subject {
    case .path(let path), .link(let path): try onPath(path) { chmod($0, mode) }
    case .handle(let handle): try check(fchmod(fd(handle), mode))
    }
  }

  package func setOwner(_ subject: Subject, _ user: uid_t, _ group: gid_t) throws(Errno) {
    switch subject {
    case .path(let path): try onPath(path) { chown($0, user, group) }
    case .link(let path): try onPath(path) { lchown($0, user, group) }
    case .handle(let handle): try check(fchown(fd(handle), user, group))
    }
  }

  package func setTimes(
    _ subject: Subject, _ access: timespec, _ modification: timespec
  ) throws(Errno) {
    let times = [access, modification]
    switch subject {
    case .path(let path): try onPath(path) { utimensat(AT_FDCWD, $0, times, 0) }
    case .link(let path):
      try onPath(path) { utimensat(AT_FDCWD, $0, times, AT_SYMLINK_NOFOLLOW) }
    case .handle(let handle): try check(futimens(fd(handle), times))
    }
  }

  package func makeDirectory(_ path: Path, _ mode: mode_t) throws(Errno) {
    try onPath(path) { mkdir($0, mode) }
  }

  package func removeDirectory(_ path: Path) throws(Errno) { try onPath(path) { rmdir($0) } }

  package func unlink(_ path: Path) throws(Errno) { try onPath(path) { Glibc.unlink($0) } }

  package func rename(
    _ old: Path, _ new: Path, _ flags: Syscalls.RenameFlags
  ) throws(Errno) {
    try onPaths(full(old), full(new)) {
      pv_renameat2(AT_FDCWD, $0, AT_FDCWD, $1, flags.rawValue)
    }
  }

  package func link(_ old: Path, _ new: Path) throws(Errno) {
    try onPaths(full(old), full(new)) { Glibc.link($0, $1) }
  }

  package func makeSymbolicLink(_ target: Path, _ path: Path) throws(Errno) {
    try onPaths(FileName(target.bytes), full(path)) { symlink($0, $1) }
  }

  package func readSymbolicLink(_ path: Path) throws(Errno) -> [UInt8] {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = try onPath(path) { readlink($0, &buffer, buffer.count) }
    return buffer[..<count].map { UInt8(bitPattern: $0) }
  }

  package func makeNode(_ path: Path, _ mode: mode_t, _ device: dev_t) throws(Errno) {
    try onPath(path) { mknod($0, mode, device) }
  }

  package func readDirectory(
    _ handle: Handle, from offset: Int64, _ count: Int
  ) throws(Errno) -> [DirectoryItem] {
    try check(lseek(fd(handle), off_t(offset), SEEK_SET))
    let bufferSize = 65536
    var buffer = [UInt8](repeating: 0, count: bufferSize)
    let filled = buffer.withUnsafeMutableBytes { bytes in
      bytes.baseAddress.map { pv_getdents64(fd(handle), $0, bytes.count) } ?? 0
    }
    return Array(DirectoryItem.parse(buffer[..<(try check(filled))]).prefix(count))
  }

  package func fileSystemStatus() throws(Errno) -> statvfs {
    var result = statvfs()
    try onPath("") { statvfs($0, &result) }
    return result
  }

  private func fd(_ handle: Handle) -> CInt { CInt(truncatingIfNeeded: handle.number) }

  private func full(_ path: Path) -> FileName {
    FileName(path.bytes.isEmpty ? root.bytes : (root / path).bytes)
  }

  @discardableResult
  func onPath<Number: SignedInteger>(
    _ path: Path, _ call: (UnsafePointer<CChar>) -> Number
  ) throws(Errno) -> Number {
    try full(path).withCString { text throws(Errno) in try check(call(text)) }
  }

  private func onPaths(
    _ first: FileName, _ second: FileName,
    _ call: (UnsafePointer<CChar>, UnsafePointer<CChar>) -> CInt
  ) throws(Errno) {
    _ = try first.withCString { cFirst throws(Errno) in
      try second.withCString { cSecond throws(Errno) in try check(call(cFirst, cSecond)) }
    }
  }

  @discardableResult
  func check<Number: SignedInteger>(_ result: Number) throws(Errno) -> Number {
    if result < 0 { throw .current }
    return result
  }
}

extension DirectoryItem {
  /// Source: getdents64(2), `struct linux_dirent64`.
  static func parse(_ records: ArraySlice<UInt8>) -> [DirectoryItem] {
    let nameOffset = 19
    var result: [DirectoryItem] = []
    records.withUnsafeBytes { bytes in
      var start = 0
      while start < bytes.count {
        let length = Int(bytes.loadUnaligned(fromByteOffset: start + 16, as: UInt16.self))
        let name = bytes[(start + nameOffset)..<(start + length)].prefix { $0 != 0 }
        result.append(
          DirectoryItem(
            name: Array(name), inode: bytes.loadUnaligned(fromByteOffset: start, as: UInt64.self),
            type: mode_t(bytes[start + 18]) << 12,
            nextOffset: bytes.loadUnaligned(fromByteOffset: start + 8, as: Int64.self)))
        start += length
      }
    }
    return result
  }
}
