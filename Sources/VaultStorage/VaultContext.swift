import Platform

/// What all directories of one opened vault share.
final class VaultContext: Sendable {
  let keys: VaultKeys
  let names: NamesMode
  let isReadOnly: Bool
  /// Whether even a new blob has to be on the disk before it has a name.
  let isFar: Bool
  /// Whether leftovers go when a directory is first opened. Not on a read-only vault.
  private let cleans: Bool
  /// Holds the one-mounter lock for as long as any directory is in use.
  private let superblock: FileDescriptor
  private let cleaned = ConditionLock<[FileIdentity: Cleaning]>([:])

  struct FileIdentity: Hashable, Sendable {
    let device: UInt64
    let inode: UInt64
  }

  private enum Cleaning {
    case running
    case done
  }

  init(
    keys: VaultKeys, names: NamesMode, isReadOnly: Bool, cleans: Bool = true,
    superblock: consuming FileDescriptor
  ) {
    self.keys = keys
    self.names = names
    self.isReadOnly = isReadOnly
    self.cleans = cleans && !isReadOnly
    isFar = Syscalls.isFarDisk(superblock.rawValue)
    self.superblock = superblock
  }

  /// Whether another process has the vault open for writing.
  func isLockedElsewhere() throws(StorageError) -> Bool {
    try StorageError.onDisk { () throws(Errno) in
      try Syscalls.isWholeFileLocked(superblock.rawValue)
    }
  }

  /// Runs `clean` for a directory that this mount has not seen yet; whoever else opens it waits,
  /// for what they write there must not be taken for a leftover.
  func cleanOnce(_ directory: FileIdentity, _ clean: () -> Void) {
    if !cleans { return }
    let isFree = { (cleaned: [FileIdentity: Cleaning]) in cleaned[directory] != .running }
    let isOurs = cleaned.withLock(when: isFree) { cleaned in
      if cleaned[directory] != nil { return false }
      cleaned[directory] = .running
      return true
    }
    guard isOurs else { return }
    clean()
    cleaned.withLock { $0[directory] = .done }
  }
}
