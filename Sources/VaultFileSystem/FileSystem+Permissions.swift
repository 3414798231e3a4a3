import Glibc
import Platform

/// Permissions, where only the user who mounts gets in: the kernel leaves them to the file system, and
/// need not ask for a directory's mode after each change in it. A program's rights are then this
/// process's own; root's are not limited. Source: path_resolution(7).
///
/// What is not checked here the disk below refuses: to look up names, to change modes and owners.
extension FileSystem {
  /// As access(2) counts them.
  package struct Access: OptionSet, Sendable {
    package let rawValue: CInt

    package init(rawValue: CInt) { self.rawValue = rawValue }

    static let execute = Access(rawValue: X_OK)
    static let write = Access(rawValue: W_OK)
    static let read = Access(rawValue: R_OK)
    /// Names come and go.
    static let change: Access = [.write, .execute]

    /// Of who opens a file with these flags.
    init(opening flags: CInt) {
      switch flags & O_ACCMODE {
      case O_RDONLY: self = .read
      case O_WRONLY: self = .write
      default: self = [.read, .write]
      }
      if flags & O_TRUNC != 0 { insert(.write) }
    }
  }

  /// "access".
  package func checkAccess(_ wanted: Access, to node: NodeID) throws(FileSystemError) {
    let inode = try asked(node)
    try require(wanted, of: inode)
    // Not even root runs what nobody may.
    guard wanted.contains(.execute), inode.isRegular else { return }
    if try attributes(of: inode).st_mode & 0o111 == 0 { throw .system(.permissionDenied) }
  }

  /// Throws EACCES. Before any directory is locked.
  func require(_ wanted: Access, of inode: Inode) throws(FileSystemError) {
    guard checksPermissions else { return }
    let status = try attributes(of: inode)
    let granted =
      status.st_uid == geteuid()
      ? status.st_mode >> 6 : groups.contains(status.st_gid) ? status.st_mode >> 3 : status.st_mode
    guard wanted.isSubset(of: Access(rawValue: CInt(granted & 0o7))) else {
      throw .system(.permissionDenied)
    }
  }

  /// What `require` throws.
  func refusal(of wanted: Access, to inode: Inode) -> FileSystemError? {
    do throws(FileSystemError) { try require(wanted, of: inode) } catch { return error }
    return nil
  }

  /// What the disk will say to `changes` of a file that it doesn't have yet. Source: chown(2),
  /// chmod(2).
  func permitted(_ changes: AttributeChanges, of group: gid_t) throws(FileSystemError)
    -> AttributeChanges
  {
    if givesAway { return changes }
    var changes = changes
    if let user = changes.user, user != geteuid() { throw .system(.notPermitted) }
    if let group = changes.group, !groups.contains(group) { throw .system(.notPermitted) }
    if let mode = changes.mode, !groups.contains(changes.group ?? group) {
      changes.mode = mode & ~S_ISGID
    }
    return changes
  }

  /// Those that this process is in.
  static var ownGroups: Set<gid_t> {
    var others = [gid_t](repeating: 0, count: max(0, Int(getgroups(0, nil))))
    let count = getgroups(CInt(others.count), &others)
    return Set(others.prefix(max(0, Int(count)))).union([getegid()])
  }
}
