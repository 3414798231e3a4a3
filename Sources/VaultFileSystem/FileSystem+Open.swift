package import Glibc
package import Platform
import Synchronization
import VaultStorage

/// "create" and "open".
extension FileSystem {
  package func create(
    _ name: FileName, in parent: NodeID, mode: mode_t, flags: CInt, caller: Caller
  ) throws(FileSystemError) -> (Entry, Opened) {
    try checkOpenable()
    try checkWritable()
    try Self.check(name)
    noteUse()
    let parent = try asked(parent)
    let (node, directory) = try opened(parent)
    // Before the directory is locked, but what is there already may be opened all the same.
    let refusal = refusal(of: .change, to: parent)
    let made: (Entry, OpenFile?) = try withExclusive([parent]) { () throws(FileSystemError) in
      switch try occupant(of: name, node, directory) {
      case .nobody:
        if let refusal { throw refusal }
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
      let bypassesCache = bypassesCache(flags)
      let handle = makeHandle(file, flags: flags, bypassesCache: bypassesCache)
      let opened = Opened(
        handle: handle, keepsCache: false, skipsFlush: false, bypassesCache: bypassesCache)
      return (made.0, opened)
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
    try require(Access(opening: flags), of: inode)
    noteUse()
    let file = try hold(inode, isEmptied: isEmptied)
    if !isEmptied, !isSizeKnown(of: inode, file) {
      drop(file)
      invalidateAttributes(of: inode)
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
      state.opened = isEmptied ? nil : identity
      return file
    }
  }

  /// False: the kernel was told another size than the photo has, and would end it too early; from now
  /// on it is told the right one. The other one is from a seal that isn't this version's, since a
  /// program wrote a new one into the old file.
  private func isSizeKnown(of inode: Inode, _ file: OpenFile) -> Bool {
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

  struct FoundFile: ~Copyable {
    let descriptor: FileDescriptor
    let status: stat
  }

  func openStored(_ inode: Inode) throws(FileSystemError) -> FoundFile {
    try withPlace(of: inode) { place throws(FileSystemError) in
      switch place {
      case .root: throw .system(.isADirectory)
      case .pending, .removed: throw .system(.stale)
      case .stored(let directory, let link):
        let before = try storedStatus(inode, link, directory)
        let descriptor = try openStored(link.stored.entry, in: directory)
        let number = descriptor.rawValue
        let status = try calling { () throws(Errno) in try Syscalls.status(number) }
        // Its mode was another one for a moment.
        if BlobIdentity(status) != BlobIdentity(before), BackingKey(status) == BackingKey(before) {
          keepCache(of: inode, from: before, link, directory)
        }
        return FoundFile(descriptor: descriptor, status: status)
      }
    }
  }

  /// Opens a stored file for reading, whatever its mode forbids its owner.
  func openStored(
    _ name: FileName, in directory: VaultDirectory
  ) throws(FileSystemError) -> FileDescriptor {
    let parent = directory.fd.rawValue
    return try calling { () throws(Errno) in
      // A file that is write-only needs reading to be edited; the program was let in already.
      vault.isReadOnly
        ? try Syscalls.open(name, in: parent, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
        : try OwnerRights.open(name, in: parent)
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

  func content(
    of inode: Inode, _ stored: consuming FoundFile
  ) throws(FileSystemError) -> (Content, Blob) {
    let status = stored.status
    do throws(StorageError) {
      let blob = try Blob(
        descriptor: stored.descriptor, keys: vault.keys, isWritable: !vault.isReadOnly)
      let size =
        blob.plaintextSizeIfVerified()
        ?? BlobSize.plaintextSize(of: blob.descriptor, keys: vault.keys)
      // What can't be told is left as it was told before.
      let identity = BlobIdentity(status)
      let told = inode.state.withLock { $0.size.flatMap { $0.0 == identity ? $0.1 : nil } }
      let greatest = BlobSize.greatest(Int64(status.st_size))
      return (Content(base: blob, size: size ?? told ?? greatest), blob)
    } catch {
      report(error, inode)
      throw .storage(error)
    }
  }
}
