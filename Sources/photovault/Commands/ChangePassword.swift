import Platform
import SecretStore

/// Sets another password; no photo is touched.
enum ChangePassword: Command {
  static let name = "passwd"
  static let summary = "change the password of an account"
  static let usage = "USER"
  static let options =
    OptionSpec.secret("password", "the present password")
    + OptionSpec.secret("new-password", "the new password")
  static let notes = """
    No photo is encrypted anew: the recovery key stays. A password that the
    desktop's keyring remembers is replaced, too.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    let home = try Home(arguments)
    let account = try Accounts.lookUp(user, home: home)
    let password = try PasswordSource.password(arguments, prompt: "password for \(user)")
    // Checked before the new one is asked for.
    let unlocked = try Accounts.unlock(account, password: password)
    let newPassword = try PasswordSource.newPassword(
      arguments, prompt: "new password for \(user)", option: "new-password")
    let changed: Account
    do throws(SecretStoreError) {
      changed = try account.changing(
        secret: unlocked.recoveryKey, toPassword: newPassword)
      guard try Accounts.store(home).update(account, to: changed) else {
        throw SecretStoreError.authenticationFailed
      }
    } catch {
      throw CommandError(user, error)
    }
    DesktopKeyring.passwordChanged(to: newPassword, of: changed, home)
    return .done
  }
}
