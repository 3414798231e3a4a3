package import Glibc
package import Platform
import Synchronization
package import VaultStorage

/// Who makes a file.
package struct Caller: Sendable {
  package let user: uid_t
  package let group: gid_t
  package let umask: mode_t

  package init(user: uid_t, group: gid_t, umask: mode_t) {
    self.user = user
    self.group = group
    self.umask = umask
  }
}

/// The answer to a lookup; the kernel owes one FORGET for it.
package struct Entry: Sendable {
  package let nodeID: NodeID
  package let generation: UInt64
  package let attributes: stat
}

/// What a SETATTR changes; nil stays.
package struct AttributeChanges: Sendable {
  package var mode: mode_t?
  package var user: uid_t?
  package var group: gid_t?
  package var size: Int64?
  package var accessTime: timespec?
  package var modificationTime: timespec?

  package init() {}
}

package struct Opened: Sendable {
  package let handle: UInt64
  /// The kernel's pages of this file, or its listing of this directory, are still right.
  package let keepsCache: Bool
  /// Nothing can be dirty at close.
  package let skipsFlush: Bool
  /// What is written goes past the kernel's pages; see `letWritesBypassCache`.
  package var bypassesCache = false
}

/// What the kernel may have cached and must be told. Not called from within an operation that the
/// kernel waits for on the same node: implementations hand it to a thread of their own.
package protocol KernelCache: Sendable {
  func invalidate(node: NodeID)
  /// On return the kernel has let go of the attributes. Handlers may call it.
  func invalidateAttributes(of node: NodeID)
  func invalidate(entry: FileName, in parent: NodeID)
}

/// An unlocked vault as an ordinary POSIX directory. Speaks inodes, offsets and bytes, named after
/// FUSE's operations. Permissions are the kernel's to check where several users get in, else see
/// `require`.
///
/// Lock order: a file's content, then directories (by node ID where there are several), then the
/// inode table, then an inode's state and a file's meta. A directory's lock is held during the
/// calls that look up or change its entries, never during a sync or the encryption of a file.
package final class FileSystem: Sendable {
  let vault: Vault
  let table = InodeTable()
  let root: Inode
  let device: dev_t
  let extendedAttributes: ExtendedAttributes
  /// Files may be given to whoever makes them.
  let givesAway: Bool
  /// Others than the user who mounts get in.
  package let isShared: Bool
  let checksPermissions: Bool
  let groups: Set<gid_t>
  private let writesBypassCache = Atomic<Bool>(false)
  let handles = Mutex(Handles())
  /// Stored files that the disk failed to take when it was asked to.
  let refused = Mutex<Set<BackingKey>>([])
  private let cache = Mutex<(any KernelCache)?>(nil)
  private let lastUseSeconds = Atomic<Int64>(0)
  let phase = Atomic<Phase>(.open)

  struct Handles {
    var next: UInt64 = 1
    var files: [UInt64: FileHandle] = [:]
    var directories: [UInt64: DirectoryHandle] = [:]
  }

  package init(vault: Vault, isShared: Bool = true) {
    self.vault = vault
    self.isShared = isShared
    extendedAttributes = ExtendedAttributes(keys: vault.keys)
    givesAway = geteuid() == 0
    checksPermissions = !isShared && geteuid() != 0
    groups = Self.ownGroups
    let status = try? Syscalls.status(vault.root.fd.rawValue)
    device = status?.st_dev ?? 0
    root = table.insert(
      kind: S_IFDIR, number: UInt64(status?.st_ino ?? 1), key: status.map(BackingKey.init),
      directory: DirectoryNode(vault.root, among: table.openDirectories))
    noteUse()
  }

  deinit {
    // What is still open when the mount ends, and what has no name on the disk yet, would go on
    // referring to one another, and so to the keys.
    for inode in table.all {
      var file: OpenFile?
      inode.state.withLock { swap(&$0.file, &file) }
      var pending: [FileName: Inode] = [:]
      inode.directory?.pending.withLock { swap(&$0, &pending) }
    }
  }

  package func attach(_ cache: any KernelCache) { self.cache.withLock { $0 = cache } }

  /// What is known of a file takes memory here and in the kernel; above this many, the kernel is
  /// asked to forget those that were not looked up for longest.
  private static let knownLimit = 50_000

  private func thinOut() {
    let inodes = table.leastUsed(above: Self.knownLimit)
    guard !inodes.isEmpty, let cache = cache.withLock({ $0 }) else { return }
    for inode in inodes {
      for link in inode.state.withLock({ $0.links }) {
        cache.invalidate(entry: link.name, in: link.parent.nodeID)
      }
    }
  }

  /// From now on, what is written to a new file that nobody can read by the same descriptor goes past the
  /// kernel's pages: a copy less of each byte, and a question less for each file. Only for a kernel that
  /// drops the pages that others have read of the file, before each such write.
  package func letWritesBypassCache() { writesBypassCache.store(true, ordering: .relaxed) }

  func bypassesCache(_ flags: CInt) -> Bool {
    flags & O_ACCMODE == O_WRONLY && writesBypassCache.load(ordering: .relaxed)
  }

  func invalidate(_ name: FileName, in parent: Inode) {
    cache.withLock { $0 }?.invalidate(entry: name, in: parent.nodeID)
  }

  func invalidatePages(of inode: Inode) {
    cache.withLock { $0 }?.invalidate(node: inode.nodeID)
  }

  func invalidateAttributes(of inode: Inode) {
    cache.withLock { $0 }?.invalidateAttributes(of: inode.nodeID)
  }

  // MARK: Use

  /// Seconds on CLOCK_BOOTTIME of the last open, read, write or change; time asleep counts.
  package var lastUse: Int64 { lastUseSeconds.load(ordering: .relaxed) }

  /// Files that programs hold open now.
  package var openFileCount: Int { handles.withLock { $0.files.count } }

  /// What the kernel may hold pages or attributes of.
  package var knownNodes: [NodeID] { table.all.map(\.nodeID) }

  /// Lookups that the kernel has not given back; for tests of the balance.
  package var lookupTotal: UInt64 { table.lookupTotal }

  func noteUse() {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    lastUseSeconds.store(Int64(time.tv_sec), ordering: .relaxed)
  }

  // MARK: Lookup

  package func lookup(
    _ name: FileName, in parent: NodeID
  ) throws(FileSystemError) -> Entry { try lookup(name, in: try asked(parent)) }

  func lookup(_ name: FileName, in parent: Inode) throws(FileSystemError) -> Entry {
    let (node, directory) = try opened(parent)
    try Self.check(name)
    return try node.lock.withShared { () throws(FileSystemError) in
      if let pending = node.pending.withLock({ $0[name] }) {
        table.retain(pending)
        return try entry(pending) { () throws(FileSystemError) in try pendingAttributes(pending) }
      }
      guard
        let found = try storing({ () throws(StorageError) in try directory.find(name) })
      else { throw .system(.noSuchEntry) }
      return try entry(
        found.status, Link(parent: parent, name: name, stored: found.stored), directory)
    }
  }

  package func forget(_ node: NodeID, count: UInt64) { table.forget(node, count: count) }

  /// The entry of what is stored as `link` and has `status`, counted. The directory is locked.
  func entry(
    _ status: stat, _ link: Link, _ directory: VaultDirectory
  ) throws(FileSystemError) -> Entry {
    let inode = table.findOrInsert(status)
    thinOut()
    inode.add(link, isOnlyOne: status.st_nlink == 1 || inode.isDirectory)
    return try entry(inode) { () throws(FileSystemError) in
      complete(status, inode, link.stored, directory)
    }
  }

  /// Gives the count back when the attributes can't be had.
  func entry(
    _ inode: Inode, _ attributes: () throws(FileSystemError) -> stat
  ) throws(FileSystemError) -> Entry {
    do throws(FileSystemError) {
      return Entry(nodeID: inode.nodeID, generation: 0, attributes: try attributes())
    } catch {
      table.forget(inode.nodeID, count: 1)
      throw error
    }
  }

  func opened(_ inode: Inode) throws(FileSystemError) -> (DirectoryNode, VaultDirectory) {
    guard let node = inode.directory else { throw .system(.notADirectory) }
    return (node, try node.vaultDirectory(of: inode))
  }

  /// 255 bytes is what programs expect; FUSE itself takes 1,024.
  static let nameLimit = 255

  static func check(_ name: FileName) throws(FileSystemError) {
    if name.count > nameLimit { throw .system(.nameTooLong) }
    if name.bytes.isEmpty { throw .system(.noSuchEntry) }
  }

  func checkWritable() throws(FileSystemError) {
    if vault.isReadOnly { throw .system(.readOnly) }
  }

  // MARK: Places

  /// Where an inode is now.
  enum Place {
    case root(VaultDirectory)
    case stored(VaultDirectory, Link)
    /// A new file before its first commit.
    case pending(OpenFile)
    /// Removed; perhaps somebody still has it open.
    case removed(OpenFile?)
  }

  /// Calls `body` with the inode's place while it can't change: its directory is locked, shared.
  func withPlace<Result: ~Copyable>(
    of inode: Inode, _ body: (Place) throws(FileSystemError) -> Result
  ) throws(FileSystemError) -> Result {
    while true {
      let (link, file, key) = inode.state.withLock { ($0.links.first, $0.file, $0.key) }
      guard let link else {
        if inode === root { return try body(.root(vault.root)) }
        // Its known names are gone but it has others.
        if file != nil, let key, try adoptLinks(of: inode, key) { continue }
        return try body(.removed(file))
      }
      let (node, directory) = try opened(link.parent)
      let result: Result? = try node.lock.withShared { () throws(FileSystemError) in
        let isCurrent = inode.state.withLock { $0.links.contains { $0.isSame(link) } }
        guard isCurrent else { return nil }
        if let file, node.pending.withLock({ $0[link.name] }) === inode {
          return try body(.pending(file))
        }
        return try body(.stored(directory, link))
      }
      if let result { return result }
    }
  }

  /// A directory of the inode's disk for temporary files.
  func home(of inode: Inode) throws(FileSystemError) -> VaultDirectory {
    guard let link = inode.state.withLock({ $0.links.first }) else { return vault.root }
    return try opened(link.parent).1
  }

  /// Locks the directories exclusively, always in the same order.
  func withExclusive<Result>(
    _ directories: [Inode], _ body: () throws(FileSystemError) -> Result
  ) throws(FileSystemError) -> Result {
    var sorted: [Inode] = []
    for inode in directories.sorted(by: { $0.nodeID < $1.nodeID }) where sorted.last !== inode {
      sorted.append(inode)
    }
    return try withExclusive(sorted: sorted[...], body)
  }

  private func withExclusive<Result>(
    sorted: ArraySlice<Inode>, _ body: () throws(FileSystemError) -> Result
  ) throws(FileSystemError) -> Result {
    guard let first = sorted.first else { return try body() }
    guard let node = first.directory else { throw .system(.notADirectory) }
    return try node.lock.withExclusive { () throws(FileSystemError) in
      try withExclusive(sorted: sorted.dropFirst(), body)
    }
  }

  // MARK: The whole

  /// "statfs": what the disk below says; what counts is what fits there.
  package func status() throws(FileSystemError) -> statvfs {
    var status = try calling { () throws(Errno) in
      try Syscalls.fileSystemStatus(vault.root.fd.rawValue)
    }
    status.f_namemax = UInt(Self.nameLimit)
    return status
  }

  /// Commits every file with uncommitted writes and returns the paths of those that failed; their
  /// old versions stay. To be called at the end, when programs may still be writing: what is
  /// only a part of a new version gets a name of its own. With `areAllClosed`, none is: the kernel
  /// let go of the mount, which it does when the last file is closed, but a release that it had not
  /// told of yet is lost.
  package func commitAll(areAllClosed: Bool) -> [String] {
    var failed: [String] = []
    for inode in table.all {
      guard let file = inode.state.withLock({ $0.file }), file.meta.withLock({ $0.isDirty })
      else { continue }
      do throws(FileSystemError) {
        if areAllClosed { try commit(file, durable: false) } else { try commitAtEnd(file) }
      } catch {
        failed.append(inode.displayPath)
        Log.error("could not store '\(inode.displayPath)': \(error.errno)")
      }
    }
    return failed
  }
}
