import Glibc
package import Platform
import Synchronization
import VaultStorage

/// User attributes, names and values encrypted. Other name spaces don't exist here.
extension FileSystem {
  package func extendedAttribute(
    _ node: NodeID, _ name: FileName
  ) throws(FileSystemError) -> [UInt8] {
    try Self.checkNameSpace(name)
    let inode = try asked(node)
    try require(.read, of: inode)
    return try withPlace(of: inode) { place throws(FileSystemError) in
      if let file = Self.memory(place) {
        guard let value = file.meta.withLock({ $0.pending?.extendedAttributes[name] }) else {
          throw .system(.noAttribute)
        }
        return value
      }
      let stored = try storing { () throws(StorageError) in
        try extendedAttributes.storedName(name)
      }
      let value = try withDescriptor(place, inode) { descriptor throws(FileSystemError) in
        try calling { () throws(Errno) in
          try Syscalls.extendedAttribute(descriptor, stored)
        }
      }
      return try storing { () throws(StorageError) in
        try extendedAttributes.decode(stored: value, name: name)
      }
    }
  }

  package func extendedAttributeNames(_ node: NodeID) throws(FileSystemError) -> [FileName] {
    let inode = try asked(node)
    return try withPlace(of: inode) { place throws(FileSystemError) in
      if let file = Self.memory(place) {
        return file.meta.withLock { Array(($0.pending?.extendedAttributes ?? [:]).keys) }
      }
      let stored: [FileName]
      do throws(FileSystemError) {
        stored = try withDescriptor(place, inode) { descriptor throws(FileSystemError) in
          try calling { () throws(Errno) in try Syscalls.extendedAttributeNames(descriptor) }
        }
      } catch {
        // Links and fifos hold none; some disks hold none at all.
        guard error.errno == .notSupported else { throw error }
        return []
      }
      return stored.compactMap { name in
        try? storing { () throws(StorageError) in try extendedAttributes.name(stored: name) }
      }
    }
  }

  /// `flags`: 0, XATTR_CREATE (1: EEXIST if it is there) or XATTR_REPLACE (2: ENODATA if not).
  package func setExtendedAttribute(
    _ node: NodeID, _ name: FileName, _ value: [UInt8], flags: CInt
  ) throws(FileSystemError) {
    try checkWritable()
    try Self.checkNameSpace(name)
    noteUse()
    try changeExtendedAttribute(
      node, name,
      inMemory: { known throws(FileSystemError) in
        if flags == 1, known != nil { throw .system(.exists) }
        if flags == 2, known == nil { throw .system(.noAttribute) }
        known = value
      },
      stored: { descriptor, stored throws(FileSystemError) in
        let encoded = try storing { () throws(StorageError) in
          try extendedAttributes.encode(value: value, name: name)
        }
        try calling { () throws(Errno) in
          try Syscalls.setExtendedAttribute(descriptor, stored, encoded, flags: flags)
        }
      })
  }

  package func removeExtendedAttribute(
    _ node: NodeID, _ name: FileName
  ) throws(FileSystemError) {
    try checkWritable()
    try Self.checkNameSpace(name)
    noteUse()
    try changeExtendedAttribute(
      node, name,
      inMemory: { known throws(FileSystemError) in
        if known == nil { throw .system(.noAttribute) }
        known = nil
      },
      stored: { descriptor, stored throws(FileSystemError) in
        try calling { () throws(Errno) in
          try Syscalls.removeExtendedAttribute(descriptor, stored)
        }
      })
  }

  private func changeExtendedAttribute(
    _ node: NodeID, _ name: FileName,
    inMemory: (inout [UInt8]?) throws(FileSystemError) -> Void,
    stored: (CInt, FileName) throws(FileSystemError) -> Void
  ) throws(FileSystemError) {
    let inode = try asked(node)
    try require(.write, of: inode)
    try withPlace(of: inode) { place throws(FileSystemError) in
      if let file = Self.memory(place) {
        try file.meta.withLock { meta throws(FileSystemError) in
          guard var pending = meta.pending else { throw .system(.stale) }
          try inMemory(&pending.extendedAttributes[name])
          pending.changed = .now
          meta.pending = pending
        }
        return
      }
      let encoded = try storing { () throws(StorageError) in
        try extendedAttributes.storedName(name)
      }
      var before: stat?
      if case .stored(let directory, let link) = place {
        before = try storedStatus(inode, link, directory)
      }
      try withDescriptor(place, inode) { descriptor throws(FileSystemError) in
        try stored(descriptor, encoded)
      }
      if let before, case .stored(let directory, let link) = place {
        keepCache(of: inode, from: before, link, directory)
      }
    }
  }

  /// All attributes of a stored file, decrypted: for a file that is about to lose its name.
  func storedExtendedAttributes(
    _ entry: FileName, _ directory: VaultDirectory
  ) throws(FileSystemError) -> [FileName: [UInt8]] {
    let file = try openStored(entry, in: directory)
    var result: [FileName: [UInt8]] = [:]
    for stored in try calling({ () throws(Errno) in
      try Syscalls.extendedAttributeNames(file.rawValue)
    }) {
      guard
        let name = try storing({ () throws(StorageError) in
          try extendedAttributes.name(stored: stored)
        })
      else { continue }
      let value = try calling { () throws(Errno) in
        try OwnerRights.extendedAttribute(file.rawValue, stored)
      }
      result[name] = try storing { () throws(StorageError) in
        try extendedAttributes.decode(stored: value, name: name)
      }
    }
    return result
  }

  private static func checkNameSpace(_ name: FileName) throws(FileSystemError) {
    guard name.hasPrefix("user."), name.count > 5 else { throw .system(.notSupported) }
  }

  /// The file whose attributes are in memory, if they are.
  private static func memory(_ place: Place) -> OpenFile? {
    switch place {
    case .pending(let file): file
    case .removed(let file?): file.meta.withLock { $0.pending != nil } ? file : nil
    default: nil
    }
  }

  private func withDescriptor<Result>(
    _ place: Place, _ inode: Inode, _ body: (CInt) throws(FileSystemError) -> Result
  ) throws(FileSystemError) -> Result {
    switch place {
    case .root(let directory):
      return try body(directory.fd.rawValue)
    case .stored(let directory, let link):
      let kind = link.stored.entry
      let status = try calling { () throws(Errno) in
        try Syscalls.status(of: kind, in: directory.fd.rawValue)
      }
      guard [S_IFREG, S_IFDIR].contains(status.st_mode & S_IFMT) else {
        throw .system(.notSupported)
      }
      let isReplaced = inode.state.withLock { $0.file != nil && $0.key != BackingKey(status) }
      if isReplaced { throw .system(.stale) }
      let file = try openStored(link.stored.entry, in: directory)
      return try body(file.rawValue)
    case .pending, .removed:
      throw .system(.stale)
    }
  }
}
