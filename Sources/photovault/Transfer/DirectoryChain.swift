import Glibc
import Platform

/// A directory and all above it, by identity, so that links and bind mounts make no difference.
struct DirectoryChain {
  struct Identity: Hashable {
    let device: dev_t
    let inode: ino_t

    init(_ status: stat) {
      device = status.st_dev
      inode = status.st_ino
    }
  }

  /// The innermost first.
  private let identities: [Identity]
  /// Not of what holds a file.
  let isOfDirectory: Bool

  private static let deepest = 4096

  /// Of the directory `path`, or of the one that holds the file `path`.
  /// A link is a file unless links are followed.
  init(of path: FileName, followingLinks: Bool = true) throws(Errno) {
    var directory: FileDescriptor
    do throws(Errno) {
      directory = try Syscalls.open(
        path, flags: O_RDONLY | O_DIRECTORY | (followingLinks ? 0 : O_NOFOLLOW))
      isOfDirectory = true
    } catch {
      guard error == .notADirectory || error == .tooManySymbolicLinks else { throw error }
      isOfDirectory = false
      let slash = path.bytes.lastIndex(of: UInt8(ascii: "/"))
      let parent = slash.map { FileName(Array(path.bytes[...$0])) } ?? FileName(".")
      directory = try Syscalls.open(parent, flags: O_RDONLY | O_DIRECTORY)
    }
    var identities: [Identity] = []
    while identities.count < Self.deepest {
      let identity = Identity(try Syscalls.status(directory.rawValue))
      if identities.last == identity { break }
      identities.append(identity)
      do throws(Errno) {
        directory = try Syscalls.open(
          FileName(".."), in: directory.rawValue, flags: O_RDONLY | O_DIRECTORY)
      } catch {
        // What can't be looked into holds nothing that can be copied.
        guard error == .permissionDenied else { throw error }
        break
      }
    }
    self.identities = identities
  }

  /// Whether this directory is `other`, or lies in it.
  func isInside(_ other: DirectoryChain) -> Bool {
    other.identities.first.map { identities.contains($0) } ?? false
  }
}
