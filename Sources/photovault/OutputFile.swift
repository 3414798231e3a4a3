import Glibc
import Platform

/// Where `encrypt` and `decrypt` write.
protocol Output: AnyObject {
  func write(_ bytes: UnsafeRawBufferPointer) throws(CommandError)
  /// Nothing comes any more. A new file takes its name now, with the mode and time of `input`.
  func commit(like input: borrowing InputFile) throws(CommandError)
}

enum OutputFile {
  private enum Kind {
    case standardOutput
    case device
    case newFile
  }

  /// Refuses what `open` would refuse, before anybody is asked for a password.
  static func check(
    _ path: FileName, replaces: Bool, input: borrowing InputFile
  ) throws(CommandError) {
    _ = try kind(of: path, replaces: replaces, input: input)
  }

  /// Standard output for "-"; an existing fifo or character device; else a new file, or with
  /// `replaces` one in the place of an existing one. `input` itself is refused. `isPlaintext`:
  /// nothing of it may stay behind.
  static func open(
    _ path: FileName, replaces: Bool, input: borrowing InputFile, isPlaintext: Bool
  ) throws(CommandError) -> any Output {
    switch try kind(of: path, replaces: replaces, input: input) {
    case .standardOutput:
      let file = try about("standard output") { () throws(Errno) in try Syscalls.duplicate(1) }
      return OutputStream("standard output", file)
    case .device:
      let file = try about("\(path)") { () throws(Errno) in
        try Syscalls.open(path, flags: O_WRONLY | O_NOCTTY)
      }
      return OutputStream("\(path)", file)
    case .newFile:
      return try NewFile(path, replaces: replaces, isPlaintext: isPlaintext)
    }
  }

  private static func kind(
    of path: FileName, replaces: Bool, input: borrowing InputFile
  ) throws(CommandError) -> Kind {
    if path == FileName("-") { return .standardOutput }
    let status: stat
    do throws(Errno) { status = try Syscalls.statusBehindLinks(of: path) } catch {
      if error == .noSuchEntry { return .newFile }
      throw CommandError("\(path)", error)
    }
    let type = status.st_mode & S_IFMT
    if type == mode_t(Glibc.S_IFIFO) || type == mode_t(Glibc.S_IFCHR) { return .device }
    guard type == mode_t(Glibc.S_IFREG) else {
      throw CommandError(
        .failed, "\(path) exists and is no file", hint: "give another name by -o OUT")
    }
    if status.st_dev == input.status.st_dev, status.st_ino == input.status.st_ino {
      throw CommandError(
        .usage, "\(path) is the input, too", hint: "give another name by -o OUT")
    }
    guard replaces else { throw exists(path) }
    return .newFile
  }

  fileprivate static func exists(_ path: FileName) -> CommandError {
    CommandError(
      .failed, "\(path) exists already", hint: "give another name by -o OUT, or --force")
  }
}

private final class OutputStream: Output {
  private let name: String
  private let file: FileDescriptor

  init(_ name: String, _ file: consuming FileDescriptor) {
    self.name = name
    self.file = file
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(CommandError) {
    try about(name) { () throws(Errno) in try Syscalls.write(file.rawValue, bytes) }
  }

  func commit(like input: borrowing InputFile) throws(CommandError) {}
}

/// A file that is there whole or not at all. It has no name before `commit`, so nothing is left
/// of a failure. Where the file system doesn't know that, it has a temporary name; if it holds
/// plaintext, the signals that end a program wait until that is gone.
private final class NewFile: Output {
  private let path: FileName
  private let name: FileName
  private let replaces: Bool
  private let directory: FileDescriptor
  private let file: FileDescriptor
  /// Where a file without a name can't take that of another at once.
  private let temporaryName: FileName
  /// Whether the file has it now.
  private var isTemporary = false
  private var signals: HeldSignals?

  init(_ path: FileName, replaces: Bool, isPlaintext: Bool) throws(CommandError) {
    self.path = path
    self.replaces = replaces
    let slash = path.bytes.lastIndex(of: UInt8(ascii: "/"))
    name = FileName(Array(path.bytes[(slash.map { $0 + 1 } ?? 0)...]))
    guard name.count > 0, !name.isDotOrDotDot else {
      throw .usage("\(path) is no name for a file")
    }
    let parent = slash.map { FileName(Array(path.bytes[...$0])) } ?? FileName(".")
    directory = try about("\(parent)") { () throws(Errno) in
      try Syscalls.open(parent, flags: O_RDONLY | O_DIRECTORY)
    }
    let temporaryName = try NamelessFile.temporaryName()
    self.temporaryName = temporaryName
    let parentNumber = directory.rawValue
    var isNamed = false
    file = try about("\(path)") { () throws(Errno) in
      do throws(Errno) {
        return try Syscalls.openTemporary(in: parentNumber, mode: 0o600)
      } catch {
        guard NamelessFile.isUnknown(error) else { throw error }
      }
      isNamed = true
      return try Syscalls.open(
        temporaryName, in: parentNumber, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    }
    isTemporary = isNamed
    if isNamed, isPlaintext { try holdSignals() }
  }

  deinit { discard() }

  private func holdSignals() throws(CommandError) {
    if signals == nil {
      signals = try about("\(path)") { () throws(Errno) in try HeldSignals() }
    }
  }

  private func discard() {
    if isTemporary { try? Syscalls.unlink(temporaryName, in: directory.rawValue) }
    isTemporary = false
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws(CommandError) {
    if signals?.isPending == true {
      discard()
      signals = nil  // Mostly the program ends here.
      throw CommandError("\(path)", Errno.interrupted)
    }
    try about("\(path)") { () throws(Errno) in try Syscalls.write(file.rawValue, bytes) }
  }

  func commit(like input: borrowing InputFile) throws(CommandError) {
    let status = input.status
    let copiesStatus = input.isRegular
    // For a moment the file may have a temporary name now.
    try holdSignals()
    defer { signals = nil }
    do throws(Errno) {
      if copiesStatus {
        try Syscalls.setMode(file.rawValue, status.st_mode & 0o777)
        try Syscalls.setTimes(
          file.rawValue, access: status.st_atim, modification: status.st_mtim)
      }
      try Syscalls.synchronize(file.rawValue)
      try takeName()
      try Syscalls.synchronize(directory.rawValue)
    } catch {
      if error == .exists { throw OutputFile.exists(path) }
      throw CommandError("\(path)", error)
    }
  }

  private func takeName() throws(Errno) {
    let directory = directory.rawValue
    if !isTemporary {
      if !replaces {
        return try Syscalls.link(descriptor: file.rawValue, as: name, in: directory)
      }
      try Syscalls.link(descriptor: file.rawValue, as: temporaryName, in: directory)
      isTemporary = true
    }
    if replaces {
      try Syscalls.rename(temporaryName, in: directory, to: name, in: directory)
    } else {
      try Syscalls.renameToNewName(temporaryName, to: name, in: directory)
    }
    isTemporary = false
  }
}
