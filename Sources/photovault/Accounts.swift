import Glibc
import Platform
import SecretStore
import SecuredData
import VaultStorage

/// An account whose password was right.
struct UnlockedAccount: ~Copyable {
  let account: Account
  /// The RNCryptor password of the vault's blobs.
  let recoveryKey: SecretBytes

  /// Opens the account's vault, after a check that it is the account's.
  func openVault(readOnly: Bool) throws(CommandError) -> Vault {
    let path = account.vaultPath
    do throws(StorageError) {
      let vault = try Vault.open(at: path, password: recoveryKey, readOnly: readOnly)
      guard vault.id == account.vaultID else {
        throw StorageError.notAVault("another vault is there")
      }
      return vault
    } catch { throw CommandError(vault: path, error, of: account.name.text) }
  }
}

/// What an account is made of, before it is made.
struct NewAccount {
  let name: AccountName
  let vaultPath: String
  var names = NamesMode.encrypted
  var thisDeviceOnly = false
  var store = StoreKind.file

  /// With the default vault.
  init(user: String, home: Home) throws(CommandError) {
    name = try Accounts.name(user)
    vaultPath = home.defaultVault(user)
  }

  init(name: AccountName, vaultPath: String) {
    self.name = name
    self.vaultPath = vaultPath
  }
}

/// Accounts as the commands see them.
enum Accounts {
  static func store(_ home: Home) -> AccountStores {
    AccountStores(directory: home.accounts, keyring: DesktopKeyring.keyring)
  }

  /// Throws `.usage` for what can't be a user name.
  static func name(_ user: String) throws(CommandError) -> AccountName {
    do throws(AccountName.Invalid) { return try AccountName(user) } catch {
      let reason =
        switch error {
        case .empty: "is empty"
        case .tooLong: "has more than \(AccountName.greatestByteCount) bytes"
        case .slash: "contains '/'"
        case .dots: "is '.' or '..'"
        case .controlCharacter: "contains a control character"
        }
      throw CommandError(.usage, "the user name \(reason)", hint: "choose another one")
    }
  }

  static func lookUp(_ user: String, home: Home) throws(CommandError) -> Account {
    let name = try name(user)
    do throws(SecretStoreError) { return try store(home).lookUp(name) } catch {
      let vault = home.defaultVault(user)
      if case .itemNotFound = error, access(vault + "/vault.json", F_OK) == 0 {
        throw CommandError(
          .noSuchAccount, "no account '\(user)', though its photos are there: \(vault)",
          hint: "put back a backup of \(home.accounts)/\(user).json; or with the recovery key: "
            + "'photovault recover \(user) --vault \(vault)'")
      }
      throw CommandError(user, error)
    }
  }

  /// Checks the password, which takes half a second.
  static func unlock(
    _ user: String, password: borrowing SecretBytes, home: Home
  ) throws(CommandError) -> UnlockedAccount {
    try unlock(try lookUp(user, home: home), password: password)
  }

  static func unlock(
    _ account: Account, password: borrowing SecretBytes
  ) throws(CommandError) -> UnlockedAccount {
    do throws(SecretStoreError) {
      return UnlockedAccount(account: account, recoveryKey: try account.open(password: password))
    } catch {
      if case .authenticationFailed = error {
        throw .wrongCredentials(account.name.text, vault: account.vaultPath)
      }
      throw CommandError(account.name.text, error)
    }
  }

  /// Throws `.accountExists`; the item need not be readable for that.
  static func requireNone(_ name: AccountName, home: Home) throws(CommandError) {
    do throws(SecretStoreError) {
      if try store(home).kind(of: name) != nil { throw SecretStoreError.duplicateItem }
    } catch { throw CommandError(name.text, error) }
  }

  /// Throws where an account can't be added to the Secret Service, before anything is asked for; the
  /// keyring is unlocked then.
  static func prepareSecretService(_ home: Home) throws(CommandError) {
    do throws(SecretStoreError) { try store(home).secretService.prepareToAdd() } catch {
      let error = CommandError("", error)
      let way = "without '--store secret-service' the account is kept in a file"
      throw CommandError(
        error.exitCode, error.message, hint: error.hint.map { "\($0); \(way)" } ?? way)
    }
  }

  /// Makes the vault under a random recovery key, and the account item; on failure neither is
  /// there. On a terminal the recovery key is shown, once.
  static func create(
    _ new: NewAccount, home: Home, password: borrowing SecretBytes
  ) throws(CommandError) {
    let recoveryKey: SecretBytes
    do throws(StorageError) { recoveryKey = try RecoveryKey.generate() } catch {
      throw CommandError(vault: new.vaultPath, error)
    }
    try create(new, home: home, password: password, recoveryKey: recoveryKey)
    guard Terminal.isInteractive else { return }
    try Terminal.show(
      secret: recoveryKey, before: "The recovery key of '\(new.name)', shown this once:",
      after: """
        Write it down and keep it away from this machine. It opens the photos when the password is
        forgotten or the account is lost, here and in any RNCryptor program. Who has it needs no
        password. 'photovault recovery-key \(new.name)' shows it again.
        """)
  }

  /// The same under a given RNCryptor password.
  static func create(
    _ new: NewAccount, home: Home, password: borrowing SecretBytes,
    recoveryKey: borrowing SecretBytes
  ) throws(CommandError) {
    try requireNone(new.name, home: home)
    let path = new.vaultPath
    let vaultID: [UInt8]
    do throws(StorageError) {
      vaultID = try Vault.create(at: path, names: new.names, password: recoveryKey)
    } catch { throw creationFailed(new, error) }
    do throws(SecretStoreError) {
      let account = try Account(
        name: new.name, vaultID: vaultID, vaultPath: path, thisDeviceOnly: new.thisDeviceOnly,
        secret: recoveryKey, password: password)
      try store(home)[new.store].add(account)
    } catch {
      Vault.takeBack(at: path)
      throw CommandError(new.name.text, error)
    }
  }

  private static func creationFailed(_ new: NewAccount, _ error: StorageError) -> CommandError {
    switch error {
    case .system(.exists):
      CommandError(
        .failed, "\(new.vaultPath) is a vault already",
        hint: "'photovault recover \(new.name) --vault DIR' makes an account for it, "
          + "with its recovery key")
    case .system(.directoryNotEmpty):
      CommandError(
        .failed, "\(new.vaultPath) is not empty",
        hint: "choose an empty or new folder, or give --names plain")
    default:
      CommandError(vault: new.vaultPath, error)
    }
  }
}

extension StoreKind {
  static let help = "where the account is kept: file or secret-service"

  /// nil without `--store`.
  init?(_ arguments: Arguments, _ command: String) throws(CommandError) {
    guard let word = arguments.value(of: "store") else { return nil }
    guard let kind = StoreKind(rawValue: word) else {
      throw .usage("--store is file or secret-service, not '\(word)'", command)
    }
    self = kind
  }
}
