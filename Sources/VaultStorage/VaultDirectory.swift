package import Glibc
package import Platform
import Synchronization

/// One open directory of a vault. For any thread at once.
///
/// Locks: `state`, for moments; never across a call to the disk.
package final class VaultDirectory: Sendable {
  /// Opened with O_RDONLY | O_DIRECTORY.
  package let fd: FileDescriptor
  package let id: DirectoryID
  let context: VaultContext
  let codec: NameCodec
  let state = Mutex(State())

  struct State {
    /// Entries whose names can't be computed from what they show as: conflict copies. nil until
    /// they are first looked for.
    var irregular: [FileName: StoredName]?
    /// The name asked for last: a new file's is looked up before it is made.
    var lastSpelt: (name: FileName, spelling: NameCodec.Spelling)?
    /// `directory.id` is on the disk.
    var hasDurableID = false
  }

  init(
    fd: consuming FileDescriptor, id: DirectoryID, isRoot: Bool, context: VaultContext
  ) throws(StorageError) {
    self.fd = fd
    self.id = id
    self.context = context
    codec = try NameCodec(keys: context.keys, mode: context.names, directory: id, isRoot: isRoot)
    let number = self.fd.rawValue
    let status = try StorageError.onDisk { () throws(Errno) in try Syscalls.status(number) }
    context.cleanOnce(.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))) {
      removeLeftovers()
    }
  }

  /// Throws `.system(.nameTooLong)` above 255 bytes.
  package func storedName(
    _ name: FileName, kind: EntryKind
  ) throws(StorageError) -> StoredName {
    try codec.stored(spelling(name), kind: kind)
  }

  private func spelling(_ name: FileName) throws(StorageError) -> NameCodec.Spelling {
    if let last = state.withLock({ $0.lastSpelt }), last.name == name { return last.spelling }
    let spelling = try codec.spelling(name)
    state.withLock { $0.lastSpelt = (name, spelling) }
    return spelling
  }

  /// The entry that shows as `name`; nil when there is none. One fstatat(2) for a blob, two for
  /// the rest.
  package func find(
    _ name: FileName
  ) throws(StorageError) -> (stored: StoredName, kind: EntryKind, status: stat)? {
    let spelling = try spelling(name)
    if let found = try find(spelling, .blob) { return found }
    if let found = try find(spelling, .other) { return found }
    return try findIrregular(name)
  }

  private func find(
    _ spelling: NameCodec.Spelling, _ kind: EntryKind
  ) throws(StorageError) -> (stored: StoredName, kind: EntryKind, status: stat)? {
    let stored = try codec.stored(spelling, kind: kind)
    guard let status = try status(stored, kind) else { return nil }
    return (stored, kind, status)
  }

  private func findIrregular(
    _ name: FileName
  ) throws(StorageError) -> (stored: StoredName, kind: EntryKind, status: stat)? {
    guard let stored = try irregularEntries()[name] else { return nil }
    for kind in [EntryKind.blob, .other] {
      if let status = try status(stored, kind) { return (stored, kind, status) }
    }
    state.withLock { $0.irregular?[name] = nil }
    return nil
  }

  /// nil when there is no such entry, or one of the other kind.
  private func status(
    _ stored: StoredName, _ kind: EntryKind
  ) throws(StorageError) -> stat? {
    do throws(Errno) {
      let status = try Syscalls.status(of: stored.entry, in: fd.rawValue)
      let isRegular = status.st_mode & mode_t(Glibc.S_IFMT) == mode_t(Glibc.S_IFREG)
      return isRegular == (kind == .blob) ? status : nil
    } catch {
      if error == .noSuchEntry { return nil }
      throw .system(error)
    }
  }

  /// Opens a directory in this one, without following a link. Throws `.damagedDirectory` when its
  /// names can't be told; one that is empty gets a new id instead.
  package func open(child: StoredName) throws(StorageError) -> VaultDirectory {
    let directory = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.open(
        child.entry, in: fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
    let id = try DirectoryID.identify(directory, context: context)
    return try VaultDirectory(fd: directory, id: id, isRoot: false, context: context)
  }

  /// A name for something that is being written. It may be taken: use O_EXCL or RENAME_NOREPLACE.
  package func temporaryName() throws(StorageError) -> FileName { try BlobName.temporary() }

  /// On return `directory.id` is on the disk, its name too. Called before the first entry is put into this
  /// directory, for without it the names of the entries are lost. Costs nothing from then on.
  package func prepareForEntries() throws(StorageError) {
    if context.names == .plain || context.isReadOnly { return }
    if state.withLock({ $0.hasDurableID }) { return }
    try StorageError.onDisk { () throws(Errno) in
      let file = try SmallFile.open(DirectoryID.fileName, in: fd.rawValue, flags: O_RDONLY)
      try Syscalls.synchronize(file.rawValue)
      // A disk that fails to take a file tells once only: what it has is what counts.
      Syscalls.dropPages(of: file.rawValue)
      guard try SmallFile.read(file, atMost: DirectoryID.byteCount) == id.bytes else {
        throw Errno.inputOutput
      }
      // A file's fsync says nothing of its name; here it mostly costs nothing any more.
      try Syscalls.synchronize(fd.rawValue)
    }
    state.withLock { $0.hasDurableID = true }
  }

  /// On return this directory and its entries are on the disk (their contents are the caller's).
  package func synchronize() throws(StorageError) {
    try prepareForEntries()
    try StorageError.onDisk { () throws(Errno) in try Syscalls.synchronize(fd.rawValue) }
  }
}
