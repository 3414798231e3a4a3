import Glibc
package import Platform
import SecuredData

/// An unlocked vault. Its keys go and its lock is given back with the last directory in use.
package final class Vault: Sendable {
  package let root: VaultDirectory
  package let keys: VaultKeys
  package let names: NamesMode
  package let id: [UInt8]
  package let isReadOnly: Bool
  package let path: String

  private init(
    root: VaultDirectory, context: VaultContext, id: [UInt8], path: String
  ) {
    self.root = root
    self.id = id
    self.path = path
    keys = context.keys
    names = context.names
    isReadOnly = context.isReadOnly
  }

  /// Throws `.wrongRecoveryKey` when `vault.json` was not written with this key or was altered, and
  /// `.alreadyOpen` while another writes to the vault. A read-only vault takes no lock and changes
  /// nothing on the disk.
  package static func open(
    at path: String, password: borrowing SecretBytes, readOnly: Bool
  ) throws(StorageError) -> Vault {
    try open(at: path, readOnly: readOnly) { superblock throws(StorageError) in
      try VaultKeys(password: password, salts: superblock.salts, vaultID: superblock.id)
    }
  }

  static func open(
    at path: String, readOnly: Bool,
    deriving derive: (Superblock) throws(StorageError) -> VaultKeys
  ) throws(StorageError) -> Vault {
    let directory = try openDirectory(path)
    let number = directory.rawValue
    let file = try openSuperblock(in: number, readOnly: readOnly)
    if !readOnly { try lock(file) }
    let superblock = try read(file)
    let keys = try derive(superblock)
    guard try superblock.isGenuine(keys) else { throw .wrongRecoveryKey }
    let context = VaultContext(
      keys: keys, names: superblock.names, isReadOnly: readOnly, superblock: file)
    let rootID = try DirectoryID.identify(directory, context: context)
    let root = try VaultDirectory(fd: directory, id: rootID, isRoot: true, context: context)
    return Vault(root: root, context: context, id: superblock.id, path: path)
  }

  /// What `vault.json` says before any key is known; nothing of it is authenticated.
  package static func superblock(at path: String) throws(StorageError) -> Superblock {
    let directory = try openDirectory(path)
    return try read(openSuperblock(in: directory.rawValue, readOnly: true))
  }

  static func openDirectory(_ path: String) throws(StorageError) -> FileDescriptor {
    do throws(Errno) {
      return try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
    } catch {
      switch error {
      case .noSuchEntry, .notADirectory: throw .notAVault("there is no such directory")
      default: throw .system(error)
      }
    }
  }

  static func openSuperblock(
    in directory: CInt, readOnly: Bool
  ) throws(StorageError) -> FileDescriptor {
    do throws(Errno) {
      return try SmallFile.open(
        BlobName.superblock, in: directory, flags: readOnly ? O_RDONLY : O_RDWR)
    } catch {
      switch error {
      case .noSuchEntry, .tooManySymbolicLinks, .isADirectory, .noSeekTarget:
        throw .notAVault("there is no file vault.json")
      default: throw .system(error)
      }
    }
  }

  static func lock(_ file: borrowing FileDescriptor) throws(StorageError) {
    let number = file.rawValue
    do throws(Errno) { try Syscalls.lockWholeFile(number) } catch {
      if error == .wouldBlock || error == .permissionDenied { throw .alreadyOpen }
      throw .system(error)
    }
  }

  static func read(
    _ file: borrowing FileDescriptor
  ) throws(StorageError) -> Superblock {
    let text: [UInt8]?
    do throws(Errno) {
      text = try SmallFile.read(file, atMost: Superblock.largestByteCount)
    } catch { throw .system(error) }
    guard let text else { throw .notAVault("vault.json is no file or is too large") }
    return try Superblock(parsing: text)
  }
}
