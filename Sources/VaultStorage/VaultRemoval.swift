import Glibc
import Platform

extension Vault {
  /// Takes back what `create` just made at `path`: blobs that were there before stay.
  package static func takeBack(at path: String) {
    guard let directory = try? openDirectory(path) else { return }
    try? Syscalls.unlink(BlobName.superblock, in: directory.rawValue)
    try? Syscalls.unlink(DirectoryID.fileName, in: directory.rawValue)
  }

  /// Deletes the vault at `path`, which must have this id: its blobs, directories, links and own
  /// files. What photovault doesn't show as a part of it stays; returns how many such entries
  /// there are, 0 when the directory is gone. `vault.json` goes last, so an interrupted removal
  /// can be repeated. Throws `.alreadyOpen` while the vault is unlocked.
  package static func remove(at path: String, id: [UInt8]) throws(StorageError) -> Int {
    let directory = try openDirectory(path)
    let file = try openSuperblock(in: directory.rawValue, readOnly: false)
    try lock(file)
    guard try superblock(at: path).id == id else { throw .notAVault("it is another vault") }
    let kept = try VaultRemoval.empty(directory.rawValue)
    try StorageError.onDisk { () throws(Errno) in
      try VaultRemoval.unlinkIfThere(DirectoryID.fileName, in: directory.rawValue)
      try Syscalls.unlink(BlobName.superblock, in: directory.rawValue)
      try Syscalls.synchronize(directory.rawValue)
      if kept == 0 { try Syscalls.removeDirectory(FileName(path), in: AT_FDCWD) }
    }
    return kept
  }
}

private enum VaultRemoval {
  /// Deletes what is the vault's in a directory; returns how many entries stay that are not.
  /// `directory.id` stays as well: as long as anything is here, it tells names.
  static func empty(_ directory: CInt) throws(StorageError) -> Int {
    let entries = try StorageError.onDisk { () throws(Errno) in
      try DirectoryEntries.read(directory)
    }
    var kept = 0
    for entry in entries {
      if entry.type == UInt8(DT_DIR), entry.name == BlobName.setAside {
        try removeAll(entry.name, in: directory)
      } else if entry.type == UInt8(DT_DIR) {
        kept += try remove(directory: entry.name, in: directory)
      } else if entry.name == DirectoryID.fileName || entry.name == BlobName.superblock {
        continue
      } else if !entry.isRegular || isOurs(entry.name) {
        try StorageError.onDisk { () throws(Errno) in
          try unlinkIfThere(entry.name, in: directory)
        }
      } else {
        kept += 1
      }
    }
    return kept
  }

  private static func isOurs(_ name: FileName) -> Bool {
    name.hasSuffix(".securedData") || BlobName.isTemporary(name)
      || BlobName.hash(ofCompanion: name) != nil
  }

  private static func remove(
    directory name: FileName, in parent: CInt
  ) throws(StorageError) -> Int {
    let child = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.open(name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
    let kept = try empty(child.rawValue)
    if kept > 0 { return kept }
    return try StorageError.onDisk { () throws(Errno) in
      try unlinkIfThere(DirectoryID.fileName, in: child.rawValue)
      do throws(Errno) { try Syscalls.removeDirectory(name, in: parent) } catch {
        // A `vault.json` below the root is not ours.
        if error == .directoryNotEmpty { return 1 }
        throw error
      }
      return 0
    }
  }

  /// What `check --repair` set aside is the vault's to the last file.
  private static func removeAll(_ name: FileName, in parent: CInt) throws(StorageError) {
    let child = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.open(name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
    let number = child.rawValue
    let entries = try StorageError.onDisk { () throws(Errno) in try DirectoryEntries.read(number) }
    for entry in entries {
      if entry.type == UInt8(DT_DIR) {
        try removeAll(entry.name, in: number)
      } else {
        try StorageError.onDisk { () throws(Errno) in try unlinkIfThere(entry.name, in: number) }
      }
    }
    try StorageError.onDisk { () throws(Errno) in try Syscalls.removeDirectory(name, in: parent) }
  }

  static func unlinkIfThere(_ name: FileName, in directory: CInt) throws(Errno) {
    do throws(Errno) { try Syscalls.unlink(name, in: directory) } catch {
      if error != .noSuchEntry { throw error }
    }
  }
}
