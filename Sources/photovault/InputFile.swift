import Glibc
import Platform

/// What `encrypt` and `decrypt` read: a file, or standard input under the name "-".
struct InputFile: ~Copyable {
  /// For messages.
  let name: String
  let descriptor: FileDescriptor
  let status: stat

  static func open(_ path: FileName) throws(CommandError) -> InputFile {
    let isStandardInput = path == FileName("-")
    let name = isStandardInput ? "standard input" : path.description
    let descriptor = try about(name) { () throws(Errno) in
      isStandardInput
        ? try Syscalls.duplicate(0) : try Syscalls.open(path, flags: O_RDONLY | O_NOCTTY)
    }
    let status = try about(name) { () throws(Errno) in
      try Syscalls.status(descriptor.rawValue)
    }
    if status.st_mode & S_IFMT == mode_t(Glibc.S_IFDIR) {
      throw CommandError(name, Errno.isADirectory, hint: "give one file")
    }
    return InputFile(name: name, descriptor: descriptor, status: status)
  }

  private init(name: String, descriptor: consuming FileDescriptor, status: stat) {
    self.name = name
    self.descriptor = descriptor
    self.status = status
  }

  var isRegular: Bool { status.st_mode & S_IFMT == mode_t(Glibc.S_IFREG) }

  /// Hands out all there is, piece by piece.
  func read(
    _ body: (UnsafeRawBufferPointer) throws(CommandError) -> Void
  ) throws(CommandError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: Self.pieceByteCount, alignment: 64)
    defer {
      SecretBytes.wipe(buffer)
      buffer.deallocate()
    }
    let fd = descriptor.rawValue
    while true {
      let count = try about(name) { () throws(Errno) in try Syscalls.read(fd, into: buffer) }
      if count == 0 { return }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private static let pieceByteCount = 1 << 20

  /// The same bytes in a file without a name that can be read at offsets. They are ciphertext, so
  /// they may touch the disk; `$TMPDIR` or /var/tmp, for they may be many.
  func spooled() throws(CommandError) -> InputFile {
    let place = try Home.environment("TMPDIR") ?? "/var/tmp"
    let directory = try about(place) { () throws(Errno) in
      try Syscalls.open(FileName(place), flags: O_RDONLY | O_DIRECTORY)
    }
    let spool = try NamelessFile.open(in: directory.rawValue, place)
    let fd = spool.rawValue
    try read { bytes throws(CommandError) in
      try about(place) { () throws(Errno) in try Syscalls.write(fd, bytes) }
    }
    return InputFile(name: name, descriptor: spool, status: status)
  }
}
