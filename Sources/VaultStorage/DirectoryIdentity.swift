import Platform

extension DirectoryID {
  /// The id of an open directory. A power cut soon after mkdir may leave one whose `directory.id`
  /// never reached the disk: while nothing is in it, no name needs the old id and it gets a new
  /// one. Throws `.damagedDirectory` otherwise.
  static func identify(
    _ directory: borrowing FileDescriptor, context: VaultContext
  ) throws(StorageError) -> DirectoryID {
    if context.names == .plain { return .plain }
    let number = directory.rawValue
    let known = try StorageError.onDisk { () throws(Errno) in try read(in: number) }
    if let known { return known }
    let entries = try StorageError.onDisk { () throws(Errno) in try DirectoryEntries.read(number) }
    let isEmpty = entries.allSatisfy { StoredForm($0, mode: .encrypted) == nil }
    guard isEmpty else { throw .damagedDirectory }
    let fresh = try random()
    if !context.isReadOnly { try fresh.write(in: number, overwriting: true) }
    return fresh
  }

  /// Gives an empty directory an id, unless it has one.
  static func ensure(in directory: CInt) throws(StorageError) {
    let known = try StorageError.onDisk { () throws(Errno) in try read(in: directory) }
    if known == nil { try random().write(in: directory, overwriting: true) }
  }

  /// Durable but for the directory entry.
  func write(in directory: CInt, overwriting: Bool) throws(StorageError) {
    let temporary = try BlobName.temporary()
    try StorageError.onDisk { () throws(Errno) in
      try SmallFile.replace(
        Self.fileName, with: bytes, in: directory, temporary: temporary,
        overwriting: overwriting)
    }
  }
}
