import Glibc
import Platform
import SecuredData

/// Where a secret comes from: `--X-file`, `--X-fd`, `--X-command`, else a prompt on the terminal,
/// else the next line of standard input. One trailing newline is dropped, nothing else.
enum PasswordSource {
  private static let greatestByteCount = 4096  // as much as a terminal's line

  /// The secret that `option` names ("password", "new-password", "recovery-key" ...).
  /// `standardInputIsTaken`: what comes there is not for us. Throws for an empty secret.
  static func password(
    _ arguments: Arguments, prompt: String, option: String = "password",
    standardInputIsTaken: Bool = false
  ) throws(CommandError) -> SecretBytes {
    if let secret = try given(arguments, option: option) { return secret }
    if Terminal.isInteractive || standardInputIsTaken {
      return try checked(Terminal.askSecret(prompt), option)
    }
    return try checked(standardInputLine(option), option)
  }

  /// The password where an option says where it is, or standard input holds one; nil where somebody
  /// would have to be asked, or standard input is at its end.
  static func offered(_ arguments: Arguments) throws(CommandError) -> SecretBytes? {
    if let secret = try given(arguments, option: "password") { return secret }
    if Terminal.isInteractive { return nil }
    var isAtEnd = false
    let line = try standardInputLine("password", isAtEnd: &isAtEnd)
    if isAtEnd { return nil }
    return try checked(
      line, "password",
      hint: "the first line of standard input is; to use a password that the keyring remembers, "
        + "add '</dev/null'")
  }

  /// The same for a secret that is set now: on a terminal it is typed twice.
  static func newPassword(
    _ arguments: Arguments, prompt: String, option: String = "password",
    standardInputIsTaken: Bool = false
  ) throws(CommandError) -> SecretBytes {
    if let secret = try given(arguments, option: option) { return secret }
    guard Terminal.isInteractive || standardInputIsTaken else {
      return try checked(standardInputLine(option), option)
    }
    let first = try checked(Terminal.askSecret(prompt), option)
    let second = try Terminal.askSecret("\(prompt), again")
    let same = first.withUnsafeBytes { first in
      second.withUnsafeBytes { constantTimeEqual(first, $0) }
    }
    guard same else {
      throw CommandError(
        .failed, "the two are not the same, nothing was changed", hint: "try again")
    }
    return first
  }

  /// The secret if an option says where it is, else nil. Throws for an empty one.
  static func given(
    _ arguments: Arguments, option: String
  ) throws(CommandError) -> SecretBytes? {
    let ways = ["file", "fd", "command"].filter { arguments.has("\(option)-\($0)") }
    guard let way = ways.first else { return nil }
    guard ways.count == 1, let value = arguments.rawValue(of: "\(option)-\(way)") else {
      throw .usage("--\(option)-\(ways[0]) and --\(option)-\(ways[1]) exclude each other")
    }
    switch way {
    case "file": return try checked(fromFile(value, option), option)
    case "fd": return try checked(fromDescriptor(value.description, option), option)
    default: return try checked(fromCommand(value, option), option)
    }
  }

  private static func checked(
    _ secret: consuming SecretBytes, _ option: String, hint: String? = nil
  ) throws(CommandError) -> SecretBytes {
    guard !secret.isEmpty else {
      throw CommandError(
        .usage, "the \(words(option)) is empty", hint: hint ?? "an empty one protects nothing")
    }
    return secret
  }

  private static func words(_ option: String) -> String {
    option.split(separator: "-").joined(separator: " ")
  }

  private static func fromFile(
    _ path: FileName, _ option: String
  ) throws(CommandError) -> SecretBytes {
    let subject = "cannot read the \(words(option)) from \(path)"
    let file = try about(subject) { () throws(Errno) in
      try Syscalls.open(path, flags: O_RDONLY | O_NOCTTY)
    }
    return try wholeInput(file.rawValue, subject)
  }

  private static func fromDescriptor(
    _ number: String, _ option: String
  ) throws(CommandError) -> SecretBytes {
    guard let number = CInt(number), number >= 0 else {
      throw .usage("--\(option)-fd needs the number of an open file descriptor")
    }
    return try wholeInput(number, "cannot read the \(words(option)) from descriptor \(number)")
  }

  private static func fromCommand(
    _ command: FileName, _ option: String
  ) throws(CommandError) -> SecretBytes {
    let subject = "cannot read the \(words(option)) from the given command"
    let shell = try about(subject) { () throws(Errno) in try ShellCommand.start(command) }
    let secret: SecretBytes
    do throws(CommandError) {
      secret = try wholeInput(shell.output.rawValue, subject)
    } catch {
      shell.stop()
      throw error
    }
    let status = try about(subject) { () throws(Errno) in try shell.wait() }
    guard status == 0 else {
      throw CommandError(
        .failed, "\(subject): it ended with status \(status)",
        hint: "run the command by itself to see why")
    }
    return secret
  }

  /// All there is, without one trailing newline.
  private static func wholeInput(
    _ fd: CInt, _ subject: String
  ) throws(CommandError) -> SecretBytes {
    try input(fd, subject, byteCount: greatestByteCount + 2) { _ in false }
  }

  /// One line. Byte by byte, so that the next secret finds the next line.
  private static func standardInputLine(_ option: String) throws(CommandError) -> SecretBytes {
    var isAtEnd = false
    return try standardInputLine(option, isAtEnd: &isAtEnd)
  }

  /// `isAtEnd`: there was nothing, not even an empty line.
  private static func standardInputLine(
    _ option: String, isAtEnd: inout Bool
  ) throws(CommandError) -> SecretBytes {
    var last: UInt8?
    let line = try input(
      0, "cannot read the \(words(option)) from standard input", byteCount: 1
    ) { byte in
      last = byte
      return byte == 10
    }
    isAtEnd = last == nil
    return line
  }

  /// Reads pieces of `byteCount` bytes at most until `isLast` says so of a byte or nothing comes.
  private static func input(
    _ fd: CInt, _ subject: String, byteCount: Int, until isLast: (UInt8) -> Bool
  ) throws(CommandError) -> SecretBytes {
    // Room for the newline, and for one byte too many.
    var secret = try about(subject) { () throws(Errno) in
      try SecretBytes(count: greatestByteCount + 2)
    }
    var done = 0
    while done < secret.count {
      let end = min(done + byteCount, secret.count)
      let count = try about(subject) { () throws(Errno) in
        try secret.withUnsafeMutableBytes { buffer throws(Errno) in
          try Syscalls.read(fd, into: UnsafeMutableRawBufferPointer(rebasing: buffer[done..<end]))
        }
      }
      if count == 0 { break }
      done += count
      if secret.withUnsafeBytes({ isLast($0[done - 1]) }) { break }
    }
    if done > 0, secret.withUnsafeBytes({ $0[done - 1] == 10 }) { done -= 1 }
    guard done <= greatestByteCount else {
      throw CommandError(
        .failed, "\(subject): longer than \(greatestByteCount) bytes",
        hint: "is it the right file or command?")
    }
    secret.truncate(to: done)
    return secret
  }
}
