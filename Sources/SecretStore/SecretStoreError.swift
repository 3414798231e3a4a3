package import Platform
package import SecuredData

/// What a secret store answers: the keychain's errors, with its numbers.
package enum SecretStoreError: Error, Sendable {
  /// There is an item of this name.
  case duplicateItem
  case itemNotFound
  /// Somebody was asked and said no.
  case userCancelled
  /// A wrong password, or an altered item: they can't be told apart.
  case authenticationFailed
  /// The store would have to ask, and nobody is there.
  case interactionNotAllowed
  /// The store doesn't answer, or what it holds is of no use.
  case notAvailable(Reason)

  package enum Reason: Sendable {
    /// The operating system refused; the file or directory is named.
    case system(String, Errno)
    /// An item that no version of this program wrote; what is wrong with it.
    case damaged(String)
    /// An item of a format newer than this program.
    case unsupportedFormat(Int)
    case crypto(CryptoFailure)
    /// The desktop's Secret Service, where it is neither locked (`.interactionNotAllowed`) nor was
    /// left locked by who was asked (`.userCancelled`).
    case keyring(KeyringFailure)
  }

  package enum KeyringFailure: Hashable, Sendable {
    /// libsecret is not there.
    case notInstalled
    case noBus
    /// Nobody on the bus offers the service.
    case noService
    case timedOut
    /// It answers, but has no longer the item of an account that is kept there; the vault's path.
    case missingItem(String)
    /// Another answer, in its own words.
    case refused(String)
  }

  /// Source: Security framework, SecBase.h (errSec...).
  package var code: Int32 {
    switch self {
    case .duplicateItem: -25299
    case .itemNotFound: -25300
    case .userCancelled: -128
    case .authenticationFailed: -25293
    case .interactionNotAllowed: -25308
    case .notAvailable: -25291
    }
  }
}
