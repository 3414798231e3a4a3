import Platform
import SecuredData

/// Makes one RNCryptor message, without a vault.
enum Encrypt: Command {
  static let name = "encrypt"
  static let summary = "encrypt one file with any password, without a vault"
  static let usage = "FILE"
  static let options = MessageCommand.options + OptionSpec.secret("password", "the password")
  static let notes = """
    OUT is FILE.securedData where -o is missing. "-" is standard input or output.
    Any RNCryptor program opens the result with the password.
    """
  static let usesHome = false
  static let takesRawPaths = true

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let paths = try MessageCommand.paths(arguments, of: self) { input in
      FileName(input.bytes + Array(MessageCommand.suffix.utf8))
    }
    let input = try InputFile.open(paths.input)
    let replaces = arguments.has("force")
    try OutputFile.check(paths.output, replaces: replaces, input: input)
    let password = try PasswordSource.newPassword(
      arguments, prompt: "new password for \(input.name)",
      standardInputIsTaken: paths.input == MessageCommand.stream)
    let output = try OutputFile.open(
      paths.output, replaces: replaces, input: input, isPlaintext: false)
    let encryptor: Encryptor
    do throws(SecuredDataError) {
      encryptor = try Encryptor(password: password)
    } catch { throw CommandError(message: input.name, error) }
    var ciphertext: [UInt8] = []
    try input.read { plaintext throws(CommandError) in
      do throws(SecuredDataError) {
        try encryptor.update(plaintext, appendingTo: &ciphertext)
      } catch { throw CommandError(message: input.name, error) }
      try write(&ciphertext, to: output)
    }
    do throws(SecuredDataError) {
      try encryptor.finish(appendingTo: &ciphertext)
    } catch { throw CommandError(message: input.name, error) }
    try write(&ciphertext, to: output)
    try output.commit(like: input)
    return .done
  }

  private static func write(
    _ bytes: inout [UInt8], to output: any Output
  ) throws(CommandError) {
    try bytes.withUnsafeBufferPointer { bytes throws(CommandError) in
      try output.write(UnsafeRawBufferPointer(bytes))
    }
    bytes.removeAll(keepingCapacity: true)
  }
}

extension Encryptor {
  /// Under fresh salts.
  fileprivate convenience init(
    password: borrowing SecretBytes
  ) throws(SecuredDataError) {
    let salts: Salts
    do throws(CryptoFailure) { salts = try Salts.random() } catch { throw .crypto(error) }
    let keys = try KeyDerivation.keys(password: password, salts: salts)
    try self.init(keys: keys, mode: .password(salts))
  }
}
