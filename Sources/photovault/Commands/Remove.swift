import Platform
import SecretStore
import VaultStorage

/// Deletes an account, with or without its photos.
enum Remove: Command {
  static let name = "remove"
  static let summary = "delete an account; its photos only if told so"
  static let usage = "USER"
  static let options = [
    OptionSpec("delete-photos", help: "delete the vault, too"),
    OptionSpec("yes", help: "don't ask"),
  ]
  static let notes = """
    Without --delete-photos the vault stays, and 'photovault recover' brings the
    account back with the recovery key. A password that the desktop's keyring
    remembers goes, too.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    let home = try Home(arguments)
    let accountName = try Accounts.name(user)
    let deletesPhotos = arguments.has("delete-photos")
    if deletesPhotos {
      let path = try Accounts.lookUp(user, home: home).vaultPath
      try confirm(
        arguments, "Delete account '\(user)' and all its photos in \(path), for good?")
      try deletePhotos(try Accounts.lookUp(user, home: home))
    } else {
      guard try exists(accountName, home) else { throw CommandError(user, .itemNotFound) }
      try confirm(
        arguments,
        "Delete account '\(user)'? Only the recovery key opens its photos then. Go on?")
    }
    do throws(SecretStoreError) { try Accounts.store(home).delete(accountName) } catch {
      throw CommandError(user, error)
    }
    DesktopKeyring.accountRemoved(accountName, home)
    return .done
  }

  /// A damaged item exists as well.
  private static func exists(_ name: AccountName, _ home: Home) throws(CommandError) -> Bool {
    do throws(SecretStoreError) { return try Accounts.store(home).kind(of: name) != nil } catch {
      throw CommandError(name.text, error)
    }
  }

  private static func confirm(
    _ arguments: Arguments, _ question: String
  ) throws(CommandError) {
    if arguments.has("yes") { return }
    guard Terminal.isInteractive else {
      throw .usage("remove needs --yes where nobody can be asked", name)
    }
    guard try Terminal.ask(question) else {
      throw CommandError(.failed, "nothing was removed", hint: "only y or yes removes")
    }
  }

  private static func deletePhotos(_ account: Account) throws(CommandError) {
    let path = account.vaultPath
    do throws(StorageError) {
      let kept = try Vault.remove(at: path, id: account.vaultID)
      if kept > 0 {
        Terminal.warning(
          "\(path) stays: \(kept) files in it are not photovault's", hint: "look through them")
      }
    } catch {
      if case .notAVault = error {
        throw CommandError(
          .notAVault, CommandError(vault: path, error).message,
          hint: "without --delete-photos the account alone is removed")
      }
      throw CommandError(vault: path, error)
    }
  }
}
