import Glibc
import Platform

/// Runs programs with an end in sight.
package enum Subprocess {
  /// Waits at most `seconds`; then the program is killed. Both outputs are appended to `log`.
  package static func run(
    _ program: Path, _ arguments: [String], log: Path, seconds: Int = 60
  ) throws -> CInt {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    let flags = O_WRONLY | O_CREAT | O_APPEND
    posix_spawn_file_actions_addopen(&actions, 1, log.text, flags, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    var words = ([program.text] + arguments).map { strdup($0) } + [nil]
    defer { for word in words { free(word) } }
    var process = pid_t()
    let code = posix_spawnp(&process, program.text, &actions, nil, &words, environ)
    if code != 0 { throw Errno(code) }
    return try wait(
      for: process, seconds: seconds, "\(program) \(arguments.joined(separator: " "))")
  }

  private static func wait(for process: pid_t, seconds: Int, _ what: String) throws -> CInt {
    let pollMicroseconds: UInt32 = 5000
    var status: CInt = 0
    for _ in 0..<(seconds * 1_000_000 / Int(pollMicroseconds)) {
      if waitpid(process, &status, WNOHANG) == process { return status }
      usleep(pollMicroseconds)
    }
    kill(process, SIGKILL)
    waitpid(process, &status, 0)
    throw CheckFailure("\(what): not done after \(seconds) s", #filePath, #line)
  }
}
