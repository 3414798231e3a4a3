package import Glibc
package import Platform

/// An open file or directory of a driver.
package struct Handle: Hashable, Sendable {
  package let number: UInt64
  package init(number: UInt64) { self.number = number }
}

/// What a call that takes a path or a descriptor is about.
package enum Subject: Sendable, ExpressibleByStringLiteral, ExpressibleByStringInterpolation,
  CustomStringConvertible
{
  /// Symbolic links are followed.
  case path(Path)
  /// The link itself.
  case link(Path)
  case handle(Handle)

  package init(stringLiteral value: String) { self = .path(Path(value)) }

  package var description: String {
    switch self {
    case .path(let path): "\(path)"
    case .link(let path): "\(path) itself"
    case .handle(let handle): "handle \(handle.number)"
    }
  }
}

/// One entry as getdents64(2) gives it.
package struct DirectoryItem: Sendable {
  package let name: [UInt8]
  package let inode: UInt64
  /// The S_IFMT bits.
  package let type: mode_t
  /// Where reading goes on behind this entry.
  package let nextOffset: Int64

  package init(name: [UInt8], inode: UInt64, type: mode_t, nextOffset: Int64) {
    self.name = name
    self.inode = inode
    self.type = type
    self.nextOffset = nextOffset
  }
}

/// A file system as programs see it: the calls of POSIX and Linux by path, with their error numbers.
/// Paths count from the file system's root and have no leading slash; the empty one is the root.
package protocol FileSystemDriver: AnyObject, Sendable {
  /// Where the file system can be reached by system calls; nil = only through this driver.
  var mountPoint: Path? { get }
  /// The directory on the disk whose free space the file system has.
  var backingDirectory: Path { get }
  /// Whether this is a directory of the system's own file system, the measure for the checks.
  var isPlain: Bool { get }

  func open(_ path: Path, _ flags: CInt, _ mode: mode_t) throws(Errno) -> Handle
  func close(_ handle: Handle) throws(Errno)
  /// What closing a duplicate of the descriptor does: a FLUSH, the handle stays open.
  func closeDuplicate(_ handle: Handle) throws(Errno)
  func read(_ handle: Handle, _ count: Int, at offset: Int64) throws(Errno) -> [UInt8]
  /// With O_APPEND at the end, whatever `offset` says.
  func write(_ handle: Handle, _ bytes: [UInt8], at offset: Int64) throws(Errno) -> Int
  func synchronize(_ handle: Handle, dataOnly: Bool) throws(Errno)
  func allocate(_ handle: Handle, mode: CInt, _ offset: Int64, _ length: Int64) throws(Errno)
  func seek(_ handle: Handle, _ offset: Int64, _ whence: CInt) throws(Errno) -> Int64

  func truncate(_ subject: Subject, to size: Int64) throws(Errno)
  func status(_ subject: Subject) throws(Errno) -> stat
  func setMode(_ subject: Subject, _ mode: mode_t) throws(Errno)
  func setOwner(_ subject: Subject, _ user: uid_t, _ group: gid_t) throws(Errno)
  func setTimes(_ subject: Subject, _ access: timespec, _ modification: timespec) throws(Errno)
  func extendedAttribute(_ subject: Subject, _ name: FileName) throws(Errno) -> [UInt8]
  func extendedAttributeNames(_ subject: Subject) throws(Errno) -> [FileName]
  func setExtendedAttribute(
    _ subject: Subject, _ name: FileName, _ value: [UInt8], flags: CInt) throws(Errno)
  func removeExtendedAttribute(_ subject: Subject, _ name: FileName) throws(Errno)

  func makeDirectory(_ path: Path, _ mode: mode_t) throws(Errno)
  func removeDirectory(_ path: Path) throws(Errno)
  func unlink(_ path: Path) throws(Errno)
  func rename(_ old: Path, _ new: Path, _ flags: Syscalls.RenameFlags) throws(Errno)
  func link(_ old: Path, _ new: Path) throws(Errno)
  func makeSymbolicLink(_ target: Path, _ path: Path) throws(Errno)
  func readSymbolicLink(_ path: Path) throws(Errno) -> [UInt8]
  func makeNode(_ path: Path, _ mode: mode_t, _ device: dev_t) throws(Errno)
  /// At most `count` entries from `offset` on; none = the end.
  func readDirectory(
    _ handle: Handle, from offset: Int64, _ count: Int
  ) throws(Errno) -> [DirectoryItem]
  func fileSystemStatus() throws(Errno) -> statvfs

  /// Ends the file system in good order and starts it anew from what is on the disk. No handle is
  /// open.
  func remount() throws(Errno)
  /// Ends it for good.
  func end() throws(Errno)
}
