import SecretStore

/// Lists the accounts.
enum ListAccounts: Command {
  static let name = "accounts"
  static let summary = "list the accounts and where their vaults are"
  static let usage = ""
  static let options = [OptionSpec("json", help: "for programs")]

  /// One account as `--json` prints it. Members are never taken away or given another meaning.
  private struct Row: Encodable {
    struct Vault: Encodable {
      /// Lower-case hexadecimal, as in vault.json.
      let id: String
      let path: String
    }

    let account: String
    /// "file" or "secret-service".
    let store: String
    var vault: Vault?
    var thisDeviceOnly: Bool?
    /// Why the item can't be read; the two members above are missing then.
    var error: String?
  }

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    _ = try arguments.positionals(0...0, of: self)
    let stores = Accounts.store(try Home(arguments))
    var exitCode = ExitCode.done
    var rows: [Row] = []
    for name in try names(stores) {
      var kind: StoreKind?
      do throws(SecretStoreError) {
        kind = try stores.kind(of: name)
        rows.append(try row(name, kind ?? .file, stores))
      } catch {
        if case .itemNotFound = error { continue }
        let error = CommandError(name.text, error)
        Terminal.error(error)
        exitCode = error.exitCode
        rows.append(
          Row(
            account: name.text, store: (kind ?? .file).rawValue, error: error.message))
      }
    }
    if arguments.has("json") {
      try Terminal.print(json: rows)
    } else {
      try printTable(rows)
    }
    return exitCode
  }

  private static func names(_ store: any SecretStore) throws(CommandError) -> [AccountName] {
    do throws(SecretStoreError) { return try store.names() } catch {
      throw CommandError("", error)
    }
  }

  /// The Secret Service is not asked: it may be locked, or hang.
  private static func row(
    _ name: AccountName, _ kind: StoreKind, _ stores: AccountStores
  ) throws(SecretStoreError) -> Row {
    switch kind {
    case .file:
      let account = try stores.lookUp(name)
      return Row(
        account: name.text, store: kind.rawValue,
        vault: vault(account.vaultID, account.vaultPath), thisDeviceOnly: account.thisDeviceOnly)
    case .secretService:
      let reference = try stores.secretService.reference(name)
      return Row(
        account: name.text, store: kind.rawValue,
        vault: vault(reference.vaultID, reference.vaultPath), thisDeviceOnly: false)
    }
  }

  private static func vault(_ id: [UInt8], _ path: String) -> Row.Vault {
    let digits = Array("0123456789abcdef")
    let text = id.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return Row.Vault(id: String(text), path: path)
  }

  private static func printTable(_ rows: [Row]) throws(CommandError) {
    let width = rows.map { $0.account.count }.max() ?? 0
    for row in rows {
      let place = row.vault?.path ?? "(damaged)"
      try Terminal.print(Terminal.clean("\(Help.pad(row.account, width))  \(place)"))
    }
  }
}
