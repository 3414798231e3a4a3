package import Platform
import Synchronization

/// How a folder closes: first to what is new, then to everything.
extension FileSystem {
  enum Phase: UInt8, AtomicRepresentable {
    case open
    /// What is open goes on, so that programs can finish; nothing is opened any more.
    case closing
    /// Nothing is answered but the giving back of what is held.
    case closed
  }

  /// From now on `open`, `create` and `opendir` fail with ENOKEY, as for a file of fscrypt whose
  /// key is gone. Source: open(2), keyrings(7).
  package func refuseOpens() {
    _ = phase.compareExchange(
      expected: .open, desired: .closing, ordering: .sequentiallyConsistent)
  }

  /// From now on everything fails with ENOKEY. What was written has to be committed before, and
  /// once more afterwards for operations that were under way.
  package func close() { phase.store(.closed, ordering: .sequentiallyConsistent) }

  /// Neither `refuseOpens` nor `close` was called.
  package var isOpen: Bool { phase.load(ordering: .sequentiallyConsistent) == .open }

  /// Files that a program is writing: open for writing, with changes that are not committed.
  package var filesBeingWritten: [String] {
    let writing = handles.withLock { $0.files.values.filter(\.isWriter).map(\.file) }
    return Set(
      writing.filter { file in file.meta.withLock { $0.isDirty } }.map(\.inode.displayPath)
    ).sorted()
  }

  /// Commits the files that are complete at every moment because their old content was edited, not
  /// written anew. Failures are `commitAll`'s to tell.
  package func commitEdited() {
    for inode in table.all {
      guard let file = inode.state.withLock({ $0.file }), file.meta.withLock({ $0.isDirty }),
        !file.content.withShared({ $0.isAnew })
      else { continue }
      try? commit(file, durable: false)
    }
  }

  /// Names that the kernel may have cached.
  package var knownEntries: [(parent: NodeID, name: FileName)] {
    table.all.flatMap { inode in
      inode.state.withLock { $0.links.map { ($0.parent.nodeID, $0.name) } }
    }
  }

  func checkOpenable() throws(FileSystemError) {
    if phase.load(ordering: .relaxed) != .open { throw .system(.noKey) }
  }

  func checkNotClosed() throws(FileSystemError) {
    if phase.load(ordering: .relaxed) == .closed { throw .system(.noKey) }
  }

  /// The inode that the kernel asks about.
  func asked(_ node: NodeID) throws(FileSystemError) -> Inode {
    try checkNotClosed()
    return try table.inode(node)
  }
}
