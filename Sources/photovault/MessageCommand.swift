import Platform

/// What `encrypt` and `decrypt` share.
enum MessageCommand {
  static let suffix = ".securedData"
  static let stream = FileName("-")
  static let options = [
    OptionSpec("o", value: "OUT", help: "the file to write"),
    OptionSpec("force", help: "replace OUT if it exists"),
  ]

  /// FILE and OUT. `derive` makes OUT of FILE where `-o` is missing, or says nil.
  static func paths(
    _ arguments: Arguments, of command: any Command.Type, derive: (FileName) -> FileName?
  ) throws(CommandError) -> (input: FileName, output: FileName) {
    _ = try arguments.positionals(1...1, of: command)
    let input = arguments.rawPositionals[0]
    guard input.count > 0 else { throw .usage("an empty name is no file's", command.name) }
    if let output = arguments.rawValue(of: "o") {
      guard output.count > 0 else { throw .usage("-o needs a name", command.name) }
      return (input, output)
    }
    if input == stream {
      if Terminal.showsOutput {
        throw .usage("bytes would go to the terminal: give -o OUT, or -o -", command.name)
      }
      return (input, stream)
    }
    guard let output = derive(input) else {
      throw .usage("\(input) does not end in \(suffix): give -o OUT", command.name)
    }
    return (input, output)
  }
}
