import Glibc

/// Our own little files, read and written whole: `vault.json`, account items and their like.
package enum SmallFile {
  /// nil when there is no such regular file or it is longer than `limit`.
  package static func read(
    _ name: FileName, in directory: CInt, atMost limit: Int
  ) throws(Errno) -> [UInt8]? {
    let file: FileDescriptor
    do throws(Errno) { file = try open(name, in: directory, flags: O_RDONLY) } catch {
      switch error {
      case .noSuchEntry, .tooManySymbolicLinks, .isADirectory, .noSeekTarget: return nil
      default: throw error
      }
    }
    return try read(file, atMost: limit)
  }

  /// Doesn't follow a link and doesn't wait for a fifo's other end.
  package static func open(
    _ name: FileName, in directory: CInt, flags: CInt
  ) throws(Errno) -> FileDescriptor {
    try Syscalls.open(name, in: directory, flags: flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
  }

  package static func read(
    _ file: borrowing FileDescriptor, atMost limit: Int
  ) throws(Errno) -> [UInt8]? {
    let status = try Syscalls.status(file.rawValue)
    guard status.st_mode & S_IFMT == mode_t(Glibc.S_IFREG), status.st_size <= limit else {
      return nil
    }
    var bytes = [UInt8](repeating: 0, count: limit + 1)
    let count: Result<Int, Errno> = bytes.withUnsafeMutableBytes { buffer in
      do throws(Errno) {
        return .success(try Syscalls.read(file.rawValue, into: buffer, at: 0))
      } catch { return .failure(error) }
    }
    let read = try count.get()
    return read <= limit ? Array(bytes[..<read]) : nil
  }

  /// Writes a new file of mode 0600; none is left on failure. Throws EEXIST.
  package static func write(
    _ contents: [UInt8], as name: FileName, in directory: CInt, durably: Bool
  ) throws(Errno) {
    let file = try Syscalls.open(
      name, in: directory, flags: O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    do throws(Errno) {
      try contents.withUnsafeBufferPointer { bytes throws(Errno) in
        try Syscalls.write(file.rawValue, UnsafeRawBufferPointer(bytes), at: 0)
      }
      if durably { try Syscalls.synchronize(file.rawValue) }
      try file.close()
    } catch {
      try? Syscalls.unlink(name, in: directory)
      throw error
    }
  }

  /// Writes the file whole or not at all, durable but for its directory entry.
  package static func replace(
    _ name: FileName, with contents: [UInt8], in directory: CInt, temporary: FileName,
    overwriting: Bool
  ) throws(Errno) {
    try write(contents, as: temporary, in: directory, durably: true)
    do throws(Errno) {
      if overwriting {
        try Syscalls.rename(temporary, in: directory, to: name, in: directory)
      } else {
        try Syscalls.renameToNewName(temporary, to: name, in: directory)
      }
    } catch {
      try? Syscalls.unlink(temporary, in: directory)
      throw error
    }
  }
}

extension Syscalls {
  package static func renameToNewName(
    _ old: FileName, to new: FileName, in directory: CInt
  ) throws(Errno) {
    try renameToNewName(old, in: directory, to: new, in: directory)
  }

  /// rename with RENAME_NOREPLACE, also where the file system doesn't know that flag.
  package static func renameToNewName(
    _ old: FileName, in oldDirectory: CInt, to new: FileName, in newDirectory: CInt
  ) throws(Errno) {
    do throws(Errno) {
      try rename(old, in: oldDirectory, to: new, in: newDirectory, flags: .noReplace)
    } catch {
      guard error == .invalidArgument || error == .noSystemCall else { throw error }
      if try exists(new, in: newDirectory) { throw .exists }
      try rename(old, in: oldDirectory, to: new, in: newDirectory)
    }
  }

  /// A second name for a file; on a disk without hard links the first one goes, and false is
  /// returned. Throws EEXIST where the new one is taken.
  package static func linkOrRename(
    _ old: FileName, in oldDirectory: CInt, as new: FileName, in newDirectory: CInt
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try link(old, in: oldDirectory, as: new, in: newDirectory)
      return true
    } catch {
      guard [.notPermitted, .notSupported, .noSystemCall].contains(error) else { throw error }
      try renameToNewName(old, in: oldDirectory, to: new, in: newDirectory)
      return false
    }
  }

  package static func exists(_ name: FileName, in directory: CInt) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try status(of: name, in: directory)
      return true
    } catch {
      if error == .noSuchEntry { return false }
      throw error
    }
  }
}
