import Glibc
import Platform
import Synchronization
import VaultStorage

/// From written bytes to a new version under the file's names.
extension FileSystem {
  /// Commits what is dirty. With `durable`, blob and names are on the disk on return. With
  /// `unlessWritten`, does nothing while somebody has the file open for writing.
  ///
  /// On failure the old version stays under the file's names and what was written stays in the
  /// open file, to be tried again, unless the disk refused it while it was streamed.
  func commit(
    _ file: OpenFile, durable: Bool, unlessWritten: Bool = false
  ) throws(FileSystemError) {
    let inode = file.inode
    try file.content.withExclusive { content throws(FileSystemError) in
      // Asked under the lock: who opens the file from here on waits to write or to empty it.
      if unlessWritten, hasWriters(file) { return }
      if let failure = content.failure { throw failure }
      let (links, key) = inode.state.withLock { ($0.links, $0.key) }
      // A removed file has nobody to be stored for.
      if links.isEmpty {
        guard let key, try adoptLinks(of: inode, key) else { return }
      }
      if file.meta.withLock({ $0.isDirty }) {
        let written = try encode(&content, file)
        if durable { try storing { () throws(StorageError) in try written.synchronize() } }
        try publish(written, &content, file)
      } else if durable, let base = content.base {
        try calling { () throws(Errno) in
          try Syscalls.synchronizeData(base.descriptor)
        }
      }
    }
    guard durable else { return }
    for link in inode.state.withLock({ $0.links }) { try synchronize(directory: link.parent) }
  }

  /// Makes a directory durable, and the names on the way to it.
  func synchronize(directory inode: Inode) throws(FileSystemError) {
    let (node, directory) = try opened(inode)
    try storing { () throws(StorageError) in try directory.synchronize() }
    guard node.isFresh.exchange(false, ordering: .relaxed),
      let above = inode.state.withLock({ $0.links.first?.parent })
    else { return }
    do throws(FileSystemError) { try synchronize(directory: above) } catch {
      node.isFresh.store(true, ordering: .relaxed)
      throw error
    }
  }

  /// Finishes the stream, or writes base and scratch into a new blob. From then on the content
  /// reads from that blob; it is kept until it could be published, or the disk refuses it.
  func encode(
    _ content: inout Content, _ file: OpenFile
  ) throws(FileSystemError) -> WrittenBlob {
    if let unpublished = content.unpublished, !unpublished.isRefused { return unpublished }
    let written: WrittenBlob
    if let writer = content.writer {
      do throws(StorageError) { written = try writer.finish() } catch {
        content = Content(writer: nil)
        content.failure = .storage(error)
        throw .storage(error)
      }
    } else {
      let directory = try home(of: file.inode)
      let writer = try storing { () throws(StorageError) in
        try BlobWriter(in: directory, keys: vault.keys)
      }
      try copy(content, to: writer)
      written = try storing { () throws(StorageError) in try writer.finish() }
    }
    let isAnew = content.isAnew
    content = Content(base: written.blob, size: written.size)
    content.isAnew = isAnew
    content.unpublished = written
    return written
  }

  private func copy(
    _ content: borrowing Content, to writer: BlobWriter
  ) throws(FileSystemError) {
    // A locked piece at a time: plaintext stays out of swap where the system allows it.
    let memory = try ScratchMemory()
    var position: Int64 = 0
    while position < content.size {
      let count = try OpenFile.read(content, into: memory.bytes, at: position)
      guard count > 0 else { throw .system(.inputOutput) }
      try storing { () throws(StorageError) in
        try writer.append(UnsafeRawBufferPointer(rebasing: memory.bytes[..<count]))
      }
      position += Int64(count)
    }
  }

  private func publish(
    _ written: WrittenBlob, _ content: inout Content, _ file: OpenFile
  ) throws(FileSystemError) {
    let inode = file.inode
    // nil until the vault was searched for links beside the known ones.
    var scanned: [Link]?
    while true {
      let links = Array(inode.state.withLock { $0.links })
      if links.isEmpty { break }
      // The bytes go to the disk without a lock on the directory.
      if file.meta.withLock({ $0.pending == nil }) {
        try storing { () throws(StorageError) in try written.synchronize() }
      }
      let parents = (links + (scanned ?? [])).map(\.parent)
      let outcome = try withExclusive(parents) { () throws(FileSystemError) -> Outcome in
        let current = inode.state.withLock { $0.links }
        guard current.count == links.count, zip(current, links).allSatisfy({ $0.isSame($1) })
        else { return .again }
        return try publish(written, links, scanned, file)
      }
      switch outcome {
      case .done:
        content.unpublished = nil
        content.isAnew = false
        return
      case .again:
        scanned = nil
      case .otherLinks(let key):
        // Hard links that nobody looked up in this mount: they are names of this file, too.
        scanned = try findLinks(of: key, except: links)
      }
    }
  }

  private enum Outcome {
    case done
    case again
    case otherLinks(BackingKey)
  }

  /// With the directories of all links locked.
  private func publish(
    _ written: WrittenBlob, _ known: [Link], _ scanned: [Link]?, _ file: OpenFile
  ) throws(FileSystemError) -> Outcome {
    guard let first = known.first else { return .done }
    let links = known + (scanned ?? [])
    let (node, directory) = try opened(first.parent)
    let meta = file.meta.withLock { $0 }
    let before = try directoryTimes(of: links)
    if let pending = meta.pending {
      try apply(pending, modified: meta.modified, to: written)
      if pending.hasShadow {
        try putOverShadow(written, first, node, directory, pending.shadowed)
      } else {
        do throws(FileSystemError) { try put(written, [first], replacing: false) } catch {
          guard error.errno == .exists else { throw error }
          // Made below the mount since the file was.
          try putOverShadow(written, first, node, directory, nil)
        }
      }
      _ = node.pending.withLock { $0.removeValue(forKey: first.name) }
    } else {
      let status: stat?
      do throws(Errno) {
        status = try Syscalls.status(of: first.stored.entry, in: directory.fd.rawValue)
      } catch {
        // Somebody removed it below the mount; what the user wrote is stored all the same.
        guard error == .noSuchEntry else { throw .system(error) }
        status = nil
      }
      if let status {
        let old = try openStored(first.stored.entry, in: directory)
        let number = old.rawValue
        let found = try calling { () throws(Errno) in try BlobVersion(of: number) }
        let isForeign = isForeign(found, meta.stored?.version, written)
        // More even after a search: names outside of the vault, say a backup's. They keep what
        // they have.
        if !isForeign, scanned == nil, Int(status.st_nlink) > links.count {
          return .otherLinks(BackingKey(status))
        }
        try storing { () throws(StorageError) in
          try AtomicReplace.copyAttributes(from: old.rawValue, to: written.descriptor)
        }
        try calling { () throws(Errno) in
          try Syscalls.setTimes(
            written.descriptor, access: meta.accessed ?? status.st_atim,
            modification: meta.modified ?? status.st_mtim)
        }
        if isForeign {
          try keepForeign(first, unless: meta.stored?.version, written)
          // A commit that fails from here on is tried again.
          file.meta.withLock { $0.stored?.version = found }
        }
      }
      for link in links.dropFirst() {
        try keepForeign(link, unless: meta.stored?.version, written)
      }
      try put(written, links, replacing: status != nil || links.count > 1)
    }
    try noteCommitted(written, file)
    for times in before { times.restore() }
    return .done
  }

  /// The first commit of a file whose name the disk has already.
  private func putOverShadow(
    _ written: WrittenBlob, _ link: Link, _ node: DirectoryNode, _ directory: VaultDirectory,
    _ expected: BlobVersion?
  ) throws(FileSystemError) {
    var shadowed: Found?
    if case .pending(_, let found) = try occupant(of: link.name, node, directory) {
      shadowed = found
    }
    if shadowed?.kind == .blob { try keepForeign(link, unless: expected, written) }
    try put(written, [link], replacing: shadowed?.kind == .blob)
    guard let shadowed, shadowed.kind == .other else { return }
    try calling { () throws(Errno) in
      do throws(Errno) {
        try Syscalls.unlink(shadowed.stored.entry, in: directory.fd.rawValue)
      } catch {
        // Two that show under one name would be worse than the error.
        try? Syscalls.unlink(link.stored.entry, in: directory.fd.rawValue)
        throw error
      }
    }
  }

  /// A commit changes no names that programs see: the directory's times stay what they were, or
  /// what the making of a new file had made them.
  private struct DirectoryTimes {
    let node: DirectoryNode
    let directory: VaultDirectory
    let status: stat

    func restore() {
      let touched = node.touched.withLock { touched in
        defer { touched = nil }
        return touched
      }
      // Where the directory is somebody else's its times are, too.
      try? Syscalls.setTimes(
        directory.fd.rawValue, access: status.st_atim,
        modification: max(status.st_mtim, touched ?? status.st_mtim))
    }
  }

  private func directoryTimes(of links: [Link]) throws(FileSystemError) -> [DirectoryTimes] {
    var times: [DirectoryTimes] = []
    for link in links {
      let (node, directory) = try opened(link.parent)
      if times.contains(where: { $0.node === node }) { continue }
      let status = try calling { () throws(Errno) in
        try Syscalls.status(directory.fd.rawValue)
      }
      times.append(DirectoryTimes(node: node, directory: directory, status: status))
    }
    return times
  }

  private func put(
    _ written: WrittenBlob, _ links: [Link], replacing: Bool
  ) throws(FileSystemError) {
    var targets: [AtomicReplace.Target] = []
    for link in links {
      targets.append(
        AtomicReplace.Target(
          directory: try opened(link.parent).1, stored: link.stored, name: link.name))
    }
    try storing { () throws(StorageError) in
      try AtomicReplace.publish(written, as: targets, replacing: replacing)
    }
  }

  func apply(
    _ pending: OpenFile.Pending, modified: timespec?, to written: WrittenBlob
  ) throws(FileSystemError) {
    let descriptor = written.descriptor
    for (name, value) in pending.extendedAttributes {
      let (stored, encoded) = try storing { () throws(StorageError) in
        (
          try extendedAttributes.storedName(name),
          try extendedAttributes.encode(value: value, name: name)
        )
      }
      try calling { () throws(Errno) in
        try Syscalls.setExtendedAttribute(descriptor, stored, encoded)
      }
    }
    try calling { () throws(Errno) in
      let mine = try Syscalls.status(descriptor)
      if mine.st_uid != pending.user || mine.st_gid != pending.group {
        try Syscalls.setOwner(descriptor, pending.user, pending.group)
      }
      try Syscalls.setMode(descriptor, pending.mode)
      try Syscalls.setTimes(
        descriptor, access: pending.accessed, modification: modified ?? pending.modified)
    }
  }

  private func noteCommitted(_ written: WrittenBlob, _ file: OpenFile) throws(FileSystemError) {
    let inode = file.inode
    let status = try calling { () throws(Errno) in try Syscalls.status(written.descriptor) }
    table.rekey(inode, to: BackingKey(status), isCertain: true)
    let identity = BlobIdentity(status)
    inode.state.withLock { state in
      state.opened = identity
      state.cached = identity
      state.size = (identity, written.size)
    }
    let stored = OpenFile.Stored(
      version: BlobVersion(written.blob), status: status, file: StoredFile(written.blob))
    file.meta.withLock { meta in
      meta.stored = stored
      meta.isDirty = false
      meta.isOnlyEmptied = false
      meta.modified = nil
      meta.accessed = nil
      meta.pending = nil
    }
  }

  // MARK: Hard links

  /// Finds the names that remain of an open file whose known ones were removed; false if there are
  /// none.
  func adoptLinks(of inode: Inode, _ key: BackingKey) throws(FileSystemError) -> Bool {
    let links = try findLinks(of: key, except: [])
    for link in links { inode.add(link, isOnlyOne: false) }
    if links.isEmpty { table.rekey(inode, to: nil) }
    return !links.isEmpty
  }

  /// Every name of the stored file `key` that isn't among `known`: the vault is searched, which
  /// happens when a file with several names is changed and not all were looked up before.
  private func findLinks(
    of key: BackingKey, except known: [Link]
  ) throws(FileSystemError) -> [Link] {
    var links: [Link] = []
    var visited: [Inode] = []
    defer { for inode in visited { table.forget(inode.nodeID, count: 1) } }
    var waiting: [Inode] = [root]
    while let parent = waiting.popLast() {
      let (_, directory) = try opened(parent)
      for listed in try storing({ () throws(StorageError) in try directory.list() }) {
        if listed.type == UInt8(DT_DIR) {
          guard let entry = try? lookup(listed.name, in: parent) else { continue }
          let inode = try table.inode(entry.nodeID)
          visited.append(inode)
          waiting.append(inode)
        } else if listed.inode == key.inode, listed.kind == .blob {
          let link = Link(parent: parent, name: listed.name, stored: listed.stored)
          if !known.contains(where: { $0.isSame(link) }) { links.append(link) }
        }
      }
    }
    return links
  }
}

private func max(_ left: timespec, _ right: timespec) -> timespec { left < right ? right : left }
