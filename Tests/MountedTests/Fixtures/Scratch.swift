import Glibc

/// Folders and files outside of any mount.
enum Scratch {
  /// Where this run of the tests keeps everything. Removed when the process ends.
  static let run: String = {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    let folder = makeUnique(parent + "/photovault-mounted.XXXXXX") ?? "/tmp"
    chmod(folder, 0o755)
    atexit { Scratch.remove(Scratch.run) }
    return folder
  }()

  static func makeFolder() throws -> String {
    guard let folder = makeUnique(run + "/XXXXXX") else { throw ScratchError(errno: errno) }
    // Tests of other users' views reach in here.
    chmod(folder, 0o755)
    return folder
  }

  private static func makeUnique(_ pattern: String) -> String? {
    var bytes = Array(pattern.utf8CString)
    return bytes.withUnsafeMutableBufferPointer { buffer -> String? in
      guard let start = buffer.baseAddress, mkdtemp(start) != nil else { return nil }
      return String(cString: start)
    }
  }

  /// Removes a folder, but nothing that is mounted in it.
  static func remove(_ folder: String) {
    var pid: pid_t = 0
    let error = ["rm", "-rf", "--one-file-system", folder].withCStrings {
      posix_spawnp(&pid, "rm", nil, nil, $0, nil)
    }
    guard error == 0 else { return }
    _ = ChildProcess(id: pid).wait()
  }

  static func write(_ text: String, to path: String) throws {
    let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw ScratchError(errno: errno) }
    defer { close(file) }
    let bytes = Array(text.utf8)
    guard Glibc.write(file, bytes, bytes.count) == bytes.count else {
      throw ScratchError(errno: errno)
    }
  }

  /// The text of a file, "" if there is none.
  static func read(_ path: String) -> String {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return "" }
    defer { close(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = Glibc.read(file, &buffer, buffer.count)
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}

struct ScratchError: Error {
  let errno: Int32
}
