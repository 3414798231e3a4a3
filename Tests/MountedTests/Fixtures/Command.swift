import Glibc

/// A program that ended, and what it said.
struct Outcome {
  /// The exit code; 128 + signal if a signal ended it; 124 or 137 if it was cut off.
  let status: Int32
  let output: String
  let errors: String
}

/// A program that should have ended with another exit code.
struct UnexpectedOutcome: Error, CustomStringConvertible {
  let description: String

  init(_ arguments: [String], _ outcome: Outcome) {
    description = """
      \(arguments.joined(separator: " ").suffix(4000))
      ended with \(outcome.status)
      standard output: \(outcome.output.suffix(2000))
      standard error: \(outcome.errors.suffix(4000))
      """
  }
}

/// Runs programs. Only programs touch a mount, each under a time limit, so that a mount that hangs can't
/// hang the tests.
enum Command {
  /// Runs a program to its end, with standard input from a file holding `input`.
  ///
  /// Standard output and error go to files, not pipes: a daemon that keeps them open holds nobody up.
  static func run(
    _ arguments: [String], input: String = "", environment: [String: String] = [:],
    limit: Int = 60, expecting expected: Int32? = nil
  ) throws -> Outcome {
    let folder = try Scratch.makeFolder()
    defer { Scratch.remove(folder) }
    try Scratch.write(input, to: folder + "/in")
    let limited = ["timeout", "--kill-after=5", "\(limit)"] + arguments
    let process = try spawn(
      limited, environment: environment, input: folder + "/in", output: folder + "/out",
      errors: folder + "/err")
    let outcome = Outcome(
      status: process.wait(), output: Scratch.read(folder + "/out"),
      errors: Scratch.read(folder + "/err"))
    if let expected, outcome.status != expected { throw UnexpectedOutcome(arguments, outcome) }
    return outcome
  }

  /// Runs a bash script that must succeed; each of its commands is traced to standard error.
  @discardableResult
  static func shell(
    _ script: String, environment: [String: String] = [:], limit: Int = 60
  ) throws -> String {
    try run(
      ["bash", "-euxo", "pipefail", "-c", script], environment: environment, limit: limit,
      expecting: 0
    ).output
  }

  /// Starts a program in a process group of its own.
  static func spawn(
    _ arguments: [String], environment: [String: String] = [:], input: String = "/dev/null",
    output: String, errors: String
  ) throws -> ChildProcess {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    posix_spawn_file_actions_addopen(&actions, 2, errors, O_WRONLY | O_CREAT | O_APPEND, 0o600)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // The threads of a test block signals; programs must not inherit that.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigfillset(&signals)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(
      &attributes,
      Int16(POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))

    let merged = Self.environment.merging(environment) { $1 }
    var pid: pid_t = 0
    let error = arguments.withCStrings { words in
      merged.map { "\($0)=\($1)" }.withCStrings { variables in
        posix_spawnp(&pid, arguments[0], &actions, &attributes, words, variables)
      }
    }
    guard error == 0 else {
      throw UnexpectedOutcome(
        arguments, Outcome(status: error, output: "", errors: "posix_spawnp: errno \(error)"))
    }
    return ChildProcess(id: pid)
  }

  /// What programs see: nothing of the developer's own settings.
  private static let environment: [String: String] = {
    func own(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
    return [
      "PATH": (own("PATH") ?? "/usr/bin:/bin") + ":/usr/sbin:/sbin",
      "HOME": Scratch.run, "LC_ALL": "C.UTF-8", "TZ": "UTC", "TMPDIR": Scratch.run,
      "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example.org",
      "GIT_COMMITTER_NAME": "A", "GIT_COMMITTER_EMAIL": "a@example.org",
      "LD_LIBRARY_PATH": own("LD_LIBRARY_PATH") ?? "",
    ]
  }()
}

/// A process that these tests started; its id stays its own until `wait`.
struct ChildProcess {
  let id: pid_t

  func signal(_ number: Int32) { kill(id, number) }

  /// Waits for the end, however long it takes.
  func wait() -> Int32 {
    var status: Int32 = 0
    while waitpid(id, &status, 0) < 0 && errno == EINTR {}
    return Self.exitCode(status)
  }

  /// Waits at most so long; nil if it still runs then.
  func wait(seconds: Double) -> Int32? {
    var status: Int32 = 0
    return Wait.until(seconds: seconds) { waitpid(id, &status, WNOHANG) != 0 }
      ? Self.exitCode(status) : nil
  }

  private static func exitCode(_ status: Int32) -> Int32 {
    let signal = status & 0x7f
    return signal == 0 ? (status >> 8) & 0xff : 128 + signal
  }
}

enum Clock {
  /// CLOCK_MONOTONIC.
  static var seconds: Double {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
  }
}

enum Wait {
  /// Looks every 10 ms until `condition` holds; false if it doesn't in time.
  static func until(seconds: Double, _ condition: () throws -> Bool) rethrows -> Bool {
    for _ in 0...Int(seconds * 100) {
      if try condition() { return true }
      usleep(10_000)
    }
    return false
  }
}

extension [String] {
  /// Passes these strings as a C function wants its vector of arguments.
  func withCStrings<Result>(
    _ body: (UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> Result
  ) -> Result {
    let copies = map { strdup($0) }
    defer { for copy in copies { free(copy) } }
    let vector = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: count + 1)
    defer { vector.deallocate() }
    for (index, copy) in copies.enumerated() { vector[index] = copy }
    vector[count] = nil
    return body(vector)
  }
}
