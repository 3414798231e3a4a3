package import Glibc
package import Platform
import Synchronization
import VaultStorage

/// One opendir(3): a snapshot of the names, so that offsets stay right while files come and go.
final class DirectoryHandle: Sendable {
  let inode: Inode
  let names = Mutex<[Name]?>(nil)
  /// When `names` was read.
  let read = Mutex<ContinuousClock.Instant?>(nil)

  struct Name {
    let name: FileName
    /// nil for a file that isn't on the disk yet.
    let stored: StoredName?
    let type: mode_t
    let number: UInt64
  }

  init(_ inode: Inode) { self.inode = inode }
}

package struct DirectoryEntry: Sendable {
  package let name: FileName
  package let inode: UInt64
  /// S_IFMT bits.
  package let type: mode_t
  /// To go on behind this entry.
  package let nextOffset: Int64
  /// With attributes only; counts a lookup.
  package let entry: Entry?
}

/// Reading directories.
extension FileSystem {
  package func openDirectory(_ node: NodeID) throws(FileSystemError) -> Opened {
    try checkOpenable()
    let inode = try asked(node)
    guard let directory = inode.directory else { throw .system(.notADirectory) }
    try require(.read, of: inode)
    let listed = directory.listed.withLock { $0 }
    let isFresh = listed.map { $0.duration(to: .now) < Self.listingValidity } ?? false
    return handles.withLock { handles in
      let number = handles.next
      handles.next += 1
      handles.directories[number] = DirectoryHandle(inode)
      return Opened(handle: number, keepsCache: isFresh, skipsFlush: true)
    }
  }

  /// How long the kernel may list a directory from what it was told. Less than its entries are
  /// valid, which come with a listing: a later one shall bring them anew.
  private static let listingValidity = Duration.milliseconds(500)

  package func releaseDirectory(_ handle: UInt64) {
    handles.withLock { _ = $0.directories.removeValue(forKey: handle) }
  }

  private func directoryHandle(_ handle: UInt64) throws(FileSystemError) -> DirectoryHandle {
    try checkNotClosed()
    guard let found = handles.withLock({ $0.directories[handle] }) else {
      throw .system(.badDescriptor)
    }
    return found
  }

  package func synchronizeDirectory(_ handle: UInt64) throws(FileSystemError) {
    try synchronize(directory: try directoryHandle(handle).inode)
  }

  /// Calls `body` with each entry from `offset` on until it says that there is no more room; that
  /// entry's lookup is taken back. Offset 0 reads the directory anew (rewinddir).
  package func readDirectory(
    _ handle: UInt64, from offset: Int64, withAttributes: Bool,
    _ body: (DirectoryEntry) -> Bool
  ) throws(FileSystemError) {
    let handle = try directoryHandle(handle)
    let known = offset == 0 ? nil : handle.names.withLock { $0 }
    let names: [DirectoryHandle.Name]
    if let known {
      names = known
    } else {
      let now = ContinuousClock.now
      names = try snapshot(of: handle.inode)
      handle.names.withLock { $0 = names }
      handle.read.withLock { $0 = offset == 0 ? now : nil }
    }
    guard offset >= 0 else { throw .system(.invalidArgument) }
    let (node, directory) = try opened(handle.inode)
    var position = Int(offset)
    while position < names.count {
      let name = names[position]
      position += 1
      var found: Entry?
      if withAttributes, !name.name.isDotOrDotDot {
        do throws(FileSystemError) {
          found = try node.lock.withShared { () throws(FileSystemError) in
            try entry(of: name, handle.inode, node, directory)
          }
          // Gone since the snapshot.
          if found == nil { continue }
        } catch {
          // Whose names may be read, and nothing else: a directory without the right to search it.
          guard error.errno == .permissionDenied else { throw error }
        }
      }
      let goesOn = body(
        DirectoryEntry(
          name: name.name, inode: found.map { UInt64($0.attributes.st_ino) } ?? name.number,
          type: found.map { $0.attributes.st_mode & S_IFMT } ?? name.type,
          nextOffset: Int64(position), entry: found))
      if !goesOn {
        if let found { forget(found.nodeID, count: 1) }
        return
      }
    }
    // The kernel has it from its beginning to its end.
    if let read = handle.read.withLock({ $0 }) { node.listed.withLock { $0 = read } }
  }

  private func snapshot(of inode: Inode) throws(FileSystemError) -> [DirectoryHandle.Name] {
    let (node, directory) = try opened(inode)
    let above = inode.state.withLock { $0.links.first?.parent } ?? inode
    var names = [
      DirectoryHandle.Name(
        name: FileName("."), stored: nil, type: S_IFDIR, number: inode.number),
      DirectoryHandle.Name(
        name: FileName(".."), stored: nil, type: S_IFDIR, number: above.number),
    ]
    try node.lock.withShared { () throws(FileSystemError) in
      let pending = node.pending.withLock { $0 }
      for listed in try storing({ () throws(StorageError) in try directory.list() })
      where pending[listed.name] == nil {
        names.append(
          DirectoryHandle.Name(
            name: listed.name, stored: listed.stored, type: mode_t(listed.type) << 12,
            number: listed.inode))
      }
      for (name, inode) in pending {
        names.append(
          DirectoryHandle.Name(name: name, stored: nil, type: S_IFREG, number: inode.number))
      }
    }
    return names
  }

  /// nil when the name is gone. The directory is locked.
  private func entry(
    of name: DirectoryHandle.Name, _ parent: Inode, _ node: DirectoryNode,
    _ directory: VaultDirectory
  ) throws(FileSystemError) -> Entry? {
    if let pending = node.pending.withLock({ $0[name.name] }) {
      table.retain(pending)
      return try entry(pending) { () throws(FileSystemError) in try pendingAttributes(pending) }
    }
    do throws(FileSystemError) {
      guard let stored = name.stored else {
        // It was new at the snapshot and is stored by now.
        guard
          let found = try storing({ () throws(StorageError) in try directory.find(name.name) })
        else { return nil }
        return try entry(
          found.status, Link(parent: parent, name: name.name, stored: found.stored), directory)
      }
      let status = try calling { () throws(Errno) in
        try Syscalls.status(of: stored.entry, in: directory.fd.rawValue)
      }
      return try entry(
        status, Link(parent: parent, name: name.name, stored: stored), directory)
    } catch {
      if error.errno == .noSuchEntry { return nil }
      throw error
    }
  }
}
