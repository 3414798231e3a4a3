package import Platform
package import SecuredData

/// What can go wrong between the vault's directory and who uses it.
package enum StorageError: Error, Sendable {
  /// The disk below refused.
  case system(Errno)
  /// A blob that can't be read, and why.
  case blob(SecuredDataError)
  case crypto(CryptoFailure)
  /// No `vault.json`, or one that doesn't parse; what is missing or wrong.
  case notAVault(String)
  case unsupportedFormat(Int)
  /// `vault.json` was not made with this recovery key, or was altered.
  case wrongRecoveryKey
  /// Another process has this vault open for writing.
  case alreadyOpen
  /// A directory without a readable `directory.id`: the names in it can't be told.
  case damagedDirectory
  /// A symbolic link's target or an extended attribute that was not made with this vault's keys.
  case damagedMetadata
}
