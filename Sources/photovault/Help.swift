/// The texts of `--help`.
enum Help {
  static let version = "0.1.0"

  static var overview: String {
    let all = Commands.all
    let width = all.map { $0.name.count }.max() ?? 0
    let commands = all.map { "  \(pad($0.name, width))  \($0.summary)" }
    return """
      photovault - a folder of photos, ordinary while unlocked, encrypted otherwise

      usage: photovault COMMAND [OPTION...] [ARGUMENT...]

      commands:
      \(commands.joined(separator: "\n"))

      'photovault COMMAND --help' says more about one, --version tells the version.
      """
  }

  static func text(_ command: any Command.Type) -> String {
    let options = command.options + (command.usesHome ? [.home, .help] : [.help])
    let spellings = options.map { option in
      option.takesValue ? "\(option.spelling) \(option.valueName)" : option.spelling
    }
    let width = spellings.map(\.count).max() ?? 0
    let lines = zip(spellings, options).map { "  \(pad($0, width))  \($1.help)" }
    let notes = command.notes.isEmpty ? "" : "\n\n\(command.notes)"
    return """
      photovault \(command.name) - \(command.summary)

      \(usage(command))

      options:
      \(lines.joined(separator: "\n"))\(notes)
      """
  }

  private static func usage(_ command: any Command.Type) -> String {
    let words = ["usage: photovault \(command.name) [OPTION...]", command.usage]
    return words.filter { !$0.isEmpty }.joined(separator: " ")
  }

  static func padLeft(_ text: String, _ width: Int) -> String {
    String(repeating: " ", count: max(0, width - text.count)) + text
  }

  static func pad(_ text: String, _ width: Int) -> String {
    text + String(repeating: " ", count: max(0, width - text.count))
  }
}
