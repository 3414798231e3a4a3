import Platform

/// What all directories of one opened vault share.
final class VaultContext: Sendable {
  let keys: VaultKeys
  let names: NamesMode
  let isReadOnly: Bool
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
    keys: VaultKeys, names: NamesMode, isReadOnly: Bool, superblock: consuming FileDescriptor
  ) {
    self.keys = keys
    self.names = names
    self.isReadOnly = isReadOnly
    self.superblock = superblock
  }

  /// Runs `clean` for a directory that this mount has not seen yet; whoever else opens it waits,
  /// for what they write there must not be taken for a leftover. Not on a read-only vault.
  func cleanOnce(_ directory: FileIdentity, _ clean: () -> Void) {
    if isReadOnly { return }
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
