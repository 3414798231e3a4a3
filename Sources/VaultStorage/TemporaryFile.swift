import Glibc
import Platform
import Synchronization

/// A file that is being written in a vault's directory: without a name where the disk can do that,
/// else under a temporary one. Either way nothing of it shows, and a crash leaves at most a
/// `.photovault-XXXXXX.tmp`, which the next mount removes.
package final class TemporaryFile: Sendable {
  let opened: SharedDescriptor
  private let directory: VaultDirectory
  /// Until it was renamed to the name it is for.
  private let name: Mutex<FileName?>

  package init(in directory: VaultDirectory) throws(StorageError) {
    self.directory = directory
    do throws(Errno) {
      opened = SharedDescriptor(
        try Syscalls.openTemporary(in: directory.fd.rawValue, mode: 0o600))
      name = Mutex(nil)
    } catch {
      // O_TMPFILE is missing on vfat, sshfs, overlayfs of old kernels.
      guard [.notSupported, .isADirectory, .invalidArgument, .noSystemCall].contains(error) else {
        throw .system(Self.isRemoved(directory) ? .noSuchEntry : error)
      }
      let name = try directory.temporaryName()
      do throws(Errno) {
        opened = SharedDescriptor(
          try Syscalls.open(
            name, in: directory.fd.rawValue, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW,
            mode: 0o600))
      } catch { throw .system(error) }
      self.name = Mutex(name)
    }
  }

  /// ext4 says EPERM to who makes a file in a directory that was removed.
  private static func isRemoved(_ directory: VaultDirectory) -> Bool {
    (try? Syscalls.status(directory.fd.rawValue).st_nlink) == 0
  }

  package var descriptor: CInt { opened.rawValue }

  /// Gives the file the name `stored` in `target`. Throws EEXIST where the name is taken.
  func publish(as stored: FileName, in target: VaultDirectory) throws(StorageError) {
    do throws(Errno) {
      guard let name = name.withLock({ $0 }) else {
        return try Syscalls.link(descriptor: descriptor, as: stored, in: target.fd.rawValue)
      }
      let keepsName = try Syscalls.linkOrRename(
        name, in: directory.fd.rawValue, as: stored, in: target.fd.rawValue)
      // A disk without hard links can't have asked for a second name.
      if !keepsName { self.name.withLock { $0 = nil } }
    } catch { throw .system(error) }
  }

  deinit {
    if let name = name.withLock({ $0 }) { try? Syscalls.unlink(name, in: directory.fd.rawValue) }
  }
}

/// An open descriptor of several owners, closed with the last.
final class SharedDescriptor: Sendable {
  private let descriptor: FileDescriptor

  init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }

  var rawValue: CInt { descriptor.rawValue }
}
