import Platform

/// Prints the recovery key.
enum ShowRecoveryKey: Command {
  static let name = "recovery-key"
  static let summary = "print the recovery key (asks for the password)"
  static let usage = "USER"
  static let options = OptionSpec.secret("password", "the password")
  static let notes = """
    The recovery key is the RNCryptor password of every photo of the vault. Who
    has it needs neither the password nor this program.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    let account = try Accounts.lookUp(user, home: try Home(arguments))
    let password = try PasswordSource.password(arguments, prompt: "password for \(user)")
    try Terminal.print(secret: try Accounts.unlock(account, password: password).recoveryKey)
    return .done
  }
}
