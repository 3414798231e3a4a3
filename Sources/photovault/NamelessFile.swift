import Glibc
import Platform
import VaultStorage

/// Files that no directory lists, so that nothing of them is left when the program ends.
enum NamelessFile {
  /// Also where the file system doesn't know O_TMPFILE. `place` is for messages.
  static func open(in directory: CInt, _ place: String) throws(CommandError) -> FileDescriptor {
    let name = try temporaryName()
    return try about(place) { () throws(Errno) in
      do throws(Errno) { return try Syscalls.openTemporary(in: directory, mode: 0o600) } catch {
        guard isUnknown(error) else { throw error }
      }
      let file = try Syscalls.open(
        name, in: directory, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
      try Syscalls.unlink(name, in: directory)
      return file
    }
  }

  /// What open(2) says to O_TMPFILE on a file system, or a kernel, without it.
  static func isUnknown(_ error: Errno) -> Bool {
    [.notSupported, .isADirectory, .noSuchEntry, .invalidArgument].contains(error)
  }

  static func temporaryName() throws(CommandError) -> FileName {
    do throws(StorageError) { return try BlobName.temporary() } catch {
      throw CommandError(.failed, "no temporary name: \(error)", hint: "is OpenSSL complete?")
    }
  }
}
