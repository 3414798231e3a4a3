package import Glibc
package import Platform
import Synchronization
import VaultStorage

/// Making, linking and removing names.
extension FileSystem {
  /// What a name of a locked directory stands for.
  enum Occupant {
    case nobody
    /// `shadowed`: what the disk still has under the name and the first commit will replace.
    case pending(Inode, shadowed: Found?)
    case stored(Found)
  }

  struct Found {
    let stored: StoredName
    let kind: EntryKind
    let status: stat

    var isDirectory: Bool { status.st_mode & S_IFMT == S_IFDIR }
  }

  func occupant(
    of name: FileName, _ node: DirectoryNode, _ directory: VaultDirectory
  ) throws(FileSystemError) -> Occupant {
    let found = try storing { () throws(StorageError) in try directory.find(name) }
      .map { Found(stored: $0.stored, kind: $0.kind, status: $0.status) }
    if let inode = node.pending.withLock({ $0[name] }) { return .pending(inode, shadowed: found) }
    return found.map { .stored($0) } ?? .nobody
  }

  /// Runs `body` with the directory locked exclusively and the name known to be free.
  private func withFreeName<Result>(
    _ name: FileName, in parent: Inode,
    _ body: (DirectoryNode, VaultDirectory) throws(FileSystemError) -> Result
  ) throws(FileSystemError) -> Result {
    try checkWritable()
    try Self.check(name)
    noteUse()
    try require(.change, of: parent)
    let (node, directory) = try opened(parent)
    return try withExclusive([parent]) { () throws(FileSystemError) in
      guard case .nobody = try occupant(of: name, node, directory) else {
        throw .system(.exists)
      }
      return try body(node, directory)
    }
  }

  // MARK: Make

  /// Regular files are made as an empty photo that is on the disk at once.
  package func makeNode(
    _ name: FileName, in parent: NodeID, mode: mode_t, device: dev_t, caller: Caller
  ) throws(FileSystemError) -> Entry {
    if mode & S_IFMT == S_IFREG || mode & S_IFMT == 0 {
      let (entry, opened) = try create(
        name, in: parent, mode: mode, flags: O_WRONLY | O_EXCL, caller: caller)
      defer { release(opened.handle) }
      do throws(FileSystemError) {
        try synchronize(opened.handle, dataOnly: true, durable: false)
      } catch {
        forget(entry.nodeID, count: 1)
        throw error
      }
      return entry
    }
    let parent = try asked(parent)
    return try withFreeName(name, in: parent) { _, directory throws(FileSystemError) in
      try makeOther(name, in: parent, directory, caller) { stored throws(Errno) in
        let descriptor = directory.fd.rawValue
        do throws(Errno) {
          try Syscalls.makeNode(stored.entry, in: descriptor, mode: mode, device: device)
        } catch {
          // exfat-fuse makes a file where it can't make a fifo, at which the kernel wonders.
          guard error == .inputOutput,
            let made = try? Syscalls.status(of: stored.entry, in: descriptor),
            made.st_mode & S_IFMT == S_IFREG
          else { throw error }
          try? Syscalls.unlink(stored.entry, in: descriptor)
          throw .notPermitted
        }
        try Syscalls.setMode(of: stored.entry, in: descriptor, mode & 0o7777)
      }
    }
  }

  package func makeSymbolicLink(
    _ name: FileName, in parent: NodeID, target: FileName, caller: Caller
  ) throws(FileSystemError) -> Entry {
    let parent = try asked(parent)
    return try withFreeName(name, in: parent) { _, directory throws(FileSystemError) in
      let encoded = try storing { () throws(StorageError) in
        try directory.encodeLinkTarget(target)
      }
      return try makeOther(name, in: parent, directory, caller) { stored throws(Errno) in
        do throws(Errno) {
          try Syscalls.makeSymbolicLink(
            to: encoded, as: stored.entry, in: directory.fd.rawValue)
        } catch {
          // What Linux's own disks without symbolic links say.
          throw error == .noSystemCall ? .notPermitted : error
        }
      }
    }
  }

  private func makeOther(
    _ name: FileName, in parent: Inode, _ directory: VaultDirectory, _ caller: Caller,
    _ make: (StoredName) throws(Errno) -> Void
  ) throws(FileSystemError) -> Entry {
    let stored = try storing { () throws(StorageError) in
      let stored = try directory.storedName(name, kind: .other)
      try directory.prepareForEntries()
      try directory.prepareCompanion(stored, for: name)
      return stored
    }
    do throws(FileSystemError) {
      try calling { () throws(Errno) in
        try make(stored)
        if givesAway, caller.user != geteuid() || caller.group != getegid() {
          try Syscalls.setOwner(
            of: stored.entry, in: directory.fd.rawValue, caller.user,
            try Self.group(of: caller, in: directory))
        }
      }
      let status = try calling { () throws(Errno) in
        try Syscalls.status(of: stored.entry, in: directory.fd.rawValue)
      }
      return try entry(status, Link(parent: parent, name: name, stored: stored), directory)
    } catch {
      directory.removeCompanion(stored)
      throw error
    }
  }

  /// The caller's group, or that of a set-group-id directory. Source: mkdir(2).
  static func group(of caller: Caller, in directory: VaultDirectory) throws(Errno) -> gid_t {
    group(of: caller, in: try Syscalls.status(directory.fd.rawValue))
  }

  static func group(of caller: Caller, in directory: stat) -> gid_t {
    directory.st_mode & S_ISGID != 0 ? directory.st_gid : caller.group
  }

  package func makeDirectory(
    _ name: FileName, in parent: NodeID, mode: mode_t, caller: Caller
  ) throws(FileSystemError) -> Entry {
    let parent = try asked(parent)
    return try withFreeName(name, in: parent) { _, directory throws(FileSystemError) in
      let above = try calling { () throws(Errno) in
        try Syscalls.status(directory.fd.rawValue)
      }
      let inherits = above.st_mode & S_ISGID != 0
      let owner: (uid_t, gid_t)? =
        givesAway ? (caller.user, inherits ? above.st_gid : caller.group) : nil
      let stored = try storing { () throws(StorageError) in
        try directory.makeDirectory(
          name, mode: mode & 0o7777 | (inherits ? S_ISGID : 0), owner: owner)
      }
      let status = try calling { () throws(Errno) in
        try Syscalls.status(of: stored.entry, in: directory.fd.rawValue)
      }
      return try entry(status, Link(parent: parent, name: name, stored: stored), directory)
    }
  }

  /// nil for what has no seal, such as a file of several names.
  static func liftSeal(
    of stored: StoredName, _ name: FileName, _ directory: VaultDirectory, _ status: stat
  ) throws(FileSystemError) -> LiftedSeal? {
    guard status.st_nlink == 1 else { return nil }
    do throws(StorageError) {
      return try LiftedSeal(of: stored, named: name, in: directory)
    } catch { throw .storage(error) }
  }

  /// "link". A new file is committed first: a second name needs something to lead to.
  package func link(
    _ node: NodeID, as name: FileName, in parent: NodeID
  ) throws(FileSystemError) -> Entry {
    try checkWritable()
    try Self.check(name)
    noteUse()
    let inode = try asked(node)
    let parent = try asked(parent)
    try require(.change, of: parent)
    let (parentNode, directory) = try opened(parent)
    if let file = inode.state.withLock({ $0.file }), file.meta.withLock({ $0.pending != nil }) {
      try commit(file, durable: false)
    }
    while true {
      guard let old = inode.state.withLock({ $0.links.first }) else {
        throw .system(.noSuchEntry)
      }
      let (_, oldDirectory) = try opened(old.parent)
      let made: Entry? = try withExclusive([parent, old.parent]) { () throws(FileSystemError) in
        guard inode.state.withLock({ $0.links.contains { $0.isSame(old) } }) else { return nil }
        guard case .nobody = try occupant(of: name, parentNode, directory) else {
          throw .system(.exists)
        }
        let before = try storedStatus(inode, old, oldDirectory)
        let stored = try storing { () throws(StorageError) in
          let stored = try directory.storedName(name, kind: inode.isRegular ? .blob : .other)
          try directory.prepareForEntries()
          try directory.prepareCompanion(stored, for: name)
          return stored
        }
        // With two names it belongs to neither alone.
        var seal: LiftedSeal?
        do throws(FileSystemError) {
          if inode.isRegular {
            seal = try Self.liftSeal(of: old.stored, old.name, oldDirectory, before)
          }
          try calling { () throws(Errno) in
            try Syscalls.link(
              old.stored.entry, in: oldDirectory.fd.rawValue, as: stored.entry,
              in: directory.fd.rawValue)
          }
        } catch {
          directory.removeCompanion(stored)
          seal?.put(named: old.name, in: oldDirectory)
          throw error
        }
        let link = Link(parent: parent, name: name, stored: stored)
        inode.add(link, isOnlyOne: false)
        keepCache(of: inode, from: before, link, directory)
        table.retain(inode)
        return try entry(inode) { () throws(FileSystemError) in
          // It is this file, whatever number the disk gives its new name.
          let status = try calling { () throws(Errno) in
            try Syscalls.status(of: stored.entry, in: directory.fd.rawValue)
          }
          return complete(status, inode, stored, directory)
        }
      }
      if let made { return made }
    }
  }

  package func readSymbolicLink(_ node: NodeID) throws(FileSystemError) -> FileName {
    let inode = try asked(node)
    return try withPlace(of: inode) { place throws(FileSystemError) in
      guard case .stored(let directory, let link) = place, inode.kind == S_IFLNK else {
        throw .system(.invalidArgument)
      }
      let stored = try calling { () throws(Errno) in
        try Syscalls.readSymbolicLink(link.stored.entry, in: directory.fd.rawValue)
      }
      return try storing { () throws(StorageError) in try directory.decodeLinkTarget(stored) }
    }
  }

  // MARK: Remove

  package func unlink(_ name: FileName, in parent: NodeID) throws(FileSystemError) {
    try checkWritable()
    noteUse()
    let parent = try asked(parent)
    try require(.change, of: parent)
    let (node, directory) = try opened(parent)
    try withExclusive([parent]) { () throws(FileSystemError) in
      switch try occupant(of: name, node, directory) {
      case .nobody:
        throw .system(.noSuchEntry)
      case .pending(let inode, let shadowed):
        if let shadowed { try unlinkStored(name, shadowed, parent, directory) }
        dropPending(inode, name, parent, node)
      case .stored(let found):
        if found.isDirectory { throw .system(.isADirectory) }
        try unlinkStored(name, found, parent, directory)
      }
    }
  }

  /// Takes a new file's name away. Its handles go on with it.
  func dropPending(_ inode: Inode, _ name: FileName, _ parent: Inode, _ node: DirectoryNode) {
    node.pending.withLock { $0[name] = nil }
    node.touched.withLock { $0 = .now }
    node.listed.withLock { $0 = nil }
    inode.remove(name, in: parent)
  }

  /// Removes a name from the disk; what has it open goes on with the file. The directory is
  /// locked.
  func unlinkStored(
    _ name: FileName, _ found: Found, _ parent: Inode, _ directory: VaultDirectory
  ) throws(FileSystemError) {
    let inode = table.find(BackingKey(found.status))
    if let inode { keepForHandles(inode, found, directory) }
    try calling { () throws(Errno) in
      try Syscalls.unlink(found.stored.entry, in: directory.fd.rawValue)
    }
    directory.removeCompanion(found.stored)
    if let inode { noteRemoved(inode, name, parent, found) }
  }

  func noteRemoved(_ inode: Inode, _ name: FileName, _ parent: Inode, _ found: Found) {
    inode.remove(name, in: parent)
    guard found.status.st_nlink <= 1 else { return }
    inode.state.withLock { $0.links = [] }
    table.rekey(inode, to: nil)
  }

  /// Before the last name of an open file goes: its attributes live on in memory.
  func keepForHandles(_ inode: Inode, _ found: Found, _ directory: VaultDirectory) {
    guard found.status.st_nlink <= 1, let file = inode.state.withLock({ $0.file }) else { return }
    let shown = complete(found.status, inode, found.stored, directory)
    var pending = OpenFile.Pending(
      mode: shown.st_mode & 0o7777, user: shown.st_uid, group: shown.st_gid,
      accessed: shown.st_atim, modified: shown.st_mtim, changed: .now)
    pending.extendedAttributes =
      (try? storedExtendedAttributes(found.stored.entry, directory)) ?? [:]
    file.meta.withLock { meta in
      meta.pending = pending
      meta.size = Int64(shown.st_size)
    }
  }

  package func removeDirectory(
    _ name: FileName, in parent: NodeID
  ) throws(FileSystemError) {
    try checkWritable()
    noteUse()
    let parent = try asked(parent)
    try require(.change, of: parent)
    let (node, directory) = try opened(parent)
    try withExclusive([parent]) { () throws(FileSystemError) in
      switch try occupant(of: name, node, directory) {
      case .nobody: throw .system(.noSuchEntry)
      case .pending: throw .system(.notADirectory)
      case .stored(let found):
        guard found.isDirectory else { throw .system(.notADirectory) }
        try removeStoredDirectory(name, found, parent, directory)
      }
    }
  }

  func removeStoredDirectory(
    _ name: FileName, _ found: Found, _ parent: Inode, _ directory: VaultDirectory
  ) throws(FileSystemError) {
    let inode = table.find(BackingKey(found.status))
    if let pending = inode?.directory?.pending.withLock({ $0.count }), pending > 0 {
      throw .system(.directoryNotEmpty)
    }
    // Its attributes live on in the open directory, for who has it open or works in it.
    let kept: VaultDirectory? = if let inode { try opened(inode).1 } else { nil }
    try storing { () throws(StorageError) in try directory.removeDirectory(found.stored) }
    if let inode {
      inode.remove(name, in: parent)
      if let kept { inode.directory?.keep(kept) }
      table.rekey(inode, to: nil)
    }
  }
}
