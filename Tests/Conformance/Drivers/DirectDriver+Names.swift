package import Glibc
package import Platform
import VaultFileSystem

/// Names. Source of the checks that the kernel makes: fs/namei.c of Linux.
extension DirectDriver {
  package func makeDirectory(_ path: Path, _ mode: mode_t) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (parent, name) = try walk.free(path, isDirectory: true)
      walk.count(
        try fileSystem.makeDirectory(
          name, in: parent, mode: S_IFDIR | mode & 0o1777 & ~Self.umask, caller: Self.caller))
    }
  }

  package func removeDirectory(_ path: Path) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let last = path.bytes.split(separator: 0x2F).last.map { FileName(Array($0)) }
      let (place, _) = try walk.existing(path, follows: false)
      guard let name = place.name else {
        let error: Errno =
          last == nil ? .busy : last == FileName(".") ? .invalidArgument : .directoryNotEmpty
        throw FileSystemError(error)
      }
      guard place.isDirectory else { throw FileSystemError(.notADirectory) }
      try fileSystem.removeDirectory(name, in: place.parent)
    }
  }

  package func unlink(_ path: Path) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (place, _) = try walk.existing(path, follows: false)
      guard let name = place.name, !place.isDirectory else { throw FileSystemError(.isADirectory) }
      try fileSystem.unlink(name, in: place.parent)
    }
  }

  package func rename(
    _ old: Path, _ new: Path, _ flags: Syscalls.RenameFlags
  ) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      if flags.isSuperset(of: [.exchange, .noReplace]) { throw FileSystemError(.invalidArgument) }
      let source = try walk.locate(old, follows: false)
      let target = try walk.locate(new, follows: false)
      guard let oldName = source.name, let newName = target.name else {
        throw FileSystemError(.busy)
      }
      guard let node = source.node else { throw FileSystemError(.noSuchEntry) }
      if flags.contains(.noReplace), target.node != nil { throw FileSystemError(.exists) }
      if flags.contains(.exchange), target.node == nil { throw FileSystemError(.noSuchEntry) }
      if target.endsInSlash, !source.isDirectory { throw FileSystemError(.notADirectory) }
      if target.parents.contains(node) { throw FileSystemError(.invalidArgument) }
      if let replaced = target.node, source.parents.contains(replaced) {
        throw FileSystemError(flags.contains(.exchange) ? .invalidArgument : .directoryNotEmpty)
      }
      if target.node == node { return }
      if target.node != nil, !flags.contains(.exchange), source.isDirectory != target.isDirectory {
        throw FileSystemError(source.isDirectory ? .notADirectory : .isADirectory)
      }
      try fileSystem.rename(
        oldName, in: source.parent, to: newName, in: target.parent, flags: flags)
    }
  }

  package func link(_ old: Path, _ new: Path) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (source, node) = try walk.existing(old, follows: false)
      let (parent, name) = try walk.free(new)
      if source.isDirectory { throw FileSystemError(.notPermitted) }
      walk.count(try fileSystem.link(node, as: name, in: parent))
    }
  }

  package func makeSymbolicLink(_ target: Path, _ path: Path) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      if target.bytes.isEmpty { throw FileSystemError(.noSuchEntry) }
      if target.bytes.count >= Int(PATH_MAX) { throw FileSystemError(.nameTooLong) }
      let (parent, name) = try walk.free(path)
      walk.count(
        try fileSystem.makeSymbolicLink(
          name, in: parent, target: FileName(target.bytes), caller: Self.caller))
    }
  }

  package func readSymbolicLink(_ path: Path) throws(Errno) -> [UInt8] {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (place, node) = try walk.existing(path, follows: false)
      guard place.kind == S_IFLNK else { throw FileSystemError(.invalidArgument) }
      return try fileSystem.readSymbolicLink(node).bytes
    }
  }

  package func makeNode(_ path: Path, _ mode: mode_t, _ device: dev_t) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (parent, name) = try walk.free(path)
      let type = mode & S_IFMT == 0 ? S_IFREG : mode & S_IFMT
      walk.count(
        try fileSystem.makeNode(
          name, in: parent, mode: type | mode & 0o7777 & ~Self.umask, device: device,
          caller: Self.caller))
    }
  }
}
