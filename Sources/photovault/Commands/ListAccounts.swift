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
    var store = "file"
    var vault: Vault?
    var thisDeviceOnly: Bool?
    /// Why the item can't be read; the two members above are missing then.
    var error: String?
  }

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    _ = try arguments.positionals(0...0, of: self)
    let store = Accounts.store(try Home(arguments))
    var exitCode = ExitCode.done
    var rows: [Row] = []
    for name in try names(store) {
      do throws(SecretStoreError) {
        rows.append(row(try store.lookUp(name)))
      } catch {
        if case .itemNotFound = error { continue }
        let error = CommandError(name.text, error)
        Terminal.error(error)
        exitCode = error.exitCode
        rows.append(Row(account: name.text, error: error.message))
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

  private static func row(_ account: Account) -> Row {
    let digits = Array("0123456789abcdef")
    let id = account.vaultID.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
    return Row(
      account: account.name.text, vault: Row.Vault(id: String(id), path: account.vaultPath),
      thisDeviceOnly: account.thisDeviceOnly)
  }

  private static func printTable(_ rows: [Row]) throws(CommandError) {
    let width = rows.map { $0.account.count }.max() ?? 0
    for row in rows {
      let place = row.vault?.path ?? "(damaged)"
      try Terminal.print(Terminal.clean("\(Help.pad(row.account, width))  \(place)"))
    }
  }
}
