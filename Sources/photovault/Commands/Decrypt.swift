import Platform

/// Opens one RNCryptor message, without a vault.
enum Decrypt: Command {
  static let name = "decrypt"
  static let summary = "decrypt one file with its password, without a vault"
  static let usage = "FILE"
  static let options = MessageCommand.options + OptionSpec.secret("password", "the password")
  static let notes = """
    OUT is FILE without its .securedData where -o is missing. "-" is standard
    input or output. The password of a vault's photos is its recovery key. Nothing
    is written before all of FILE is verified.
    """
  static let usesHome = false
  static let takesRawPaths = true

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let paths = try MessageCommand.paths(arguments, of: self) { input in
      guard input.hasSuffix(".securedData") else { return nil }
      let name = input.bytes.dropLast(MessageCommand.suffix.utf8.count)
      return name.isEmpty || name.last == UInt8(ascii: "/") ? nil : FileName(Array(name))
    }
    let input = try InputFile.open(paths.input)
    let replaces = arguments.has("force")
    try OutputFile.check(paths.output, replaces: replaces, input: input)
    let password = try PasswordSource.password(
      arguments, prompt: "password of \(input.name)",
      standardInputIsTaken: paths.input == MessageCommand.stream)
    if input.isRegular, paths.input != MessageCommand.stream {
      try decrypt(input, password, to: paths.output, replaces: replaces)
    } else {
      // Two passes need an input that can be read twice.
      try decrypt(try input.spooled(), password, to: paths.output, replaces: replaces)
    }
    return .done
  }

  private static func decrypt(
    _ input: borrowing InputFile, _ password: borrowing SecretBytes, to path: FileName,
    replaces: Bool
  ) throws(CommandError) {
    func open() throws(CommandError) -> any Output {
      try OutputFile.open(path, replaces: replaces, input: input, isPlaintext: true)
    }
    // Opened with the first verified piece; an empty file has none.
    var opened: (any Output)?
    try MessageFile(input.name, input.descriptor.rawValue).decrypt(
      password: password
    ) { plaintext throws(CommandError) in
      if opened == nil { opened = try open() }
      try opened?.write(plaintext)
    }
    let output: any Output
    if let opened { output = opened } else { output = try open() }
    try output.commit(like: input)
  }
}
