import CLinux
package import Glibc

/// Other programs, started without a fork of this one: threads and secrets stay where they are.
package enum ChildProcess {
  /// "posix_spawnp". `descriptors[n]` becomes the child's descriptor `n`, nil is /dev/null; nothing
  /// else is passed on. Signals are as a shell would leave them. The caller waits for the result.
  package static func spawn(
    _ program: String, _ arguments: [FileName], descriptors: [CInt?]
  ) throws(Errno) -> pid_t {
    var actions = posix_spawn_file_actions_t()
    var attributes = posix_spawnattr_t()
    try check(posix_spawn_file_actions_init(&actions))
    defer { posix_spawn_file_actions_destroy(&actions) }
    try check(posix_spawnattr_init(&attributes))
    defer { posix_spawnattr_destroy(&attributes) }

    // Out of the way of the child's numbers, so that no dup2 hits a source still to come.
    var moved: [MovedDescriptor] = []
    for (target, source) in descriptors.enumerated() {
      if let source {
        let copy = try MovedDescriptor(source)
        try check(posix_spawn_file_actions_adddup2(&actions, copy.rawValue, CInt(target)))
        moved.append(copy)
      } else {
        try check(
          posix_spawn_file_actions_addopen(&actions, CInt(target), "/dev/null", O_RDWR, 0))
      }
    }
    try check(pv_spawn_close_from(&actions, CInt(descriptors.count)))

    var signals = sigset_t()
    sigemptyset(&signals)
    try check(posix_spawnattr_setsigmask(&attributes, &signals))
    sigfillset(&signals)
    try check(posix_spawnattr_setsigdefault(&attributes, &signals))
    try check(
      posix_spawnattr_setflags(
        &attributes, Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF)))

    var pid = pid_t()
    var words = arguments.map { word in word.withCString { strdup($0) } }
    words.append(nil)
    defer { for word in words { free(word) } }
    let result = withExtendedLifetime(moved) {
      posix_spawnp(&pid, program, &actions, &attributes, words, environ)
    }
    try check(result)
    return pid
  }

  /// "waitpid": the exit code, or 128 and the signal's number.
  package static func wait(for pid: pid_t) throws(Errno) -> CInt {
    var status: CInt = 0
    while waitpid(pid, &status, 0) < 0 {
      if errno != EINTR { throw .current }
    }
    let signal = status & 0x7F
    return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
  }

  private static func check(_ result: CInt) throws(Errno) {
    if result != 0 { throw Errno(result) }
  }
}

private final class MovedDescriptor {
  /// Above any that a child is given, and within the tightest limit that a shell may set.
  private static let firstNumber: CInt = 16

  private let descriptor: FileDescriptor
  var rawValue: CInt { descriptor.rawValue }

  init(_ source: CInt) throws(Errno) {
    let copy = pv_fcntl_int(source, F_DUPFD_CLOEXEC, Self.firstNumber)
    guard copy >= 0 else { throw .current }
    descriptor = FileDescriptor(owning: copy)
  }
}
