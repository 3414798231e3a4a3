import Platform
import SecretStore
import VaultStorage

/// Makes an account and its vault.
enum Create: Command {
  static let name = "create"
  static let summary = "make an account and its empty vault"
  static let usage = "USER"
  static let options =
    [
      OptionSpec("vault", value: "DIR", help: "where the vault shall be"),
      OptionSpec("names", value: "MODE", help: "file names on the disk: encrypted or plain"),
      OptionSpec("store", value: "STORE", help: StoreKind.help),
      OptionSpec("this-device-only", help: "keep the account out of backups"),
    ] + OptionSpec.secret("password", "the password")
    + OptionSpec.secret("blob-password", "the photos' RNCryptor password")
  static let notes = """
    A folder that holds *.securedData files is taken over with
    --blob-password-file and its like: the photos stay as they are, under plain
    names.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    let home = try Home(arguments)
    var new = try NewAccount(user: user, home: home)
    let store = try store(arguments)
    try Accounts.requireNone(new.name, home: home)
    if let vault = arguments.value(of: "vault") {
      guard !vault.isEmpty else { throw .usage("--vault is empty", name) }
      new = NewAccount(name: new.name, vaultPath: try Home.absolute(vault))
    }
    let takeover = try Takeover(directory: new.vaultPath)
    new.names = try names(arguments, takeover)
    new.thisDeviceOnly = arguments.has("this-device-only")
    new.store = store

    let blobPassword = try PasswordSource.given(arguments, option: "blob-password")
    try takeover.check(blobPassword)
    if store == .secretService { try Accounts.prepareSecretService(home) }
    let password = try PasswordSource.newPassword(arguments, prompt: "new password for \(user)")
    if let blobPassword {
      try Accounts.create(new, home: home, password: password, recoveryKey: blobPassword)
    } else {
      try Accounts.create(new, home: home, password: password)
    }
    if new.thisDeviceOnly {
      Terminal.warning(
        "backups leave this account out: only the recovery key can bring the photos back on "
          + "another machine",
        hint: "keep what 'photovault recovery-key \(user)' prints")
    }
    return .done
  }

  private static func store(_ arguments: Arguments) throws(CommandError) -> StoreKind {
    let store = try StoreKind(arguments, name) ?? .file
    if store == .secretService, arguments.has("this-device-only") {
      throw .usage(
        "--this-device-only needs --store file: what the Secret Service keeps can't be left out "
          + "of backups", name)
    }
    return store
  }

  /// Plain where blobs are to be taken over: their names are.
  private static func names(
    _ arguments: Arguments, _ takeover: Takeover
  ) throws(CommandError) -> NamesMode {
    guard let word = arguments.value(of: "names") else {
      return takeover.holdsBlobs ? .plain : .encrypted
    }
    guard let names = NamesMode(rawValue: word) else {
      throw .usage("--names is encrypted or plain, not '\(word)'", name)
    }
    return names
  }
}
