import Glibc
package import Platform

extension VaultDirectory {
  /// Makes a directory with its id, whole or not at all. Throws `.system(.exists)` when something
  /// shows as `name`. `owner` nil leaves the maker's; a set-group-id bit given by this directory
  /// stays. Not durable before `synchronize`.
  package func makeDirectory(
    _ name: FileName, mode: UInt32, owner: (user: UInt32, group: UInt32)?
  ) throws(StorageError) -> StoredName {
    if context.isReadOnly { throw .system(.readOnly) }
    if try find(name) != nil { throw .system(.exists) }
    let stored = try storedName(name, kind: .other)
    try prepareForEntries()
    try prepareCompanion(stored, for: name)
    let temporary = try temporaryName()
    do throws(StorageError) {
      try StorageError.onDisk { () throws(Errno) in
        try Syscalls.makeDirectory(temporary, in: fd.rawValue, mode: 0o700)
      }
      try fill(temporary, mode: mode, owner: owner)
      try StorageError.onDisk { () throws(Errno) in
        try Syscalls.renameToNewName(temporary, to: stored.entry, in: fd.rawValue)
      }
    } catch {
      LeftoverDirectory.discard(temporary, in: fd.rawValue)
      removeCompanion(stored)
      throw error
    }
    return stored
  }

  private func fill(
    _ temporary: FileName, mode: UInt32, owner: (user: UInt32, group: UInt32)?
  ) throws(StorageError) {
    let id = context.names == .encrypted ? try DirectoryID.random() : nil
    try StorageError.onDisk { () throws(Errno) in
      let directory = try Syscalls.open(
        temporary, in: fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      if let id {
        try SmallFile.write(
          id.bytes, as: DirectoryID.fileName, in: directory.rawValue, durably: false)
      }
      if let owner { try Syscalls.setOwner(directory.rawValue, owner.user, owner.group) }
      let inherited = try Syscalls.status(directory.rawValue).st_mode & mode_t(S_ISGID)
      try Syscalls.setMode(directory.rawValue, mode & 0o7777 | inherited)
    }
  }

  /// Removes an empty directory and its companion. Throws `.system(.directoryNotEmpty)` when there
  /// is anything in it but `directory.id` and leftovers: also a file that doesn't show. On failure
  /// it stands as before.
  package func removeDirectory(_ stored: StoredName) throws(StorageError) {
    if context.isReadOnly { throw .system(.readOnly) }
    let directory = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.open(
        stored.entry, in: fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
    try requireEmpty(directory)
    let temporary = try temporaryName()
    try StorageError.onDisk { () throws(Errno) in
      try Syscalls.renameToNewName(stored.entry, to: temporary, in: fd.rawValue)
    }
    // From here on it is removed, unless another program has put something into it meanwhile.
    do throws(StorageError) { try requireEmpty(directory) } catch {
      do throws(StorageError) {
        try StorageError.onDisk { () throws(Errno) in
          try Syscalls.renameToNewName(temporary, to: stored.entry, in: fd.rawValue)
        }
      } catch let failure {
        Log.error("a directory is left as \(temporary) in the vault: \(failure)")
      }
      throw error
    }
    LeftoverDirectory.empty(directory, mode: context.names)
    do throws(Errno) { try Syscalls.removeDirectory(temporary, in: fd.rawValue) } catch {
      Log.warning("\(temporary) remains in the vault until the next mount: \(error)")
    }
    removeCompanion(stored)
  }

  private func requireEmpty(_ directory: borrowing FileDescriptor) throws(StorageError) {
    let number = directory.rawValue
    let entries = try StorageError.onDisk { () throws(Errno) in try DirectoryEntries.read(number) }
    if !LeftoverDirectory.holdsNothing(entries, mode: context.names) {
      throw .system(.directoryNotEmpty)
    }
  }
}
