import Glibc
package import Platform
import SecuredData

extension Vault {
  /// Makes the directory (0700, its parents as needed), its id and `vault.json`; on return all is
  /// on the disk. In a plain vault the `*.securedData` files that are there are taken over as they
  /// are. Throws `.system(.exists)` for a directory that is a vault, `.system(.directoryNotEmpty)`
  /// where names are encrypted and something is in it. On failure what was made is removed.
  package static func create(
    at path: String, names: NamesMode, password: borrowing SecretBytes
  ) throws(StorageError) -> [UInt8] {
    let made = try StorageError.onDisk { () throws(Errno) in try DirectoryPath.make(path) }
    do throws(StorageError) {
      let directory = try StorageError.onDisk { () throws(Errno) in
        try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
      }
      try requireRoom(directory.rawValue, names)
      try makePrivate(directory.rawValue)
      let id = try StorageError.inCrypto { () throws(CryptoFailure) in
        try Random.bytes(Superblock.idByteCount)
      }
      let salts = try StorageError.inCrypto { () throws(CryptoFailure) in try Salts.random() }
      let keys = try VaultKeys(password: password, salts: salts, vaultID: id)
      let superblock = try Superblock(id: id, names: names, keys: keys)
      try fill(directory, with: superblock, behind: made)
      return id
    } catch {
      DirectoryPath.remove(made)
      throw error
    }
  }

  /// `vault.json` comes last: with it the directory is a vault.
  private static func fill(
    _ directory: borrowing FileDescriptor, with superblock: Superblock, behind made: [FileName]
  ) throws(StorageError) {
    let number = directory.rawValue
    let temporary = try BlobName.temporary()
    do throws(StorageError) {
      if superblock.names == .encrypted { try DirectoryID.ensure(in: number) }
      try StorageError.onDisk { () throws(Errno) in
        try DirectoryPath.synchronize(made)
        try SmallFile.replace(
          BlobName.superblock, with: superblock.text, in: number, temporary: temporary,
          overwriting: false)
        try Syscalls.synchronize(number)
      }
    } catch {
      // EEXIST: somebody else made a vault here at the same time, and all of this is theirs.
      if case .system(.exists) = error { throw error }
      try? Syscalls.unlink(BlobName.superblock, in: number)
      if superblock.names == .encrypted {
        try? Syscalls.unlink(DirectoryID.fileName, in: number)
      }
      throw error
    }
  }

  private static func requireRoom(_ directory: CInt, _ names: NamesMode) throws(StorageError) {
    let entries = try StorageError.onDisk { () throws(Errno) in try DirectoryEntries.read(directory)
    }
    if entries.contains(where: { $0.name == BlobName.superblock }) { throw .system(.exists) }
    if names == .plain { return }
    // What an interrupted create left doesn't count.
    let holdsNothing = entries.allSatisfy {
      $0.isRegular && ($0.name == DirectoryID.fileName || BlobName.isTemporary($0.name))
    }
    if !holdsNothing { throw .system(.directoryNotEmpty) }
  }

  /// 0700, where the disk knows modes.
  private static func makePrivate(_ directory: CInt) throws(StorageError) {
    do throws(Errno) { try Syscalls.setMode(directory, 0o700) } catch {
      guard error == .notPermitted || error == .notSupported else { throw .system(error) }
      Log.warning("the vault's directory can't be made private on this disk: \(error)")
    }
  }
}
