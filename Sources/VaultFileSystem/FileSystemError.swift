package import Platform
package import VaultStorage

/// What an operation of the file system answers instead of a result.
package enum FileSystemError: Error, Sendable {
  /// As POSIX has it for this operation.
  case system(Errno)
  case storage(StorageError)

  package init(_ errno: Errno) { self = .system(errno) }

  /// The one mapping to what a program sees.
  package var errno: Errno {
    switch self {
    case .system(let errno), .storage(.system(let errno)): errno
    case .storage(.blob), .storage(.crypto), .storage(.damagedDirectory),
      .storage(.damagedMetadata), .storage(.notAVault), .storage(.unsupportedFormat),
      .storage(.wrongRecoveryKey):
      .inputOutput
    case .storage(.alreadyOpen): .busy
    }
  }
}

/// Runs what the vault does and carries its error.
@inline(__always)
func storing<Result: ~Copyable>(
  _ body: () throws(StorageError) -> Result
) throws(FileSystemError) -> Result {
  do throws(StorageError) { return try body() } catch { throw .storage(error) }
}

/// Runs a system call and carries its error.
@inline(__always)
func calling<Result: ~Copyable>(
  _ body: () throws(Errno) -> Result
) throws(FileSystemError) -> Result {
  do throws(Errno) { return try body() } catch { throw .system(error) }
}
