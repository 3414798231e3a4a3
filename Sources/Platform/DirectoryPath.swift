import Glibc

/// Directories along a path that may not be there yet.
package enum DirectoryPath {
  /// Makes what is missing, 0700, and returns it, the outermost first.
  package static func make(_ path: String) throws(Errno) -> [FileName] {
    let bytes = Array(path.utf8)
    var made: [FileName] = []
    for end in bytes.indices.dropFirst() + [bytes.count]
    where end == bytes.count || bytes[end] == UInt8(ascii: "/") {
      let prefix = FileName(Array(bytes[..<end]))
      do throws(Errno) {
        try Syscalls.makeDirectory(prefix, in: AT_FDCWD, mode: 0o700)
        made.append(prefix)
      } catch {
        // An existing one on a read-only disk says EROFS, one we may not write to EACCES.
        if error == .exists { continue }
        if (try? Syscalls.exists(prefix, in: AT_FDCWD)) == true { continue }
        remove(made)
        throw error
      }
    }
    return made
  }

  /// On return the directories' own entries are on the disk.
  package static func synchronize(_ made: [FileName]) throws(Errno) {
    for path in made {
      let parent = FileName(path.bytes + Array("/..".utf8))
      let directory = try Syscalls.open(parent, flags: O_RDONLY | O_DIRECTORY)
      try Syscalls.synchronize(directory.rawValue)
    }
  }

  /// Only what is empty goes.
  package static func remove(_ made: [FileName]) {
    for path in made.reversed() { try? Syscalls.removeDirectory(path, in: AT_FDCWD) }
  }
}
