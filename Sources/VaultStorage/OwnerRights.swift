import Glibc
package import Platform

/// What a photo's mode forbids its owner the vault has to do all the same, to keep what belongs to the
/// photo: for that moment the mode allows it.
package enum OwnerRights {
  /// Opens a stored file for reading.
  package static func open(
    _ stored: FileName, in directory: CInt
  ) throws(Errno) -> FileDescriptor {
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
    do throws(Errno) { return try Syscalls.open(stored, in: directory, flags: flags) } catch {
      guard error == .permissionDenied else { throw error }
    }
    let mode = try Syscalls.status(of: stored, in: directory).st_mode & 0o7777
    try Syscalls.setMode(of: stored, in: directory, mode | S_IRUSR)
    defer { try? Syscalls.setMode(of: stored, in: directory, mode) }
    return try Syscalls.open(stored, in: directory, flags: flags)
  }

  /// "fgetxattr". Throws ENODATA where there is none.
  package static func extendedAttribute(
    _ file: CInt, _ name: FileName
  ) throws(Errno) -> [UInt8] {
    try granted(S_IRUSR, on: file) { () throws(Errno) in
      try Syscalls.extendedAttribute(file, name)
    }
  }

  /// Calls `body`, and once more with `rights` where they lack.
  static func granted<Result>(
    _ rights: mode_t, on file: CInt, _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    do throws(Errno) { return try body() } catch {
      guard error == .permissionDenied else { throw error }
    }
    let mode = try Syscalls.status(file).st_mode & 0o7777
    try Syscalls.setMode(file, mode | rights)
    defer { try? Syscalls.setMode(file, mode) }
    return try body()
  }
}
