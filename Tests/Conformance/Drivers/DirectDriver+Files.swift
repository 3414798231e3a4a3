package import Glibc
package import Platform
import VaultFileSystem

/// Open files and directories. Source of what the kernel does itself: fs/namei.c, fs/open.c,
/// fs/read_write.c and fs/fuse/ of Linux.
extension DirectDriver {
  private static let largeFile: CInt = 0o100000  // O_LARGEFILE, which the kernel adds
  private static let nameless: CInt = 0o20000000  // O_TMPFILE without O_DIRECTORY
  private static let requestSize = 131_072  // what fits into one FUSE request by default
  static let caller = Caller(user: geteuid(), group: getegid(), umask: umask)

  package func open(_ path: Path, _ flags: CInt, _ mode: mode_t) throws(Errno) -> Handle {
    if flags & Self.nameless != 0 { throw .notSupported }
    return try operate { (fileSystem, walk) throws(FileSystemError) in
      let isExclusive = flags & O_CREAT != 0 && flags & O_EXCL != 0
      let place = try walk.locate(
        path, follows: flags & O_NOFOLLOW == 0 && !isExclusive)
      guard let node = place.node else {
        return try create(place, flags, mode, fileSystem, &walk)
      }
      if isExclusive { throw FileSystemError(.exists) }
      if place.isDirectory { return try openDirectory(node, flags, fileSystem, &walk) }
      if flags & O_DIRECTORY != 0 { throw FileSystemError(.notADirectory) }
      if place.kind == S_IFLNK { throw FileSystemError(.tooManySymbolicLinks) }
      guard place.kind == S_IFREG else { throw FileSystemError(.noSeekTarget) }
      let sent = flags & ~(O_CREAT | O_EXCL | O_NOCTTY) | Self.largeFile
      let opened = try fileSystem.open(node, flags: sent)
      return add(node, opened, flags, &walk)
    }
  }

  private func create(
    _ place: Walk.Place, _ flags: CInt, _ mode: mode_t, _ fileSystem: FileSystem,
    _ walk: inout Walk
  ) throws(FileSystemError) -> Handle {
    guard flags & O_CREAT != 0, let name = place.name else { throw FileSystemError(.noSuchEntry) }
    if place.endsInSlash { throw FileSystemError(.isADirectory) }
    let (entry, opened) = try fileSystem.create(
      name, in: place.parent, mode: S_IFREG | mode & ~Self.umask,
      flags: flags & ~O_NOCTTY | Self.largeFile, caller: Self.caller)
    walk.count(entry)
    return add(entry.nodeID, opened, flags, &walk)
  }

  private func add(
    _ node: NodeID, _ opened: Opened, _ flags: CInt, _ walk: inout Walk
  ) -> Handle {
    add(
      OpenNode(
        node: node, number: opened.handle, flags: flags, isDirectory: false,
        skipsFlush: opened.skipsFlush, lookups: walk.takeLookups()))
  }

  private func openDirectory(
    _ node: NodeID, _ flags: CInt, _ fileSystem: FileSystem, _ walk: inout Walk
  ) throws(FileSystemError) -> Handle {
    if flags & (O_CREAT | O_TRUNC) != 0 || flags & O_ACCMODE != O_RDONLY {
      throw FileSystemError(.isADirectory)
    }
    return add(
      OpenNode(
        node: node, number: try fileSystem.openDirectory(node).handle, flags: flags,
        isDirectory: true, skipsFlush: true, lookups: walk.takeLookups()))
  }

  /// The open file, and its number in the file system.
  private func file(
    _ handle: Handle, reads: Bool = false, writes: Bool = false
  ) throws(FileSystemError) -> OpenNode {
    let node = try find(handle)
    if reads && !node.isReadable || writes && !node.isWritable {
      throw FileSystemError(.badDescriptor)
    }
    if node.isDirectory { throw FileSystemError(.isADirectory) }
    return node
  }

  package func closeDuplicate(_ handle: Handle) throws(Errno) {
    try operate { (fileSystem, _) throws(FileSystemError) in
      let node = try find(handle)
      if !node.skipsFlush { try fileSystem.flush(node.number) }
    }
  }

  package func read(
    _ handle: Handle, _ count: Int, at offset: Int64
  ) throws(Errno) -> [UInt8] {
    try operate { (fileSystem, _) throws(FileSystemError) in
      let number = try file(handle, reads: true).number
      let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: count, alignment: 16)
      defer { buffer.deallocate() }
      var done = 0
      while done < count {
        let size = min(count - done, Self.requestSize)
        let piece = UnsafeMutableRawBufferPointer(rebasing: buffer[done..<done + size])
        let got = try fileSystem.read(number, into: piece, at: offset + Int64(done))
        done += got
        if got < size { break }
      }
      return Array(buffer[..<done])
    }
  }

  package func write(
    _ handle: Handle, _ bytes: [UInt8], at offset: Int64
  ) throws(Errno) -> Int {
    try operate { (fileSystem, _) throws(FileSystemError) in
      let node = try file(handle, writes: true)
      if bytes.isEmpty { return 0 }
      let start =
        node.flags & O_APPEND == 0
        ? offset : Int64(try fileSystem.attributes(node.node).st_size)
      var done = 0
      while done < bytes.count {
        // Requests end at page boundaries.
        let position = start + Int64(done)
        let size = min(bytes.count - done, Self.requestSize - Int(position % 4096))
        let result: Result<Int, FileSystemError> = bytes.withUnsafeBytes { buffer in
          let piece = UnsafeRawBufferPointer(rebasing: buffer[done..<done + size])
          do throws(FileSystemError) {
            return .success(try fileSystem.write(node.number, piece, at: position))
          } catch { return .failure(error) }
        }
        if done > 0, case .failure = result { break }
        let got = try result.get()
        done += got
        if got < size { break }
      }
      return done
    }
  }

  package func synchronize(_ handle: Handle, dataOnly: Bool) throws(Errno) {
    try operate { (fileSystem, _) throws(FileSystemError) in
      let node = try find(handle)
      if node.isDirectory {
        try fileSystem.synchronizeDirectory(node.number)
      } else {
        try fileSystem.synchronize(node.number, dataOnly: dataOnly)
      }
    }
  }

  package func allocate(
    _ handle: Handle, mode: CInt, _ offset: Int64, _ length: Int64
  ) throws(Errno) {
    try operate { (fileSystem, _) throws(FileSystemError) in
      if offset < 0 || length <= 0 { throw FileSystemError(.invalidArgument) }
      let number = try file(handle, writes: true).number
      let known: CInt = 0x13  // KEEP_SIZE, PUNCH_HOLE and ZERO_RANGE
      if mode & ~known != 0 { throw FileSystemError(.notSupported) }
      try fileSystem.allocate(number, mode: mode, offset: offset, length: length)
    }
  }

  package func seek(
    _ handle: Handle, _ offset: Int64, _ whence: CInt
  ) throws(Errno) -> Int64 {
    try operate { (fileSystem, _) throws(FileSystemError) in
      let node = try file(handle)
      if whence == SEEK_END { return offset + Int64(try fileSystem.attributes(node.node).st_size) }
      return try fileSystem.seek(node.number, offset: offset, whence: whence)
    }
  }

  package func readDirectory(
    _ handle: Handle, from offset: Int64, _ count: Int
  ) throws(Errno) -> [DirectoryItem] {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let node = try find(handle)
      guard node.isDirectory else { throw FileSystemError(.notADirectory) }
      // The kernel asks with attributes or without as it sees fit.
      let withAttributes = offset % 2 == 0
      var items: [DirectoryItem] = []
      var entries: [Entry] = []
      try fileSystem.readDirectory(
        node.number, from: offset, withAttributes: withAttributes
      ) { entry in
        if items.count == count { return false }
        items.append(
          DirectoryItem(
            name: entry.name.bytes, inode: entry.inode, type: entry.type,
            nextOffset: entry.nextOffset))
        if let counted = entry.entry { entries.append(counted) }
        return true
      }
      for entry in entries { walk.count(entry) }
      return items
    }
  }

  package func fileSystemStatus() throws(Errno) -> statvfs {
    try operate { (fileSystem, _) throws(FileSystemError) in try fileSystem.status() }
  }
}
