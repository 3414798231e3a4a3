import Platform
import SecuredData
import VaultStorage

/// Why one file was not copied.
enum TransferFailure: Error {
  /// The file outside of the vault.
  case outside(Errno)
  /// An encrypted file outside of the vault.
  case message(SecuredDataError)
  case vault(StorageError)
  case crypto(CryptoFailure)
  /// It was written to while it was read.
  case changed
  /// What was read back from the disk isn't what was written.
  case notVerified
  case other(String)

  /// Whether going on makes no sense: the disk is full, or the vault's disk is gone or read-only.
  var isFinal: Bool {
    switch self {
    case .vault(.system(let error)), .outside(let error):
      [.noSpace, .quotaExceeded, .readOnly, .noKey, .notConnected].contains(error)
    default: false
    }
  }

  var sentence: String {
    switch self {
    case .outside(let error): Self.sentence(error)
    case .message(.notAuthenticated): "wrong blob password, or the file was altered"
    case .message(let error): error.description
    case .vault(.system(let error)): "in the vault: \(Self.sentence(error))"
    case .vault(.blob(.notAuthenticated)): "its bytes are not those that were written"
    case .vault(.blob(let error)): error.description
    case .vault(.damagedMetadata): "it can't be decoded"
    case .vault(.damagedDirectory): "its directory.id is missing or damaged"
    case .vault(.crypto(let failure)): failure.description
    case .vault(let error): "in the vault: \(error)"
    case .crypto(let failure): failure.description
    case .changed: "it changed while it was read"
    case .notVerified: "what was read back from the disk is not what was written; the disk may fail"
    case .other(let sentence): sentence
    }
  }

  private static func sentence(_ error: Errno) -> String {
    let text = error.description
    return text.prefix(1).lowercased() + text.dropFirst()
  }

  static func onVault<Result: ~Copyable>(
    _ body: () throws(StorageError) -> Result
  ) throws(TransferFailure) -> Result {
    do throws(StorageError) { return try body() } catch { throw .vault(error) }
  }

  static func onOutside<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(TransferFailure) -> Result {
    do throws(Errno) { return try body() } catch { throw .outside(error) }
  }

  static func inVault<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(TransferFailure) -> Result {
    do throws(Errno) { return try body() } catch { throw .vault(.system(error)) }
  }

  static func inCrypto<Result>(
    _ body: () throws(CryptoFailure) -> Result
  ) throws(TransferFailure) -> Result {
    do throws(CryptoFailure) { return try body() } catch { throw .crypto(error) }
  }
}
