package import Glibc
import Platform
import Synchronization
import VaultStorage

/// `stat`, as programs shall see it.
extension FileSystem {
  package func attributes(_ node: NodeID) throws(FileSystemError) -> stat {
    try attributes(of: try asked(node))
  }

  func attributes(of inode: Inode) throws(FileSystemError) -> stat {
    try withPlace(of: inode) { place throws(FileSystemError) in
      switch place {
      case .root(let directory):
        let status = try calling { () throws(Errno) in
          try Syscalls.status(directory.fd.rawValue)
        }
        return complete(status, inode, nil, directory)
      case .stored(let directory, let link):
        guard let status = try ownStatus(inode, link, directory) else {
          return try replacedAttributes(inode)
        }
        return complete(status, inode, link.stored, directory)
      case .pending:
        return try pendingAttributes(inode)
      case .removed(let file):
        return try removedAttributes(inode, file)
      }
    }
  }

  /// The stored file's own status. Throws ESTALE while programs hold an older version than is there.
  func storedStatus(
    _ inode: Inode, _ link: Link, _ directory: VaultDirectory
  ) throws(FileSystemError) -> stat {
    guard let status = try ownStatus(inode, link, directory) else { throw .system(.stale) }
    return status
  }

  /// The stored file's own status. When somebody else put another file in its place (a sync
  /// program, say), that one becomes an inode of its own with the next lookup, which ESTALE makes
  /// the kernel do: with this one it would go on with a size that is not that file's. nil while
  /// the file is open: whoever holds it keeps what he opened.
  private func ownStatus(
    _ inode: Inode, _ link: Link, _ directory: VaultDirectory
  ) throws(FileSystemError) -> stat? {
    let status: stat
    let (key, file) = inode.state.withLock { ($0.key, $0.file) }
    do throws(Errno) {
      status = try Syscalls.status(of: link.stored.entry, in: directory.fd.rawValue)
    } catch {
      guard error == .noSuchEntry else { throw .system(error) }
      if file != nil { return nil }
      // The kernel then asks for the name once more.
      throw .system(.stale)
    }
    let found = BackingKey(status)
    if key == found {
      file?.meta.withLock { $0.stored?.status = status }
      return status
    }
    // sshfs numbers files by their names: another number may be the same file.
    if let file, let version = file.meta.withLock({ $0.stored?.version }),
      try self.version(
        of: Found(stored: link.stored, kind: .blob, status: status), in: directory) == version
    {
      table.rekey(inode, to: found)
      file.meta.withLock { $0.stored?.status = status }
      return status
    }
    // Its other names may still lead here.
    if inode.state.withLock({ $0.links.count > 1 }) { inode.remove(link.name, in: link.parent) }
    if file != nil { return nil }
    guard !inode.isRegular, status.st_mode & S_IFMT == inode.kind,
      table.rekey(inode, to: found)
    else { throw .system(.stale) }
    invalidatePages(of: inode)
    return status
  }

  /// Of an open file whose stored version another program replaced or removed.
  private func replacedAttributes(_ inode: Inode) throws(FileSystemError) -> stat {
    guard let meta = inode.state.withLock({ $0.file })?.meta.withLock({ $0 }),
      var status = meta.stored?.status
    else { throw .system(.stale) }
    status.st_ino = ino_t(inode.number)
    status.st_size = off_t(meta.size)
    status.st_blocks = blkcnt_t((meta.size + 511) / 512)
    if meta.isDirty, let modified = meta.modified { status.st_mtim = modified }
    return status
  }

  /// From the stored file's status to what is shown.
  func complete(
    _ status: stat, _ inode: Inode, _ stored: StoredName?, _ directory: VaultDirectory
  ) -> stat {
    var result = status
    result.st_ino = ino_t(inode.number)
    switch inode.kind {
    case S_IFREG:
      if Self.hasSetID(status.st_mode) { inode.hasSetID.store(true, ordering: .relaxed) }
      let file = inode.state.withLock { $0.file }
      let change = file?.meta.withLock { $0.isDirty ? ($0.size, $0.modified) : nil }
      if let (size, modified) = change {
        result.st_size = off_t(size)
        result.st_blocks = blkcnt_t((size + 511) / 512)
        if let modified {
          result.st_mtim = modified
          if result.st_ctim < modified { result.st_ctim = modified }
        }
      } else if let stored {
        result.st_size = off_t(plaintextSize(status, inode, stored, directory))
      }
    case S_IFLNK:
      result.st_size = off_t(Self.linkTargetSize(stored: Int(status.st_size), vault.names))
    case S_IFDIR:
      if let touched = inode.directory?.touched.withLock({ $0 }) {
        if result.st_mtim < touched { result.st_mtim = touched }
        if result.st_ctim < touched { result.st_ctim = touched }
      }
    default: break
    }
    return result
  }

  /// Of what is stored, whatever was written since.
  func plaintextSize(
    _ status: stat, _ inode: Inode, _ stored: StoredName, _ directory: VaultDirectory
  ) -> Int64 {
    let identity = BlobIdentity(status)
    let (told, isOpen) = inode.state.withLock { ($0.size, $0.file != nil) }
    if let (known, size) = told, known == identity { return size }
    // What is open was verified; another size would end it too early for who reads it.
    let size = BlobSize.plaintextSize(
      of: stored.entry, in: directory.fd.rawValue, status, keys: vault.keys,
      readingPadding: isOpen)
    inode.state.withLock { $0.size = (identity, size) }
    return size
  }

  /// A target's own length: base64url of a 16-byte synthetic IV and the target, without padding.
  private static func linkTargetSize(stored: Int, _ names: NamesMode) -> Int {
    switch names {
    case .plain: stored
    case .encrypted: max(0, stored * 3 / 4 - 16)
    }
  }

  func pendingAttributes(_ inode: Inode) throws(FileSystemError) -> stat {
    guard let file = inode.state.withLock({ $0.file }) else { throw .system(.stale) }
    return try memoryAttributes(inode, file, linkCount: 1)
  }

  private func removedAttributes(
    _ inode: Inode, _ file: OpenFile?
  ) throws(FileSystemError) -> stat {
    if inode.isDirectory {
      let (_, directory) = try opened(inode)
      let status = try calling { () throws(Errno) in
        try Syscalls.status(directory.fd.rawValue)
      }
      return complete(status, inode, nil, directory)
    }
    guard let file else { throw .system(.stale) }
    if file.meta.withLock({ $0.pending != nil }) {
      return try memoryAttributes(inode, file, linkCount: 0)
    }
    throw .system(.stale)
  }

  /// The attributes of a file that the disk doesn't have (yet or any more).
  private func memoryAttributes(
    _ inode: Inode, _ file: OpenFile, linkCount: nlink_t
  ) throws(FileSystemError) -> stat {
    var result = stat()
    result.st_dev = device
    let (size, pending) = file.meta.withLock { ($0.size, $0.pending) }
    guard let pending else { throw .system(.stale) }
    result.st_ino = ino_t(inode.number)
    result.st_mode = S_IFREG | pending.mode
    if Self.hasSetID(pending.mode) { inode.hasSetID.store(true, ordering: .relaxed) }
    result.st_nlink = linkCount
    result.st_uid = pending.user
    result.st_gid = pending.group
    result.st_size = off_t(size)
    result.st_blocks = blkcnt_t((size + 511) / 512)
    result.st_blksize = 4096
    result.st_atim = pending.accessed
    result.st_mtim = pending.modified
    result.st_ctim = pending.changed
    return result
  }

  // MARK: Change

  /// `isOpen`: by who has it open for writing.
  package func setAttributes(
    _ node: NodeID, _ changes: AttributeChanges, isOpen: Bool = false
  ) throws(FileSystemError) -> stat {
    try checkWritable()
    noteUse()
    let inode = try asked(node)
    if let size = changes.size {
      guard inode.isRegular else {
        throw .system(inode.isDirectory ? .isADirectory : .invalidArgument)
      }
      guard size >= 0 else { throw .system(.invalidArgument) }
      if !isOpen { try require(.write, of: inode) }
      try truncate(inode, to: size)
    }
    try change(inode, changes)
    return try attributes(of: inode)
  }

  /// All of `changes` but the size.
  func change(_ inode: Inode, _ changes: AttributeChanges) throws(FileSystemError) {
    try withPlace(of: inode) { place throws(FileSystemError) in
      switch place {
      case .root(let directory):
        try calling { () throws(Errno) in
          try Self.apply(changes, to: directory.fd.rawValue)
        }
      case .stored(let directory, let link):
        try applyStored(changes, inode, link, directory)
      case .pending(let file), .removed(let file?):
        let group = file.meta.withLock { $0.pending?.group } ?? getegid()
        Self.apply(try permitted(changes, of: group), to: file)
      case .removed(nil):
        throw .system(.stale)
      }
    }
  }

  private func applyStored(
    _ changes: AttributeChanges, _ inode: Inode, _ link: Link, _ directory: VaultDirectory
  ) throws(FileSystemError) {
    let descriptor = directory.fd.rawValue
    let name = link.stored.entry
    guard let before = try ownStatus(inode, link, directory) else {
      // Whose mode and owner would they be?
      if changes.mode != nil || changes.user != nil || changes.group != nil {
        throw .system(.stale)
      }
      noteTimes(changes, inode)
      return
    }
    try calling { () throws(Errno) in
      if changes.user != nil || changes.group != nil {
        try Syscalls.setOwner(
          of: name, in: descriptor, changes.user ?? uid_t.max, changes.group ?? gid_t.max)
      }
      // A symbolic link has no mode of its own.
      if let mode = changes.mode, inode.kind != S_IFLNK {
        try Syscalls.setMode(of: name, in: descriptor, mode & 0o7777)
      }
      if changes.accessTime != nil || changes.modificationTime != nil {
        let omitted = timespec(tv_sec: 0, tv_nsec: Self.omitTime)
        try Syscalls.setTimes(
          of: name, in: descriptor, access: changes.accessTime ?? omitted,
          modification: changes.modificationTime ?? omitted)
      }
    }
    noteTimes(changes, inode)
    if inode.isRegular, changes.modificationTime != nil {
      PlaceSeal.follow(name, in: descriptor, from: before)
    }
    if inode.isDirectory { inode.directory?.touched.withLock { $0 = nil } }
    keepCache(of: inode, from: before, link, directory)
  }

  /// For the next commit.
  private func noteTimes(_ changes: AttributeChanges, _ inode: Inode) {
    inode.state.withLock { $0.file }?.meta.withLock { meta in
      if let time = changes.modificationTime { meta.modified = time }
      if let time = changes.accessTime { meta.accessed = time }
    }
  }

  /// After a change of ours that left the content alone: the kernel's pages stay right.
  func keepCache(
    of inode: Inode, from before: stat, _ link: Link, _ directory: VaultDirectory
  ) {
    guard inode.isRegular,
      let after = try? Syscalls.status(of: link.stored.entry, in: directory.fd.rawValue)
    else { return }
    inode.state.withLock { state in
      let old = BlobIdentity(before)
      if state.cached == old { state.cached = BlobIdentity(after) }
      if let (identity, size) = state.size, identity == old {
        state.size = (BlobIdentity(after), size)
      }
    }
  }

  private static let omitTime = (1 << 30) - 2  // UTIME_OMIT, a macro with a cast

  private static func apply(_ changes: AttributeChanges, to descriptor: CInt) throws(Errno) {
    if changes.user != nil || changes.group != nil {
      try Syscalls.setOwner(descriptor, changes.user ?? uid_t.max, changes.group ?? gid_t.max)
    }
    if let mode = changes.mode { try Syscalls.setMode(descriptor, mode & 0o7777) }
    if changes.accessTime != nil || changes.modificationTime != nil {
      let omitted = timespec(tv_sec: 0, tv_nsec: omitTime)
      try Syscalls.setTimes(
        descriptor, access: changes.accessTime ?? omitted,
        modification: changes.modificationTime ?? omitted)
    }
  }

  private static func apply(_ changes: AttributeChanges, to file: OpenFile) {
    file.meta.withLock { meta in
      guard var pending = meta.pending else { return }
      if let mode = changes.mode { pending.mode = mode & 0o7777 }
      if let user = changes.user { pending.user = user }
      if let group = changes.group { pending.group = group }
      if changes.mode == nil, changes.user != nil || changes.group != nil {
        // As the disk does with what it has.
        pending.mode = Self.withoutSetID(pending.mode)
      }
      if let time = changes.accessTime { pending.accessed = time }
      if let time = changes.modificationTime {
        pending.modified = time
        meta.modified = time
      }
      pending.changed = .now
      meta.pending = pending
    }
  }
}
