import Platform
import SecretStore

/// The password of a mount: one that is given comes first, then one that the keyring remembers, then
/// one that is typed.
enum MountPassword {
  static let options = [
    OptionSpec("remember", help: "keep the password in the desktop's keyring"),
    OptionSpec("forget", help: "remove it from there"),
  ]

  static func check(_ arguments: Arguments) throws(CommandError) {
    if arguments.has("remember"), arguments.has("forget") {
      throw .usage("--remember and --forget exclude each other", Mount.name)
    }
  }

  /// `chosen`: the password of an account that was made just now.
  static func unlock(
    _ account: Account, chosen: consuming SecretBytes?, _ arguments: Arguments, _ home: Home
  ) throws(CommandError) -> UnlockedAccount {
    if arguments.has("forget") { try DesktopKeyring.forget(account.name, home) }
    if let chosen = chosen.take() { return try unlock(account, chosen, arguments, home) }
    if let offered = try PasswordSource.offered(arguments) {
      return try unlock(account, offered, arguments, home)
    }
    do throws(CommandError) {
      if let unlocked = try unlockByRemembered(account, home) { return unlocked }
    } catch {
      guard Terminal.isInteractive else { throw error }
      Terminal.warning(error.message, hint: error.hint)
    }
    let typed = try PasswordSource.password(
      arguments, prompt: "Password for '\(account.name)'")
    return try unlock(account, typed, arguments, home)
  }

  private static func unlock(
    _ account: Account, _ password: borrowing SecretBytes, _ arguments: Arguments, _ home: Home
  ) throws(CommandError) -> UnlockedAccount {
    let unlocked = try Accounts.unlock(account, password: password)
    guard arguments.has("remember") else { return unlocked }
    do throws(CommandError) { try DesktopKeyring.keep(password, for: account, home) } catch {
      // The photos are what matters; the next mount asks.
      Terminal.warning("the password is not remembered: \(error.message)", hint: error.hint)
    }
    return unlocked
  }

  /// nil where none is remembered.
  private static func unlockByRemembered(
    _ account: Account, _ home: Home
  ) throws(CommandError) -> UnlockedAccount? {
    let user = account.name.text
    let password: SecretBytes
    do throws(SecretStoreError) {
      let passwords = DesktopKeyring.passwords(home)
      guard try passwords.holdsOne(for: account.name) else { return nil }
      password = try passwords.lookUp(account)
    } catch {
      if case .itemNotFound = error {
        throw CommandError(
          .storeUnavailable, "the keyring does not hold the password of '\(user)' any more",
          hint: "'photovault mount --remember \(user)' keeps it again, '--forget' ends this")
      }
      throw CommandError(user, error)
    }
    do throws(CommandError) { return try Accounts.unlock(account, password: password) } catch {
      guard error.exitCode == .wrongCredentials else { throw error }
      throw CommandError(
        .wrongCredentials, "invalid username/password combination: the remembered password",
        hint: "'photovault mount --remember \(user)' keeps the right one, '--forget' none")
    }
  }
}
