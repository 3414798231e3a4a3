import Glibc
package import Platform
import Synchronization
import VaultStorage

/// "rename", with RENAME_NOREPLACE and RENAME_EXCHANGE.
extension FileSystem {
  package func rename(
    _ name: FileName, in parent: NodeID, to newName: FileName, in newParent: NodeID,
    flags: Syscalls.RenameFlags
  ) throws(FileSystemError) {
    try checkWritable()
    try Self.check(newName)
    noteUse()
    guard flags.isSubset(of: [.noReplace, .exchange]), flags != [.noReplace, .exchange] else {
      throw .system(.invalidArgument)
    }
    let old = try Side(name, try asked(parent), self)
    let new = try Side(newName, try asked(newParent), self)
    try require(.change, of: old.inode)
    if new.inode !== old.inode { try require(.change, of: new.inode) }
    // What needs the disk (a sync, a commit) is done without the locks, then all is looked at anew.
    var synchronized: BackingKey?
    while true {
      let need = try withExclusive([old.inode, new.inode]) { () throws(FileSystemError) -> Need in
        try rename(old, new, flags, synchronized: synchronized)
      }
      switch need {
      case .nothing: return
      case .commit(let inode):
        guard let file = inode.state.withLock({ $0.file }) else { continue }
        try commit(file, durable: false)
      case .synchronize(let key, let stored):
        try synchronize(key, try openStored(stored.entry, in: old.directory))
        synchronized = key
      }
    }
  }

  /// A photo that is to take another's place is on the disk first. What that failed to take once
  /// has to be seen there.
  private func synchronize(
    _ key: BackingKey, _ file: borrowing FileDescriptor
  ) throws(FileSystemError) {
    let number = file.rawValue
    do throws(FileSystemError) {
      guard refused.withLock({ $0.contains(key) }) else {
        return try calling { () throws(Errno) in try Syscalls.synchronizeData(number) }
      }
      try storing { () throws(StorageError) in
        _ = try BlobDigest(onDisk: number, keys: vault.keys)
      }
      refused.withLock { _ = $0.remove(key) }
    } catch {
      refused.withLock { _ = $0.insert(key) }
      throw error
    }
  }

  private struct Side {
    let name: FileName
    let inode: Inode
    let node: DirectoryNode
    let directory: VaultDirectory

    init(
      _ name: FileName, _ inode: Inode, _ fileSystem: FileSystem
    ) throws(FileSystemError) {
      self.name = name
      self.inode = inode
      (node, directory) = try fileSystem.opened(inode)
    }

    func liftSeal(of found: Found) throws(FileSystemError) -> LiftedSeal? {
      guard found.kind == .blob else { return nil }
      return try FileSystem.liftSeal(of: found.stored, name, directory, found.status)
    }

    func link(_ stored: StoredName) -> Link { Link(parent: inode, name: name, stored: stored) }
  }

  /// What has to happen before a rename can.
  private enum Need {
    case nothing
    case commit(Inode)
    case synchronize(BackingKey, StoredName)
  }

  private func rename(
    _ old: Side, _ new: Side, _ flags: Syscalls.RenameFlags, synchronized: BackingKey?
  ) throws(FileSystemError) -> Need {
    let source = try occupant(of: old.name, old.node, old.directory)
    let target = try occupant(of: new.name, new.node, new.directory)
    if case .nobody = source { throw .system(.noSuchEntry) }
    if flags.contains(.exchange) {
      switch (source, target) {
      case (_, .nobody): throw .system(.noSuchEntry)
      case (.pending(let inode, _), _), (_, .pending(let inode, _)): return .commit(inode)
      case (.stored(let source), .stored(let target)):
        try exchange(old, source, new, target)
        return .nothing
      default: throw .system(.noSuchEntry)
      }
    }
    if case .nobody = target {} else if flags.contains(.noReplace) { throw .system(.exists) }
    switch source {
    case .nobody:
      throw .system(.noSuchEntry)
    case .pending(let inode, let shadowed):
      // The file there has more names, which from now on are to be counted one less.
      if case .stored(let found) = target, !found.isDirectory, found.status.st_nlink > 1 {
        return .commit(inode)
      }
      try renamePending(inode, shadowed, old, new, target)
      return .nothing
    case .stored(let source):
      return try renameStored(source, old, new, target, synchronized: synchronized)
    }
  }

  /// A new file takes the name in memory; the disk's version of that name stays until the file is
  /// committed.
  private func renamePending(
    _ inode: Inode, _ shadowed: Found?, _ old: Side, _ new: Side, _ target: Occupant
  ) throws(FileSystemError) {
    var hasShadow = false
    var shadow: BlobVersion?
    switch target {
    case .nobody: break
    case .pending(let other, let below):
      if other === inode { return }
      if let below { shadow = try version(of: below, in: new.directory) }
      dropPending(other, new.name, new.inode, new.node)
      hasShadow = below != nil
    case .stored(let found):
      if found.isDirectory { throw .system(.isADirectory) }
      hasShadow = true
      shadow = try version(of: found, in: new.directory)
      if let replaced = table.find(BackingKey(found.status)) {
        keepForHandles(replaced, found, new.directory)
        noteRemoved(replaced, new.name, new.inode, found)
      }
    }
    if let shadowed { try unlinkStored(old.name, shadowed, old.inode, old.directory) }
    dropPending(inode, old.name, old.inode, old.node)
    let stored = try storing { () throws(StorageError) in
      try new.directory.storedName(new.name, kind: .blob)
    }
    new.node.pending.withLock { $0[new.name] = inode }
    new.node.touched.withLock { $0 = .now }
    inode.add(new.link(stored), isOnlyOne: true)
    inode.state.withLock { $0.file }?.meta.withLock { meta in
      meta.pending?.changed = .now
      meta.pending?.hasShadow = hasShadow
      meta.pending?.shadowed = shadow
    }
  }

  private func renameStored(
    _ source: Found, _ old: Side, _ new: Side, _ target: Occupant, synchronized: BackingKey?
  ) throws(FileSystemError) -> Need {
    var replaced: Found?
    switch target {
    case .nobody: break
    case .pending(let inode, let shadowed):
      if source.isDirectory { throw .system(.notADirectory) }
      dropPending(inode, new.name, new.inode, new.node)
      replaced = shadowed
    case .stored(let found):
      if source.isDirectory, !found.isDirectory { throw .system(.notADirectory) }
      if !source.isDirectory, found.isDirectory { throw .system(.isADirectory) }
      if BackingKey(found.status) == BackingKey(source.status) {
        // Two names of one file: rename(2) leaves both.
        return .nothing
      }
      replaced = found
    }
    let key = BackingKey(source.status)
    if let replaced, replaced.kind == .blob, source.kind == .blob, synchronized != key {
      return .synchronize(key, source.stored)
    }
    let stored = try storing { () throws(StorageError) in
      let stored = try new.directory.storedName(new.name, kind: source.kind)
      try new.directory.prepareForEntries()
      try new.directory.prepareCompanion(stored, for: new.name)
      return stored
    }
    let loser = replaced.flatMap { table.find(BackingKey($0.status)) }
    if let loser, let replaced, !replaced.isDirectory {
      keepForHandles(loser, replaced, new.directory)
    }
    var seal: LiftedSeal?
    do throws(FileSystemError) {
      seal = try old.liftSeal(of: source)
      if let replaced, replaced.isDirectory {
        try putOver(emptyDirectory: replaced, source, old, new, stored)
      } else {
        try calling { () throws(Errno) in
          try Self.put(source, from: old, over: replaced, of: new, as: stored)
        }
      }
    } catch {
      new.directory.removeCompanion(stored)
      seal?.put(named: old.name, in: old.directory)
      throw error
    }
    seal?.put(named: new.name, in: new.directory)
    if let replaced, !replaced.isDirectory {
      if replaced.stored.companion != stored.companion {
        new.directory.removeCompanion(replaced.stored)
      }
      if let loser { noteRemoved(loser, new.name, new.inode, replaced) }
    }
    if source.stored.companion != nil, source.stored != stored || old.inode !== new.inode {
      old.directory.removeCompanion(source.stored)
    }
    noteMoved(source, old, new, stored)
    return .nothing
  }

  /// The step on the disk. A photo over a link or the like takes two, for those are stored under
  /// another form of the name: where the second fails the first is undone.
  private static func put(
    _ source: Found, from old: Side, over replaced: Found?, of new: Side, as stored: StoredName
  ) throws(Errno) {
    let (oldDirectory, newDirectory) = (old.directory.fd.rawValue, new.directory.fd.rawValue)
    try Syscalls.rename(
      source.stored.entry, in: oldDirectory, to: stored.entry, in: newDirectory)
    guard let replaced, replaced.stored.entry != stored.entry else { return }
    do throws(Errno) { try Syscalls.unlink(replaced.stored.entry, in: newDirectory) } catch {
      try? Syscalls.rename(
        stored.entry, in: newDirectory, to: source.stored.entry, in: oldDirectory,
        flags: .noReplace)
      throw error
    }
  }

  /// rename(2) itself would find `directory.id` in the empty one. So the two change places, and the
  /// empty one goes from its new place.
  private func putOver(
    emptyDirectory replaced: Found, _ source: Found, _ old: Side, _ new: Side,
    _ stored: StoredName
  ) throws(FileSystemError) {
    func swap() throws(Errno) {
      try Syscalls.rename(
        source.stored.entry, in: old.directory.fd.rawValue, to: stored.entry,
        in: new.directory.fd.rawValue, flags: .exchange)
    }
    let canSwap = replaced.stored.entry == stored.entry
    // Opened by name, which is soon another directory's.
    if let loser = table.find(BackingKey(replaced.status)) { _ = try opened(loser) }
    do throws(Errno) {
      guard canSwap else { throw .notSupported }
      try swap()
    } catch {
      guard [.notSupported, .invalidArgument, .noSystemCall].contains(error) else {
        throw .system(error)
      }
      // A disk that can't exchange: for a moment there is neither.
      try removeStoredDirectory(new.name, replaced, new.inode, new.directory)
      // It took the companion with it.
      try storing { () throws(StorageError) in
        try new.directory.prepareCompanion(stored, for: new.name)
      }
      return try calling { () throws(Errno) in
        try Self.put(source, from: old, over: nil, of: new, as: stored)
      }
    }
    let moved = Found(stored: source.stored, kind: replaced.kind, status: replaced.status)
    do throws(FileSystemError) {
      try removeStoredDirectory(new.name, moved, new.inode, old.directory)
    } catch {
      try? swap()
      throw error
    }
  }

  private func exchange(
    _ old: Side, _ source: Found, _ new: Side, _ target: Found
  ) throws(FileSystemError) {
    let (newStored, oldStored) = try storing { () throws(StorageError) in
      let newStored = try new.directory.storedName(new.name, kind: source.kind)
      let oldStored = try old.directory.storedName(old.name, kind: target.kind)
      try new.directory.prepareCompanion(newStored, for: new.name)
      try old.directory.prepareCompanion(oldStored, for: old.name)
      return (newStored, oldStored)
    }
    var sourceSeal: LiftedSeal?
    var targetSeal: LiftedSeal?
    do throws(FileSystemError) {
      sourceSeal = try old.liftSeal(of: source)
      targetSeal = try new.liftSeal(of: target)
      try exchange(old, source, newStored, new, target, oldStored)
    } catch {
      sourceSeal?.put(named: old.name, in: old.directory)
      targetSeal?.put(named: new.name, in: new.directory)
      throw error
    }
    sourceSeal?.put(named: new.name, in: new.directory)
    targetSeal?.put(named: old.name, in: old.directory)
    let sourceInode = table.find(BackingKey(source.status))
    let targetInode = table.find(BackingKey(target.status))
    sourceInode?.remove(old.name, in: old.inode)
    targetInode?.remove(new.name, in: new.inode)
    noteMoved(source, to: new, newStored, sourceInode)
    noteMoved(target, to: old, oldStored, targetInode)
  }

  /// The steps on the disk.
  private func exchange(
    _ old: Side, _ source: Found, _ newStored: StoredName, _ new: Side, _ target: Found,
    _ oldStored: StoredName
  ) throws(FileSystemError) {
    let oldDirectory = old.directory.fd.rawValue
    let newDirectory = new.directory.fd.rawValue
    try calling { () throws(Errno) in
      if newStored.entry == target.stored.entry, oldStored.entry == source.stored.entry {
        try Syscalls.rename(
          source.stored.entry, in: oldDirectory, to: newStored.entry, in: newDirectory,
          flags: .exchange)
      } else {
        // A photo and something else, or a name of a sync program's making: two steps.
        try Syscalls.rename(
          source.stored.entry, in: oldDirectory, to: newStored.entry, in: newDirectory,
          flags: .noReplace)
        do throws(Errno) {
          try Syscalls.rename(
            target.stored.entry, in: newDirectory, to: oldStored.entry, in: oldDirectory,
            flags: .noReplace)
        } catch {
          try? Syscalls.rename(
            newStored.entry, in: newDirectory, to: source.stored.entry, in: oldDirectory,
            flags: .noReplace)
          throw error
        }
      }
    }
  }

  private func noteMoved(_ source: Found, _ old: Side, _ new: Side, _ stored: StoredName) {
    let inode = table.find(BackingKey(source.status))
    inode?.remove(old.name, in: old.inode)
    noteMoved(source, to: new, stored, inode)
  }

  private func noteMoved(_ source: Found, to new: Side, _ stored: StoredName, _ inode: Inode?) {
    guard let inode else { return }
    inode.directory?.isFresh.store(true, ordering: .relaxed)
    let link = new.link(stored)
    inode.add(link, isOnlyOne: source.isDirectory || source.status.st_nlink == 1)
    keepCache(of: inode, from: source.status, link, new.directory)
  }
}
