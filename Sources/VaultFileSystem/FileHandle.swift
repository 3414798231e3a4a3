package import Glibc
package import Platform
import Synchronization
import VaultStorage

/// One open(2) of a file.
final class FileHandle: Sendable {
  let file: OpenFile
  let isWriter: Bool

  init(_ file: OpenFile, isWriter: Bool) {
    self.file = file
    self.isWriter = isWriter
  }
}

/// Open files: from open to release.
extension FileSystem {
  func fileHandle(_ handle: UInt64) throws(FileSystemError) -> FileHandle {
    try checkNotClosed()
    guard let found = handles.withLock({ $0.files[handle] }) else { throw .system(.badDescriptor) }
    return found
  }

  private func makeHandle(_ file: OpenFile, flags: CInt) -> UInt64 {
    let isWriter = flags & O_ACCMODE != O_RDONLY
    return handles.withLock { handles in
      let number = handles.next
      handles.next += 1
      handles.files[number] = FileHandle(file, isWriter: isWriter)
      return number
    }
  }

  // MARK: Open

  package func create(
    _ name: FileName, in parent: NodeID, mode: mode_t, flags: CInt, caller: Caller
  ) throws(FileSystemError) -> (Entry, Opened) {
    try checkOpenable()
    try checkWritable()
    try Self.check(name)
    noteUse()
    let parent = try asked(parent)
    let (node, directory) = try opened(parent)
    let made: (Entry, OpenFile?) = try withExclusive([parent]) { () throws(FileSystemError) in
      switch try occupant(of: name, node, directory) {
      case .nobody:
        let (entry, file) = try makePending(name, parent, node, directory, mode, caller)
        return (entry, file)
      case .pending(let inode, _):
        if flags & O_EXCL != 0 { throw .system(.exists) }
        table.retain(inode)
        let entry = try entry(inode) { () throws(FileSystemError) in
          try pendingAttributes(inode)
        }
        return (entry, nil)
      case .stored(let found):
        if flags & O_EXCL != 0 { throw .system(.exists) }
        let link = Link(parent: parent, name: name, stored: found.stored)
        return (try entry(found.status, link, directory), nil)
      }
    }
    if let file = made.1 {
      let handle = makeHandle(file, flags: flags)
      return (made.0, Opened(handle: handle, keepsCache: false, skipsFlush: false))
    }
    do throws(FileSystemError) {
      return (made.0, try open(made.0.nodeID, flags: flags))
    } catch {
      forget(made.0.nodeID, count: 1)
      throw error
    }
  }

  /// A new file: known to every operation at once, on the disk with its first commit.
  private func makePending(
    _ name: FileName, _ parent: Inode, _ node: DirectoryNode, _ directory: VaultDirectory,
    _ mode: mode_t, _ caller: Caller
  ) throws(FileSystemError) -> (Entry, OpenFile) {
    let (writer, stored) = try storing { () throws(StorageError) in
      let stored = try directory.storedName(name, kind: .blob)
      return (try BlobWriter(in: directory, keys: vault.keys), stored)
    }
    let status = try calling { () throws(Errno) in try Syscalls.status(writer.descriptor) }
    let above = try calling { () throws(Errno) in try Syscalls.status(directory.fd.rawValue) }
    // Some disks make nameless files in a directory that was removed.
    if above.st_nlink == 0 { throw .system(.noSuchEntry) }
    let group = givesAway ? Self.group(of: caller, in: above) : status.st_gid
    let now = timespec.now
    let inode = table.insert(
      kind: S_IFREG, number: UInt64(status.st_ino), key: nil, directory: nil)
    let pending = OpenFile.Pending(
      mode: mode & 0o7777, user: givesAway ? caller.user : status.st_uid, group: group,
      accessed: now, modified: now, changed: now)
    let file = OpenFile(
      inode: inode, content: Content(writer: writer),
      meta: OpenFile.Meta(
        size: 0, isDirty: true, isOnlyEmptied: true, modified: now, pending: pending))
    inode.state.withLock { state in
      state.file = file
      state.handleCount = 1
      state.links = [Link(parent: parent, name: name, stored: stored)]
    }
    node.pending.withLock { $0[name] = inode }
    node.touched.withLock { $0 = now }
    return (
      Entry(nodeID: inode.nodeID, generation: 0, attributes: try pendingAttributes(inode)), file
    )
  }

  package func open(_ node: NodeID, flags: CInt) throws(FileSystemError) -> Opened {
    try checkOpenable()
    let inode = try asked(node)
    let isWriter = flags & O_ACCMODE != O_RDONLY
    // Linux empties the file whatever it is opened for.
    let isEmptied = flags & O_TRUNC != 0
    if isWriter || isEmptied { try checkWritable() }
    guard inode.isRegular else { throw .system(inode.isDirectory ? .isADirectory : .notSupported) }
    noteUse()
    let file = try hold(inode, isEmptied: isEmptied)
    if !isEmptied, !correctsSize(of: inode, file) {
      drop(file)
      // The kernel asks for the name once more, and with it for the size, before it opens it.
      throw .system(.stale)
    }
    if isEmptied {
      do throws(FileSystemError) { try file.truncate(to: 0, in: try home(of: inode)) } catch {
        drop(file)
        throw error
      }
    }
    let keepsCache = keepsCache(inode, file)
    return Opened(
      handle: makeHandle(file, flags: flags), keepsCache: keepsCache && !isEmptied,
      skipsFlush: !isWriter)
  }

  /// The open file of an inode, with one more handle. Opening a damaged one throws, unless it is
  /// to be emptied.
  func hold(_ inode: Inode, isEmptied: Bool) throws(FileSystemError) -> OpenFile {
    func known() -> OpenFile? {
      inode.state.withLock { state in
        guard let file = state.file else { return nil }
        state.handleCount += 1
        return file
      }
    }
    if let file = known() { return file }
    let found = try openStored(inode)
    let status = found.status
    let identity = BlobIdentity(status)
    let content: Content
    let stored: OpenFile.Stored
    if isEmptied {
      content = Content(writer: nil)
      // It may be damaged: nothing is asked of it but which one it is.
      let descriptor = found.descriptor
      let number = descriptor.rawValue
      let version = try calling { () throws(Errno) in try BlobVersion(of: number) }
      stored = OpenFile.Stored(version: version, status: status, file: StoredFile(descriptor))
    } else {
      let (described, blob) = try self.content(of: inode, found)
      content = described
      stored = OpenFile.Stored(
        version: BlobVersion(blob), status: status, file: StoredFile(blob))
    }
    let file = OpenFile(
      inode: inode, content: content, meta: OpenFile.Meta(size: content.size, stored: stored))
    return inode.state.withLock { state in
      state.handleCount += 1
      if let file = state.file { return file }
      state.file = file
      if !isEmptied { state.opened = identity }
      return file
    }
  }

  /// False: the kernel knows another size than the photo has, and would end it too early. It has it
  /// from a seal that isn't this version's, since a program wrote a new one into the old file.
  private func correctsSize(of inode: Inode, _ file: OpenFile) -> Bool {
    let (size, isAsStored) = file.meta.withLock { ($0.size, !$0.isDirty && $0.pending == nil) }
    guard isAsStored else { return true }
    return inode.state.withLock { state in
      guard let (identity, told) = state.size, identity == state.opened, told != size else {
        return true
      }
      state.size = (identity, size)
      return false
    }
  }

  private struct FoundFile: ~Copyable {
    let descriptor: FileDescriptor
    let status: stat
  }

  private func openStored(_ inode: Inode) throws(FileSystemError) -> FoundFile {
    try withPlace(of: inode) { place throws(FileSystemError) in
      switch place {
      case .root: throw .system(.isADirectory)
      case .pending, .removed: throw .system(.stale)
      case .stored(let directory, let link):
        let status = try storedStatus(inode, link, directory)
        return FoundFile(
          descriptor: try openStored(link.stored.entry, in: directory), status: status)
      }
    }
  }

  /// Opens a stored file for reading, whatever its mode forbids its owner.
  func openStored(
    _ name: FileName, in directory: VaultDirectory
  ) throws(FileSystemError) -> FileDescriptor {
    let parent = directory.fd.rawValue
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
    do throws(Errno) { return try Syscalls.open(name, in: parent, flags: flags) } catch {
      guard error == .permissionDenied, !vault.isReadOnly else { throw .system(error) }
    }
    // The kernel already let the program in; a file that is write-only needs reading to be edited.
    return try calling { () throws(Errno) in
      let status = try Syscalls.status(of: name, in: parent)
      try Syscalls.setMode(of: name, in: parent, status.st_mode & 0o7777 | S_IRUSR)
      defer { try? Syscalls.setMode(of: name, in: parent, status.st_mode & 0o7777) }
      return try Syscalls.open(name, in: parent, flags: flags)
    }
  }

  private func keepsCache(_ inode: Inode, _ file: OpenFile) -> Bool {
    if file.meta.withLock({ $0.isDirty }) { return true }
    return inode.state.withLock { state in
      guard let current = state.opened else { return false }
      defer { state.cached = current }
      return state.cached == current
    }
  }

  /// One log line for a photo that can't be read, and why.
  func report(_ error: StorageError, _ inode: Inode) {
    guard case .blob(let reason) = error else { return }
    let stored = inode.state.withLock { $0.links.first?.stored.entry }
    Log.error(
      "photo '\(inode.displayPath)' can't be read, its stored file "
        + "'\(stored?.description ?? "(removed)")' is damaged: \(reason)")
  }

  // MARK: Read, write

  package func read(
    _ handle: UInt64, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) -> Int {
    let handle = try fileHandle(handle)
    noteUse()
    do throws(FileSystemError) {
      return try handle.file.read(into: buffer, at: offset)
    } catch {
      if case .storage(let reason) = error { report(reason, handle.file.inode) }
      throw error
    }
  }

  /// All of `bytes`.
  package func write(
    _ handle: UInt64, _ bytes: UnsafeRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) -> Int {
    let handle = try fileHandle(handle)
    noteUse()
    let file = handle.file
    do throws(FileSystemError) {
      try file.write(bytes, at: offset, in: try home(of: file.inode), keys: vault.keys)
    } catch {
      if case .storage(let reason) = error { report(reason, file.inode) }
      throw error
    }
    return bytes.count
  }

  func truncate(_ inode: Inode, to size: Int64) throws(FileSystemError) {
    let file = try hold(inode, isEmptied: size == 0)
    do throws(FileSystemError) {
      try file.truncate(to: size, in: try home(of: inode))
      // Nobody will flush it. Asked behind the change: a writer that closes meanwhile sees it.
      if !hasWriters(file) { try commit(file, durable: false) }
    } catch {
      drop(file)
      throw error
    }
    drop(file)
  }

  package func allocate(
    _ handle: UInt64, mode: CInt, offset: Int64, length: Int64
  ) throws(FileSystemError) {
    let handle = try fileHandle(handle)
    noteUse()
    guard handle.isWriter else { throw .system(.badDescriptor) }
    guard offset >= 0, length > 0 else { throw .system(.invalidArgument) }
    let (end, overflow) = offset.addingReportingOverflow(length)
    if overflow { throw .system(.fileTooLarge) }
    let file = handle.file
    let directory = try home(of: file.inode)
    // Source: fallocate(2), linux/falloc.h.
    let keepsSize = mode & 0x01 != 0
    let zeroes = mode & 0x02 != 0 || mode & 0x10 != 0
    guard mode & ~0x13 == 0, mode & 0x02 == 0 || keepsSize else { throw .system(.notSupported) }
    let size = file.meta.withLock { $0.size }
    if end > size { try OpenFile.checkSpace(end - size, in: directory) }
    if zeroes { try file.zero(offset..<end, in: directory) }
    if !keepsSize, end > size { try file.truncate(to: end, in: directory) }
  }

  /// SEEK_DATA and SEEK_HOLE: the format stores zeros, so a file is all data.
  package func seek(
    _ handle: UInt64, offset: Int64, whence: CInt
  ) throws(FileSystemError) -> Int64 {
    let size = try fileHandle(handle).file.meta.withLock { $0.size }
    guard offset >= 0, offset < size else { throw .system(.noSeekTarget) }
    switch whence {
    case 3: return offset  // SEEK_DATA
    case 4: return size  // SEEK_HOLE
    default: throw .system(.invalidArgument)
    }
  }

  // MARK: Close

  /// Every close of a descriptor. Commits what was written, but not a file that was only emptied
  /// so far: its writer may not have begun.
  package func flush(_ handle: UInt64) throws(FileSystemError) {
    let handle = try fileHandle(handle)
    let (isDirty, isOnlyEmptied) = handle.file.meta.withLock { ($0.isDirty, $0.isOnlyEmptied) }
    guard isDirty, !isOnlyEmptied else { return }
    try commit(handle.file, durable: false)
  }

  /// "fsync", "fdatasync": on return the photo and its name are on the disk.
  package func synchronize(_ handle: UInt64, dataOnly: Bool) throws(FileSystemError) {
    try synchronize(handle, dataOnly: dataOnly, durable: true)
  }

  func synchronize(
    _ handle: UInt64, dataOnly: Bool, durable: Bool
  ) throws(FileSystemError) {
    try commit(try fileHandle(handle).file, durable: durable)
  }

  /// The last close. What is dirty yet (pages of a mapping, a file that was only emptied) is
  /// committed; failures have nobody left to hear them but the log.
  package func release(_ handle: UInt64) {
    guard let found = handles.withLock({ $0.files.removeValue(forKey: handle) }) else { return }
    let file = found.file
    // A file may be made by an open for reading only.
    if file.meta.withLock({ $0.isDirty }), !hasWriters(file) {
      do throws(FileSystemError) { try commitAtLastClose(file) } catch {
        Log.error(
          "'\(file.inode.displayPath)' was not stored: \(error.errno); "
            + "the version before, if any, is unchanged")
        discard(file)
      }
    }
    drop(file)
  }

  func hasWriters(_ file: OpenFile) -> Bool {
    handles.withLock { $0.files.values.contains { $0.file === file && $0.isWriter } }
  }

  /// One handle less; at none the inode is as the disk has it.
  func drop(_ file: OpenFile) {
    let inode = file.inode
    let isLast = inode.state.withLock { state in
      state.handleCount -= 1
      guard state.handleCount == 0 else { return false }
      state.file = nil
      return true
    }
    if isLast { table.dropIfUnused(inode) }
  }

  /// What the disk has of a file; every use of it fails where that can't be read.
  private func storedContent(of inode: Inode) -> Content {
    do throws(FileSystemError) {
      return try content(of: inode, try openStored(inode)).0
    } catch {
      var content = Content(writer: nil)
      content.failure = error
      return content
    }
  }

  private func content(
    of inode: Inode, _ stored: consuming FoundFile
  ) throws(FileSystemError) -> (Content, Blob) {
    let status = stored.status
    do throws(StorageError) {
      let blob = try Blob(
        descriptor: stored.descriptor, keys: vault.keys, isWritable: !vault.isReadOnly)
      let size =
        blob.plaintextSizeIfVerified()
        ?? BlobSize.plaintextSize(of: blob.descriptor, keys: vault.keys)
      let told = inode.state.withLock { $0.size?.1 }
      return (Content(base: blob, size: size ?? told ?? Int64(status.st_size)), blob)
    } catch {
      report(error, inode)
      throw .storage(error)
    }
  }

  /// Gives up what could not be stored: a new file goes, an old one is again what it was.
  private func discard(_ file: OpenFile) {
    let inode = file.inode
    file.content.withExclusive { content in
      content = storedContent(of: inode)
      file.meta.withLock { meta in
        meta.isDirty = false
        meta.modified = nil
        meta.size = content.size
      }
    }
    if let link = inode.state.withLock({ $0.links.first }), let node = link.parent.directory {
      node.lock.withExclusive {
        if node.pending.withLock({ $0[link.name] }) === inode {
          dropPending(inode, link.name, link.parent, node)
        }
      }
    }
    inode.state.withLock { state in
      state.cached = nil
      state.size = nil
    }
    invalidatePages(of: inode)
  }
}
