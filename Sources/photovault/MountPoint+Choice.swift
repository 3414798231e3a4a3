import FUSESession
import Glibc
import Platform

/// Which directory `mount` means, and whether it may be used. Changes nothing but a stale mount.
extension MountPoint {
  /// `given`, or the user's own place below the pictures; absolute, without symbolic links.
  /// The parents of the default are made.
  static func resolve(_ given: String?, user: String) throws(CommandError) -> String {
    guard let given else {
      let pictures = try picturesDirectory()
      try makeDirectories(pictures)
      return try resolved(pictures + "/" + user)
    }
    guard !given.isEmpty else { throw .usage("the mount point is empty", "mount") }
    return try resolved(Home.absolute(given))
  }

  /// Refuses `path` where the vault or the accounts would be hidden by the mount, or the
  /// mount point would be among the blobs.
  static func check(_ path: String, apartFrom places: [String]) throws(CommandError) {
    for place in places {
      guard let place = realPath(place) else { continue }
      if isBeneath(path, place) || isBeneath(place, path) {
        throw unusable(
          path, "it and \(place) are within one another",
          hint: "choose another directory: the mount would hide the vault, or be stored in it")
      }
    }
  }

  /// A mount whose process is gone is taken away if it is this user's.
  /// Throws `.alreadyMounted` where a living one of ours is.
  static func clearStaleMount(_ path: String) throws(CommandError) {
    guard try photovaultMount(at: path) != nil else { return }
    let isDead = isDead(path)
    // Again: a watcher may have taken it away just before the question.
    guard let mount = try photovaultMount(at: path) else { return }
    guard isDead else {
      throw CommandError(
        .alreadyMounted, "\(mount.source) is mounted at \(path) already",
        hint: "choose another directory, or unmount it: 'photovault unmount \(path)'")
    }
    guard getuid() == 0 || mount.user == getuid() else {
      throw unusable(
        path, "a dead mount of another user is there",
        hint: "choose another directory, or let root run: umount \(path)")
    }
    do throws(Errno) { try Unmount.detach(FileName(path)) } catch {
      if try photovaultMount(at: path) == nil { return }
      throw unusable(
        path, "the dead mount there can't be taken away: \(CommandError.sentence(error))",
        hint: "is the package fuse3 installed? try: fusermount3 -uz \(path)")
    }
  }

  private static func photovaultMount(
    at path: String
  ) throws(CommandError) -> MountTable.Entry? {
    let table = try about("/proc/self/mountinfo") { () throws(Errno) in
      try MountTable.current()
    }
    return table.top(at: FileName(path)).flatMap { mount in
      mount.type == MountTable.photovaultType ? mount : nil
    }
  }

  /// "Transport endpoint is not connected", or "Software caused connection abort" if the process went while
  /// we asked. Asked by statfs, which the kernel never answers from what it has cached; and only where
  /// the table of mounts has one of ours, for the question would make autofs mount it.
  static func isDead(_ path: String) -> Bool {
    if let table = try? MountTable.current(),
      table.top(at: FileName(path))?.type != MountTable.photovaultType
    {
      return false
    }
    var status = statvfs()
    return statvfs(path, &status) != 0 && (errno == ENOTCONN || errno == ECONNABORTED)
  }

  private static func resolved(_ path: String) throws(CommandError) -> String {
    // Only the parents: the directory itself may not exist yet, or be a dead mount.
    var trimmed = Substring(path)
    while trimmed.count > 1, trimmed.hasSuffix("/") { trimmed.removeLast() }
    guard let slash = trimmed.lastIndex(of: "/") else { return path }
    let name = trimmed[trimmed.index(after: slash)...]
    if name.isEmpty || name == "." || name == ".." || isSymbolicLink(String(trimmed)) {
      guard let whole = realPath(path) else { throw unusable(path, Errno.current) }
      return whole
    }
    let parent = trimmed[..<slash]
    guard let real = realPath(parent.isEmpty ? "/" : String(parent)) else {
      let error = Errno.current
      guard error == .noSuchEntry else { throw unusable(path, error) }
      throw unusable(
        path, "\(parent) does not exist", hint: "make it first, or check the path")
    }
    return (real == "/" ? "" : real) + "/" + name
  }

  private static func isSymbolicLink(_ path: String) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK
  }

  static func realPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return FileName(cString: resolved).description
  }

  private static func isBeneath(_ path: String, _ place: String) -> Bool {
    path == place || place == "/" || path.hasPrefix(place + "/")
  }

  /// What `xdg-user-dir PICTURES` prints, which reads the same file.
  private static func picturesDirectory() throws(CommandError) -> String {
    let home = try Home.userDirectory()
    let configuration = try Home.environment("XDG_CONFIG_HOME") ?? home + "/.config"
    let file = try? Syscalls.open(
      FileName(configuration + "/user-dirs.dirs"), flags: O_RDONLY)
    if let file {
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      let count = read(file.rawValue, &bytes, bytes.count)
      let text = String(decoding: bytes.prefix(max(0, count)), as: UTF8.self)
      if let found = UserDirectories.pictures(in: text, home: home) { return found }
    }
    return home + "/Pictures"
  }

  static func makeDirectories(_ path: String) throws(CommandError) {
    do throws(Errno) { _ = try DirectoryPath.make(path) } catch {
      throw unusable(path, error)
    }
  }
}
