import Platform
import SecretStore
import SecuredData
import VaultStorage

/// Why a command ends early: what went wrong, what to do next, and the program's exit code.
/// Here the errors of all layers become sentences; they are lower case and have no final period.
struct CommandError: Error {
  let exitCode: ExitCode
  let message: String
  let hint: String?

  init(_ exitCode: ExitCode, _ message: String, hint: String? = nil) {
    self.exitCode = exitCode
    self.message = message
    self.hint = hint
  }

  /// The operating system's error about `subject`, mostly a path.
  init(_ subject: String, _ error: Errno, hint: String? = nil) {
    self.init(
      .failed, "\(subject): \(Self.sentence(error))", hint: hint ?? Self.hint(error))
  }

  private static func hint(_ error: Errno) -> String {
    switch error {
    case .noSuchEntry, .notADirectory, .isADirectory, .nameTooLong: "check the path"
    case .permissionDenied, .notPermitted: "check the owner and the mode"
    case .noSpace, .quotaExceeded: "nothing was lost; make room and try again"
    case .readOnly: "is the disk mounted read-only?"
    case .badDescriptor: "is that descriptor open in the calling program?"
    case .inputOutput: "does the disk fail? the system log may tell"
    default: "mend that and try again"
    }
  }

  /// The C library begins with a capital.
  static func sentence(_ error: Errno) -> String {
    let text = error.description
    return text.prefix(1).lowercased() + text.dropFirst()
  }
}

/// Runs `body`; what the operating system refuses there is an error about `subject`.
func about<Result: ~Copyable>(
  _ subject: String, hint: String? = nil, _ body: () throws(Errno) -> Result
) throws(CommandError) -> Result {
  do throws(Errno) { return try body() } catch {
    throw CommandError(subject, error, hint: hint)
  }
}

extension CommandError {
  static func wrongCredentials(_ user: String, vault: String = "DIR") -> CommandError {
    CommandError(
      .wrongCredentials, "invalid username/password combination",
      hint: "try again; with the recovery key, 'photovault recover \(user) --vault \(vault)' "
        + "sets a new password")
  }

  static func accountExists(_ user: String) -> CommandError {
    CommandError(
      .accountExists, "account exists: \(user)",
      hint: "'photovault mount \(user)' unlocks it; choose another name for a new one")
  }

  /// A secret store's error about an account.
  init(_ user: String, _ error: SecretStoreError) {
    switch error {
    case .duplicateItem:
      self = .accountExists(user)
    case .itemNotFound:
      self.init(
        .noSuchAccount, "no account '\(user)'",
        hint: "'photovault accounts' lists them, 'photovault create \(user)' makes one")
    case .authenticationFailed:
      self = .wrongCredentials(user)
    case .userCancelled:
      self.init(
        .storeUnavailable, "the keyring is locked, and nobody unlocked it",
        hint: "answer when the desktop asks, or unlock it in the desktop's password manager, and "
          + "try again")
    case .interactionNotAllowed:
      self.init(
        .storeUnavailable, "the keyring is locked",
        hint: "unlock it in the desktop's password manager and try again")
    case .notAvailable(let reason):
      self.init(user, reason)
    }
  }

  private init(_ user: String, _ reason: SecretStoreError.Reason) {
    switch reason {
    case .system(let path, let error):
      let hint =
        error == .permissionDenied || error == .notPermitted
        ? "give this user access to it, or another --home" : "mend that and try again"
      self.init(
        .storeUnavailable, "the secret store is unavailable: \(path): \(Self.sentence(error))",
        hint: hint)
    case .damaged(let what):
      self.init(
        .storeUnavailable, "the account item of '\(user)' is damaged: \(what)",
        hint: "put back a backup of it, or use 'photovault remove \(user)' and then "
          + "'photovault recover \(user) --vault DIR'")
    case .unsupportedFormat(let format):
      self.init(
        .storeUnavailable, "the account item of '\(user)' has the unknown format \(format)",
        hint: "a newer photovault made it: use that one; the photos are as they were")
    case .crypto(let failure):
      self.init(.failed, "\(failure)", hint: "is there enough memory? is OpenSSL complete?")
    case .keyring(let failure):
      self.init(user, failure)
    }
  }

  private init(_ user: String, _ failure: SecretStoreError.KeyringFailure) {
    let unavailable = "the Secret Service is unavailable"
    switch failure {
    case .notInstalled:
      self.init(
        .storeUnavailable, "\(unavailable): libsecret is not installed",
        hint: "install the package libsecret-1-0")
    case .noBus:
      self.init(
        .storeUnavailable, "\(unavailable): there is no session bus",
        hint: "run this in a desktop session, or set DBUS_SESSION_BUS_ADDRESS")
    case .noService:
      self.init(
        .storeUnavailable, "\(unavailable): no program on the session bus offers it",
        hint: "install and start one, such as gnome-keyring, KWallet or KeePassXC")
    case .timedOut:
      self.init(
        .storeUnavailable, "\(unavailable): it does not answer",
        hint: "does it ask something on another screen? else end the program behind it, such as "
          + "gnome-keyring-daemon, and try again")
    case .missingItem(let path):
      self.init(
        .noSuchAccount, "no account '\(user)' in the keyring any more",
        hint: "'photovault recover \(user) --vault \(path)' makes it anew from the recovery key")
    case .refused(let words):
      self.init(
        .storeUnavailable, "the Secret Service refused: \(words)",
        hint: "look at the keyring in the desktop's password manager")
    }
  }

  /// An error about the vault at `path`, of `user` if it is an account's.
  init(vault path: String, _ error: StorageError, of user: String? = nil) {
    switch error {
    case .system(.readOnly) where user != nil:
      self.init(
        "the vault \(path)", .readOnly,
        hint: "'photovault mount --read-only' shows the photos all the same")
    case .system(let error):
      self.init("the vault \(path)", error)
    case .notAVault(let what):
      self.init(
        .notAVault, "not a vault: \(path): \(what)",
        hint: user.map { user in
          "is the disk there that holds it? if it was moved: 'photovault recover \(user) --vault "
            + "DIR' with the key that 'photovault recovery-key \(user)' prints"
        } ?? "is the disk there that holds it? is that the folder with vault.json in it?")
    case .unsupportedFormat(let format):
      self.init(
        .notAVault, "the vault \(path) has the unknown format \(format)",
        hint: "a newer photovault made it: use that one; the photos are as they were")
    case .wrongRecoveryKey:
      self.init(
        .notAVault, "\(path)/vault.json was altered or belongs to another recovery key",
        hint: "put back a backup of that one file")
    case .alreadyOpen:
      self.init(
        .alreadyMounted, "the vault \(path) is unlocked already",
        hint: "'photovault status' shows where, 'photovault unmount' locks it")
    case .damagedMetadata:
      self.init(
        .failed, "the vault \(path) is damaged: a link or an attribute was altered",
        hint: "'photovault check' names it")
    case .damagedDirectory:
      self.init(
        .failed, "the vault \(path) is damaged: its directory.id is missing or altered",
        hint: "'photovault check --repair' puts it right if it can; or put back a backup of it")
    case .blob(let error):
      self.init(message: path, error)
    case .crypto(let failure):
      self.init(.failed, "\(failure)", hint: "is there enough memory? is OpenSSL complete?")
    }
  }

  /// An error about the encrypted file `name`.
  init(message name: String, _ error: SecuredDataError) {
    switch error {
    case .notAuthenticated:
      self.init(
        .wrongCredentials, "\(name): wrong password, or the file was altered",
        hint: "the two cannot be told apart; try the password again, then a backup of the file")
    case .wrongSize(let size):
      self.init(
        .failed, "\(name): no RNCryptor message has \(size) bytes",
        hint: "the file was cut off, or never encrypted")
    case .version4Draft:
      self.init(
        .failed, "\(name): made by a draft of RNCryptor 4, which was never finished",
        hint: "open it with the program that wrote it")
    case .base64Text:
      self.init(
        .failed, "\(name): base64 text", hint: "decode it first: base64 -d <IN >OUT")
    case .plainPicture(let kind):
      self.init(
        .failed, "\(name): a \(kind) file that is not encrypted",
        hint: "it can be used as it is")
    case .unknownVersion, .unknownOptions:
      self.init(
        .failed, "\(name): not an RNCryptor message",
        hint: "versions 1 to 3 can be opened")
    case .wrongMode:
      self.init(
        .failed, "\(name): encrypted with keys, not with a password",
        hint: "open it with the program that wrote it")
    case .crypto(let failure):
      self.init(.failed, "\(name): \(failure)", hint: "is there enough memory?")
    case .outOfMemory:
      self.init(.failed, "\(name): out of memory", hint: "close other programs and try again")
    }
  }
}
