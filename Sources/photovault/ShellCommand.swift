import Glibc
import Platform

/// A command line that `/bin/sh` runs for us, whose standard output we read.
struct ShellCommand: ~Copyable {
  /// What it prints.
  let output: FileDescriptor
  private let process: pid_t

  private init(output: consuming FileDescriptor, process: pid_t) {
    self.output = output
    self.process = process
  }

  static func start(_ command: FileName) throws(Errno) -> ShellCommand {
    let pipe = try Pipe()
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    // The copy stays open in the command; the pipe's own ends don't.
    posix_spawn_file_actions_adddup2(&actions, pipe.writeEnd.rawValue, 1)
    // We ignore SIGPIPE; the command gets it as everybody does.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var defaults = sigset_t()
    sigemptyset(&defaults)
    sigaddset(&defaults, SIGPIPE)
    posix_spawnattr_setsigdefault(&attributes, &defaults)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))

    var words: [UnsafeMutablePointer<CChar>?] = [
      strdup("sh"), strdup("-c"), command.withCString { strdup($0) }, nil,
    ]
    defer { for word in words { free(word) } }
    var process: pid_t = 0
    let result = posix_spawn(&process, "/bin/sh", &actions, &attributes, &words, environ)
    if result != 0 { throw Errno(result) }
    return ShellCommand(output: try pipe.readEnd.duplicate(), process: process)
  }

  /// Waits for the end: the exit status, or 128 and the signal as shells count.
  func wait() throws(Errno) -> Int {
    var status: CInt = 0
    while waitpid(process, &status, 0) < 0 {
      if errno != EINTR { throw .current }
    }
    let signal = status & 0x7F  // WTERMSIG
    return signal == 0 ? Int(status >> 8 & 0xFF) : 128 + Int(signal)
  }

  /// For a command whose output is of no use.
  func stop() {
    kill(process, SIGTERM)
    _ = try? wait()
  }
}
