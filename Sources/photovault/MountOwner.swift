import Glibc
import Platform

/// Whose mount it is where root makes it: at boot, or by autofs, with `-o setuid=USER` as in
/// mount.fuse3(8).
enum MountOwner {
  /// What the environment says about root's session; the user's own is another one.
  private static let sessionVariables = [
    "XDG_RUNTIME_DIR", "XDG_SESSION_ID", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME", "DBUS_SESSION_BUS_ADDRESS", "PHOTOVAULT_HOME",
  ]

  /// Makes this process `user`'s for good. A mount point that is root's, and that nobody else could
  /// have put there, becomes the user's first: fusermount3 mounts on nothing else.
  static func become(_ user: String, mountPoint: String?) throws(CommandError) {
    guard let entry = getpwnam(user) else {
      throw CommandError(
        .usage, "no user '\(user)' on this machine", hint: "setuid is a login name")
    }
    let (id, group) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
    let home = FileName(cString: entry.pointee.pw_dir)
    if getuid() == id { return }
    guard getuid() == 0 else {
      throw CommandError(
        .usage, "only root can mount for another user", hint: "leave setuid out")
    }
    if let mountPoint { handOver(try Home.absolute(mountPoint), to: id, group) }
    // Of root they set the saved IDs as well. Source: setuid(2).
    guard initgroups(user, group) == 0, setgid(group) == 0, setuid(id) == 0 else {
      throw CommandError("becoming the user '\(user)'", Errno.current)
    }
    for variable in sessionVariables { unsetenv(variable) }
    home.withCString { _ = setenv("HOME", $0, 1) }
    for variable in ["USER", "LOGNAME"] { setenv(variable, user, 1) }
  }

  /// Root must not be led astray by who owns a directory on the way.
  private static func handOver(_ path: String, to user: uid_t, _ group: gid_t) {
    guard let real = MountPoint.realPath(path), real == path else { return }
    var parent = Substring(real)
    repeat {
      parent = parent[..<(parent.lastIndex(of: "/") ?? parent.startIndex)]
      var status = stat()
      guard lstat(parent.isEmpty ? "/" : String(parent), &status) == 0, status.st_uid == 0,
        status.st_mode & 0o022 == 0
      else { return }
    } while !parent.isEmpty
    guard
      let directory = try? Syscalls.open(
        FileName(real), flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW),
      let status = try? Syscalls.status(directory.rawValue), status.st_uid == 0,
      let entries = try? DirectoryEntries.read(directory.rawValue), entries.isEmpty
    else { return }
    try? Syscalls.setOwner(directory.rawValue, user, group)
  }
}
