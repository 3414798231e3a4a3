import Platform
import SecretStore
import VaultStorage

/// Makes the account item anew from the recovery key.
enum Recover: Command {
  static let name = "recover"
  static let summary = "make the account anew from the recovery key"
  static let usage = "USER --vault DIR"
  static let options =
    [
      OptionSpec("vault", value: "DIR", help: "the vault that the recovery key opens"),
      OptionSpec("store", value: "STORE", help: StoreKind.help),
    ] + OptionSpec.secret("recovery-key", "the recovery key")
    + OptionSpec.secret("new-password", "the new password")
  static let notes = """
    An account of that name is replaced if it is the same vault's: so a forgotten
    password is replaced, too.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    guard let vault = arguments.value(of: "vault"), !vault.isEmpty else {
      throw .usage("recover needs --vault DIR", name)
    }
    let path = try Home.absolute(vault)
    let home = try Home(arguments)
    let accountName = try Accounts.name(user)
    let store = try place(accountName, arguments, home)
    let superblock: Superblock
    do throws(StorageError) { superblock = try Vault.superblock(at: path) } catch {
      throw CommandError(vault: path, error)
    }
    let former = try formerAccount(accountName, home, vaultID: superblock.id)
    if store == .secretService { try Accounts.prepareSecretService(home) }

    let recoveryKey = try recoveryKey(arguments, superblock, path)
    let password = try PasswordSource.newPassword(
      arguments, prompt: "new password for \(user)", option: "new-password")
    let account: Account
    do throws(SecretStoreError) {
      account = try Account(
        name: accountName, vaultID: superblock.id, vaultPath: path,
        thisDeviceOnly: former?.thisDeviceOnly ?? false, secret: recoveryKey, password: password)
      let stores = Accounts.store(home)
      if let former {
        guard try stores.update(former, to: account) else { throw SecretStoreError.duplicateItem }
      } else {
        try stores[store].add(account)
      }
    } catch {
      throw CommandError(user, error)
    }
    DesktopKeyring.passwordChanged(to: password, of: account, home)
    return .done
  }

  /// Where the account is, else where it shall be. Throws `.accountExists` if these differ.
  private static func place(
    _ name: AccountName, _ arguments: Arguments, _ home: Home
  ) throws(CommandError) -> StoreKind {
    let wanted = try StoreKind(arguments, self.name)
    let present: StoreKind?
    do throws(SecretStoreError) { present = try Accounts.store(home).kind(of: name) } catch {
      throw CommandError(name.text, error)
    }
    guard let wanted, let present, wanted != present else { return wanted ?? present ?? .file }
    throw CommandError(
      .accountExists, "account exists: \(name), in the store '\(present.rawValue)'",
      hint: "leave --store out to replace it there, or use 'photovault remove \(name)' first")
  }

  /// The account to be replaced. Throws `.accountExists` for one of another vault.
  private static func formerAccount(
    _ name: AccountName, _ home: Home, vaultID: [UInt8]
  ) throws(CommandError) -> Account? {
    do throws(SecretStoreError) {
      let former = try Accounts.store(home).lookUp(name)
      guard former.vaultID == vaultID else { throw SecretStoreError.duplicateItem }
      return former
    } catch {
      switch error {
      // One that the keyring lost: `add` sees whether it was this vault's.
      case .itemNotFound, .notAvailable(.keyring(.missingItem)): return nil
      default: throw CommandError(name.text, error)
      }
    }
  }

  /// The key as it was shown, however it was typed; else, for a vault with a given RNCryptor
  /// password, just that.
  private static func recoveryKey(
    _ arguments: Arguments, _ superblock: Superblock, _ path: String
  ) throws(CommandError) -> SecretBytes {
    let typed = try PasswordSource.password(
      arguments, prompt: "recovery key of \(path)", option: "recovery-key")
    do throws(StorageError) {
      if let key = try RecoveryKey.normalise(typed), try opens(superblock, key) { return key }
      if try opens(superblock, typed) { return typed }
    } catch { throw CommandError(vault: path, error) }
    throw CommandError(
      .wrongCredentials, "this recovery key does not open the vault \(path)",
      hint: "compare it with what was written down; or was vault.json altered?")
  }

  private static func opens(
    _ superblock: Superblock, _ key: borrowing SecretBytes
  ) throws(StorageError) -> Bool {
    try superblock.isGenuine(
      try VaultKeys(password: key, salts: superblock.salts, vaultID: superblock.id))
  }
}
