/// One word of the command line: `photovault NAME ...`.
protocol Command {
  static var name: String { get }
  /// One line for the list of commands.
  static var summary: String { get }
  /// What stands behind the name, such as "USER [MOUNTPOINT]".
  static var usage: String { get }
  /// Without `--home` and `--help`, which every command has.
  static var options: [OptionSpec] { get }
  /// Lines below the options of `--help`, where options don't say it all.
  static var notes: String { get }
  /// False where accounts don't matter; `--home` is taken there, but not shown.
  static var usesHome: Bool { get }
  /// True where arguments may be paths that aren't UTF-8. Elsewhere such an argument is refused.
  static var takesRawPaths: Bool { get }

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode
}

extension Command {
  static var options: [OptionSpec] { [] }
  static var notes: String { "" }
  static var usesHome: Bool { true }
  static var takesRawPaths: Bool { false }
}

enum Commands {
  /// In the order of `--help`.
  static var all: [any Command.Type] {
    [
      Create.self,
      Mount.self,
      UnmountCommand.self,
      Lock.self,
      Status.self,
      ListAccounts.self,
      ChangePassword.self,
      ShowRecoveryKey.self,
      Recover.self,
      Remove.self,
      Check.self,
      Import.self,
      Export.self,
      Encrypt.self,
      Decrypt.self,
      Doctor.self,
    ]
  }

  static func named(_ name: String) -> (any Command.Type)? { all.first { $0.name == name } }
}

/// One option. A name of one letter is written with one dash.
struct OptionSpec: Sendable {
  let name: String
  let takesValue: Bool
  /// What `--help` calls the value.
  let valueName: String
  let help: String

  /// A flag.
  init(_ name: String, help: String) {
    self.name = name
    takesValue = false
    valueName = ""
    self.help = help
  }

  /// An option with a value.
  init(_ name: String, value: String, help: String) {
    self.name = name
    takesValue = true
    valueName = value
    self.help = help
  }

  var spelling: String { name.utf8.count == 1 ? "-\(name)" : "--\(name)" }

  static let home = OptionSpec(
    "home", value: "DIR", help: "where accounts and vaults are kept")
  static let help = OptionSpec("help", help: "print this text")

  /// The three ways to hand over a secret: `--NAME-file`, `--NAME-fd`, `--NAME-command`.
  static func secret(_ name: String, _ what: String) -> [OptionSpec] {
    [
      OptionSpec("\(name)-file", value: "F", help: "read \(what) from a file"),
      OptionSpec("\(name)-fd", value: "N", help: "... from an open file descriptor"),
      OptionSpec("\(name)-command", value: "CMD", help: "... from what a shell command prints"),
    ]
  }
}
