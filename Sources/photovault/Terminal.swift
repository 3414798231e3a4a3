import FoundationEssentials
import Glibc
import Platform

/// The only file that prints or asks. Results go to standard output, all else to standard error;
/// questions and secrets for human eyes go to the terminal, whatever the streams are sent to.
enum Terminal {
  /// Whether somebody sits there to be asked.
  static var isInteractive: Bool { isatty(0) == 1 }

  /// Whether what is printed is looked at.
  static var showsOutput: Bool { isatty(1) == 1 }

  /// Whether what goes to standard error is looked at.
  static var showsMessages: Bool { isatty(2) == 1 }

  /// Columns of the terminal behind standard error; 80 where it doesn't say.
  static var width: Int {
    var size = winsize()
    return ioctl(2, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : 80
  }

  /// Puts `line` in the place of the last one; "" takes that away.
  static func show(progress line: String) {
    try? put("\r\u{1B}[K\(line)", on: 2)  // EL of ECMA-48: erase to the end of the line
  }

  static func print(_ text: String) throws(CommandError) {
    do throws(Errno) { try put(text + "\n", on: 1) } catch {
      throw CommandError("standard output", error)
    }
  }

  /// One line of JSON, its members sorted.
  static func print(json value: some Encodable) throws(CommandError) {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(value) else {
      throw CommandError(.failed, "the result can't be written as JSON", hint: "leave --json out")
    }
    try print(String(decoding: data, as: UTF8.self))
  }

  /// A secret and a line break to standard output, for the command whose purpose that is.
  static func print(secret: borrowing SecretBytes) throws(CommandError) {
    try put(secret, on: 1, "standard output")
  }

  static func error(_ error: CommandError) {
    line("error", error.message)
    if let hint = error.hint { line("hint", hint) }
  }

  static func warning(_ message: String, hint: String? = nil) {
    line("warning", message)
    if let hint { line("hint", hint) }
  }

  /// What is no error but no result either.
  static func note(_ text: String) {
    try? put(text + "\n", on: 2)
  }

  /// Asks for yes or no; anything but a yes is a no.
  static func ask(_ question: String) throws(CommandError) -> Bool {
    let terminal = try openTerminal()
    return try about("the terminal") { () throws(Errno) in
      try put("\(clean(question)) [y/N] ", on: terminal.rawValue)
      var answer = [UInt8](repeating: 0, count: 256)
      let count: Result<Int, Errno> = answer.withUnsafeMutableBytes { buffer in
        do throws(Errno) {
          return .success(try Syscalls.read(terminal.rawValue, into: buffer))
        } catch { return .failure(error) }
      }
      let word = String(decoding: answer[..<(try count.get())], as: UTF8.self).lowercased()
      return ["y\n", "yes\n"].contains(word)
    }
  }

  /// Shows a secret on the terminal itself, so that no redirection keeps it.
  static func show(
    secret: borrowing SecretBytes, before: String, after: String
  ) throws(CommandError) {
    let terminal = try openTerminal()
    try about("the terminal") { () throws(Errno) in
      try put("\(before)\n\n  ", on: terminal.rawValue)
    }
    try put(secret, on: terminal.rawValue, "the terminal")
    try about("the terminal") { () throws(Errno) in
      try put("\n\(after)\n", on: terminal.rawValue)
    }
  }

  /// Asks for a secret without echo. The terminal is as before when this returns, throws, or a
  /// signal ends or stops the program meanwhile.
  static func askSecret(_ question: String) throws(CommandError) -> SecretBytes {
    let terminal = try openTerminal()
    let secret = try about("the terminal") { () throws(Errno) in
      try SilentTerminal(terminal.rawValue).ask("\(clean(question)): ")
    }
    guard let secret else {
      throw CommandError(.failed, "nothing was typed", hint: "try again")
    }
    return secret
  }

  private static func openTerminal() throws(CommandError) -> FileDescriptor {
    do throws(Errno) {
      return try Syscalls.open(FileName("/dev/tty"), flags: O_RDWR | O_NOCTTY)
    } catch {
      throw CommandError(
        .failed, "no terminal to ask on: \(error)",
        hint: "give secrets by file, descriptor, command or standard input")
    }
  }

  private static func line(_ kind: String, _ message: String) {
    // Nobody is left to be told when this fails.
    try? put("photovault: \(kind): \(clean(message))\n", on: 2)
  }

  /// A name may hold a line break or an escape sequence: neither reaches the terminal.
  static func clean(_ text: String) -> String {
    String(
      text.unicodeScalars.map { scalar in
        scalar.value < 32 || (127..<160).contains(scalar.value) ? "?" : Character(scalar)
      })
  }

  private static func put(
    _ secret: borrowing SecretBytes, on fd: CInt, _ what: String
  ) throws(CommandError) {
    do throws(Errno) {
      try secret.withUnsafeBytes { bytes throws(Errno) in try Syscalls.write(fd, bytes) }
      try put("\n", on: fd)
    } catch { throw CommandError(what, error) }
  }

  fileprivate static func put(_ text: String, on fd: CInt) throws(Errno) {
    let bytes = Array(text.utf8)
    let result: Result<Void, Errno> = bytes.withUnsafeBytes { bytes in
      do throws(Errno) { return .success(try Syscalls.write(fd, bytes)) } catch {
        return .failure(error)
      }
    }
    try result.get()
  }
}

/// A terminal that shows nothing of what is typed, for one line.
private struct SilentTerminal {
  private static let lineByteCount = 4096  // N_TTY_BUF_SIZE: no terminal hands out longer lines

  let fd: CInt

  init(_ fd: CInt) { self.fd = fd }

  /// nil at the end of input, before anything was typed.
  func ask(_ question: String) throws(Errno) -> SecretBytes? {
    var secret = try SecretBytes(count: Self.lineByteCount)
    let signals = try HeldSignals()
    while true {
      var former = termios()
      if tcgetattr(fd, &former) != 0 { throw .current }
      let count = try readLine(question, former, signals, into: &secret)
      if let count {
        guard count >= 0 else { return nil }
        secret.truncate(to: count)
        return secret
      }
      signals.deliver()
    }
  }

  /// The bytes of the line; -1 at the end of input; nil when a signal waits.
  private func readLine(
    _ question: String, _ former: termios, _ signals: borrowing HeldSignals,
    into secret: inout SecretBytes
  ) throws(Errno) -> Int? {
    var silent = former
    silent.c_lflag &= ~tcflag_t(ECHO)
    silent.c_lflag |= tcflag_t(ECHONL | ICANON)
    // Without TCSAFLUSH: what was typed ahead counts.
    if tcsetattr(fd, TCSADRAIN, &silent) != 0 { throw .current }
    defer {
      var former = former
      tcsetattr(fd, TCSADRAIN, &former)
    }
    try Terminal.put(question, on: fd)
    var done = 0
    while try signals.waitForInput(fd) {
      let count = try secret.withUnsafeMutableBytes { buffer throws(Errno) in
        try Syscalls.read(fd, into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]))
      }
      if count == 0 { return done == 0 ? -1 : done }
      done += count
      if secret.withUnsafeBytes({ $0[done - 1] == 10 }) { return done - 1 }
      if done == Self.lineByteCount { throw .nameTooLong }
    }
    return nil
  }
}
