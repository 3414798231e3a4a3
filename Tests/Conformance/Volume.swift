package import Glibc
package import Platform
import Synchronization

/// The file system as a check sees it: a driver, a directory of the check's own, and errors that
/// carry the line of the call. Handles a failed check leaves open are closed by `closeAll`.
package final class Volume: Sendable {
  package let driver: any FileSystemDriver
  private let base: Path
  private let openHandles = Mutex<Set<Handle>>([])

  /// Paths of the check count from `base`, which exists.
  package init(_ driver: any FileSystemDriver, base: Path) {
    self.driver = driver
    self.base = base
  }

  func resolved(_ path: Path) -> Path {
    if path.bytes.first == 0x2F { return Path(Array(path.bytes.dropFirst())) }
    return path.bytes.isEmpty ? base : base / path
  }

  private func resolved(_ subject: Subject) -> Subject {
    switch subject {
    case .path(let path): .path(resolved(path))
    case .link(let path): .link(resolved(path))
    case .handle: subject
    }
  }

  private func located<Value>(
    _ call: @autoclosure () -> String, _ file: StaticString, _ line: UInt,
    _ body: () throws(Errno) -> Value
  ) throws -> Value {
    do throws(Errno) { return try body() } catch {
      throw CheckFailure("\(call()): \(error)", errno: error, file, line)
    }
  }

  package func open(
    _ path: Path, _ flags: CInt = O_RDONLY, mode: mode_t = 0o644,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> Handle {
    let handle = try located("open \(path)", file, line) { () throws(Errno) in
      try driver.open(resolved(path), flags, mode)
    }
    _ = openHandles.withLock { $0.insert(handle) }
    return handle
  }

  package func close(
    _ handle: Handle, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    _ = openHandles.withLock { $0.remove(handle) }
    try located("close", file, line) { () throws(Errno) in try driver.close(handle) }
  }

  package func closeDuplicate(
    _ handle: Handle, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("flush", file, line) { () throws(Errno) in try driver.closeDuplicate(handle) }
  }

  package func closeAll() {
    let left = openHandles.withLock { handles in
      defer { handles = [] }
      return handles
    }
    for handle in left { try? driver.close(handle) }
  }

  package func read(
    _ handle: Handle, _ count: Int, at offset: Int64 = 0,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [UInt8] {
    try located("read \(count) at \(offset)", file, line) { () throws(Errno) in
      try driver.read(handle, count, at: offset)
    }
  }

  /// All of `bytes`, or the check fails.
  package func write(
    _ handle: Handle, _ bytes: [UInt8], at offset: Int64 = 0,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    let call = "write \(bytes.count) at \(offset)"
    let count = try located(call, file, line) { () throws(Errno) in
      try driver.write(handle, bytes, at: offset)
    }
    try expect(count, bytes.count, call, file, line)
  }

  package func write(
    _ handle: Handle, _ text: String, at offset: Int64 = 0,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try write(handle, Array(text.utf8), at: offset, file, line)
  }

  package func fsync(
    _ handle: Handle, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("fsync", file, line) { () throws(Errno) in
      try driver.synchronize(handle, dataOnly: false)
    }
  }

  package func fdatasync(
    _ handle: Handle, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("fdatasync", file, line) { () throws(Errno) in
      try driver.synchronize(handle, dataOnly: true)
    }
  }

  package func fallocate(
    _ handle: Handle, _ mode: CInt, _ offset: Int64, _ length: Int64,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("fallocate \(mode) \(length) at \(offset)", file, line) { () throws(Errno) in
      try driver.allocate(handle, mode: mode, offset, length)
    }
  }

  package func seek(
    _ handle: Handle, _ offset: Int64, _ whence: CInt,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> Int64 {
    try located("seek \(offset) from \(whence)", file, line) { () throws(Errno) in
      try driver.seek(handle, offset, whence)
    }
  }

  package func truncate(
    _ subject: Subject, to size: Int64, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("truncate \(subject) to \(size)", file, line) { () throws(Errno) in
      try driver.truncate(resolved(subject), to: size)
    }
  }

  package func stat(
    _ subject: Subject, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> stat {
    try located("stat \(subject)", file, line) { () throws(Errno) in
      try driver.status(resolved(subject))
    }
  }

  package func chmod(
    _ subject: Subject, _ mode: mode_t, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("chmod \(subject)", file, line) { () throws(Errno) in
      try driver.setMode(resolved(subject), mode)
    }
  }

  package func chown(
    _ subject: Subject, _ user: uid_t, _ group: gid_t,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("chown \(subject)", file, line) { () throws(Errno) in
      try driver.setOwner(resolved(subject), user, group)
    }
  }

  package func utimens(
    _ subject: Subject, _ access: timespec, _ modification: timespec,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("utimens \(subject)", file, line) { () throws(Errno) in
      try driver.setTimes(resolved(subject), access, modification)
    }
  }

  package func remount(_ file: StaticString = #filePath, _ line: UInt = #line) throws {
    let open = openHandles.withLock { $0.count }
    try expect(open, 0, "handles open at a remount", file, line)
    try located("remount", file, line) { () throws(Errno) in try driver.remount() }
  }
}

extension Volume {
  package func getxattr(
    _ subject: Subject, _ name: String, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [UInt8] {
    try located("getxattr \(subject) \(name)", file, line) { () throws(Errno) in
      try driver.extendedAttribute(resolved(subject), FileName(name))
    }
  }

  /// In no particular order, so sorted.
  package func listxattr(
    _ subject: Subject, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [String] {
    try located("listxattr \(subject)", file, line) { () throws(Errno) in
      try driver.extendedAttributeNames(resolved(subject)).map(\.description)
        .filter { $0.utf8.starts(with: "user.".utf8) }.sorted()
    }
  }

  package func setxattr(
    _ subject: Subject, _ name: String, _ value: [UInt8], flags: CInt = 0,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("setxattr \(subject) \(name)", file, line) { () throws(Errno) in
      try driver.setExtendedAttribute(resolved(subject), FileName(name), value, flags: flags)
    }
  }

  package func removexattr(
    _ subject: Subject, _ name: String, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("removexattr \(subject) \(name)", file, line) { () throws(Errno) in
      try driver.removeExtendedAttribute(resolved(subject), FileName(name))
    }
  }

  package func mkdir(
    _ path: Path, mode: mode_t = 0o755, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("mkdir \(path)", file, line) { () throws(Errno) in
      try driver.makeDirectory(resolved(path), mode)
    }
  }

  package func rmdir(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("rmdir \(path)", file, line) { () throws(Errno) in
      try driver.removeDirectory(resolved(path))
    }
  }

  package func unlink(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("unlink \(path)", file, line) { () throws(Errno) in
      try driver.unlink(resolved(path))
    }
  }

  package func rename(
    _ old: Path, _ new: Path, _ flags: Syscalls.RenameFlags = [],
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("rename \(old) to \(new)", file, line) { () throws(Errno) in
      try driver.rename(resolved(old), resolved(new), flags)
    }
  }

  package func link(
    _ old: Path, _ new: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("link \(old) as \(new)", file, line) { () throws(Errno) in
      try driver.link(resolved(old), resolved(new))
    }
  }

  package func symlink(
    _ target: Path, _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("symlink \(path)", file, line) { () throws(Errno) in
      try driver.makeSymbolicLink(target, resolved(path))
    }
  }

  package func readlink(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [UInt8] {
    try located("readlink \(path)", file, line) { () throws(Errno) in
      try driver.readSymbolicLink(resolved(path))
    }
  }

  package func mknod(
    _ path: Path, _ mode: mode_t, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try located("mknod \(path)", file, line) { () throws(Errno) in
      try driver.makeNode(resolved(path), mode, 0)
    }
  }

  package func readdir(
    _ handle: Handle, from offset: Int64, _ count: Int,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [DirectoryItem] {
    try located("readdir from \(offset)", file, line) { () throws(Errno) in
      try driver.readDirectory(handle, from: offset, count)
    }
  }

  package func statvfs(
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> statvfs {
    try located("statvfs", file, line) { () throws(Errno) in try driver.fileSystemStatus() }
  }
}
