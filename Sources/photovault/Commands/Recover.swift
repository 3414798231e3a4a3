import Platform
import SecretStore
import VaultStorage

/// Makes the account item anew from the recovery key.
enum Recover: Command {
  static let name = "recover"
  static let summary = "make the account anew from the recovery key"
  static let usage = "USER --vault DIR"
  static let options =
    [OptionSpec("vault", value: "DIR", help: "the vault that the recovery key opens")]
    + OptionSpec.secret("recovery-key", "the recovery key")
    + OptionSpec.secret("new-password", "the new password")
  static let notes = """
    An account of that name is replaced if it is the same vault's: so a forgotten password is
    replaced, too.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    guard let vault = arguments.value(of: "vault"), !vault.isEmpty else {
      throw .usage("recover needs --vault DIR", name)
    }
    let path = try Home.absolute(vault)
    let home = try Home(arguments)
    let accountName = try Accounts.name(user)
    let superblock: Superblock
    do throws(StorageError) { superblock = try Vault.superblock(at: path) } catch {
      throw CommandError(vault: path, error)
    }
    let former = try formerAccount(accountName, home, vaultID: superblock.id)

    let recoveryKey = try recoveryKey(arguments, superblock, path)
    let password = try PasswordSource.newPassword(
      arguments, prompt: "new password for \(user)", option: "new-password")
    do throws(SecretStoreError) {
      let account = try Account(
        name: accountName, vaultID: superblock.id, vaultPath: path,
        thisDeviceOnly: former?.thisDeviceOnly ?? false, secret: recoveryKey, password: password)
      let store = Accounts.store(home)
      guard let former else {
        try store.add(account)
        return .done
      }
      guard try store.update(former, to: account) else { throw SecretStoreError.duplicateItem }
    } catch {
      throw CommandError(user, error)
    }
    return .done
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
      if case .itemNotFound = error { return nil }
      throw CommandError(name.text, error)
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
