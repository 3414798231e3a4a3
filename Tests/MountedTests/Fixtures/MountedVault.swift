import Glibc
import Testing

enum Names: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case encrypted, plain

  var testDescription: String { "names \(rawValue)" }
}

/// An account with a vault, mounted by the built program as a daemon of its own.
///
/// Use `withMounted`: it ends the daemon whatever the test does.
final class MountedVault {
  static let user = "alice"
  static let password = "pw-7f3a-Correct Horse Battery"

  /// Holds everything below.
  let folder: String
  let home: String
  let passwordFile: String
  let backing: String
  let mountPoint: String
  /// A folder on the ordinary disk.
  let work: String
  private(set) var daemon: ChildProcess?
  /// Variables for the program besides those that every test sets.
  var variables: [String: String] = [:]

  /// - Parameter backing: where the vault goes, if not beside everything else.
  init(names: Names = .encrypted, backing: String? = nil, mountNow: Bool = true) throws {
    folder = try Scratch.makeFolder()
    home = folder + "/home"
    passwordFile = folder + "/password"
    self.backing = backing ?? folder + "/vault"
    mountPoint = folder + "/mnt"
    work = folder + "/work"
    mkdir(mountPoint, 0o700)
    mkdir(work, 0o755)
    try Scratch.write(Self.password + "\n", to: passwordFile)
    try photovault(
      ["create", Self.user, "--vault", self.backing, "--names", names.rawValue], expecting: 0)
    if mountNow { try mount() }
  }

  /// Makes a vault, mounts it, runs `body`, unmounts it and removes it. An orderly end is part of every test.
  static func withMounted(
    names: Names = .encrypted, backing: String? = nil, _ body: (MountedVault) throws -> Void
  ) throws {
    let vault = try MountedVault(names: names, backing: backing)
    defer { vault.tearDown() }
    try body(vault)
    if vault.daemon != nil { try vault.unmount() }
  }

  /// Makes a vault that is not mounted yet.
  static func withUnmounted(
    names: Names = .encrypted, backing: String? = nil, _ body: (MountedVault) throws -> Void
  ) throws {
    let vault = try MountedVault(names: names, backing: backing, mountNow: false)
    defer { vault.tearDown() }
    try body(vault)
  }

  // MARK: - The program

  /// Runs the program against this home with this password.
  @discardableResult
  func photovault(
    _ arguments: [String], password: Bool = true, expecting expected: Int32? = nil
  ) throws -> Outcome {
    try Command.run(
      [Checkout.program] + arguments + ["--home", home]
        + (password ? ["--password-file", passwordFile] : []),
      environment: environment, expecting: expected)
  }

  /// The recovery key as the program prints it.
  func recoveryKey() throws -> String {
    let output = try photovault(["recovery-key", Self.user], expecting: 0).output
    return String(output.prefix { $0 != "\n" })
  }

  // MARK: - Mounting

  /// Mounts in the foreground, so that the daemon is a child of this process and its log is at hand.
  func mount(options: [String] = []) throws {
    let arguments =
      [Checkout.program, "mount", Self.user, mountPoint, "--foreground", "--idle", "0"]
      + ["--home", home, "--password-file", passwordFile] + options
    let announcedBefore = announcementCount
    let started = try Command.spawn(
      arguments, environment: environment, output: folder + "/daemon.out", errors: logFile)
    // A stale mount may still be there, and its attributes cached, or just be taken away: only an
    // announcement and an answer to statfs count, and only FUSE's, for between the stale mount and the
    // new one the directory below answers.
    let ready = try Wait.until(seconds: 30) {
      if hasEnded(started) { return true }
      guard announcementCount > announcedBefore, isMounted else { return false }
      let type = try Command.run(["stat", "-f", "-c", "%t", mountPoint], limit: 10)
      return type.output == "65735546\n"
    }
    guard ready, !hasEnded(started) else {
      started.signal(SIGKILL)
      throw UnexpectedOutcome(
        arguments, Outcome(status: started.wait(), output: "", errors: log))
    }
    daemon = started
  }

  /// An orderly unmount: the program says done, nothing is mounted, the daemon ends with 0, no blob is half
  /// written.
  func unmount() throws {
    try photovault(["unmount", mountPoint], password: false, expecting: 0)
    try expectEnd()
  }

  /// The daemon ended by itself, in order.
  func expectEnd(status: Int32 = 0) throws {
    let ended = try #require(daemon).wait(seconds: 20)
    #expect(ended == status, "the daemon's exit code; its log: \(log.suffix(2000))")
    if ended != nil { daemon = nil }
    #expect(!isMounted)
    try expectNoTemporaries()
  }

  func remount() throws {
    try unmount()
    try mount()
  }

  /// Ends the daemon as a crash would, and waits until the kernel has noticed.
  func crash() throws {
    let crashed = try #require(daemon)
    crashed.signal(SIGKILL)
    #expect(crashed.wait() == 128 + SIGKILL)
    daemon = nil
  }

  var isMounted: Bool { MountTable.type(at: mountPoint) != nil }

  var log: String { Scratch.read(logFile) }

  private var announcementCount: Int {
    log.split(separator: "\n").count { $0.contains(" is ready at ") }
  }

  func clearLog() throws { try Scratch.write("", to: logFile) }

  // MARK: - Looking

  /// Runs a bash script that must succeed. `$M` is the mount, `$W` a folder on the ordinary disk, `$V` the
  /// vault's directory, `$T` this project's workloads.
  @discardableResult
  func shell(_ script: String, limit: Int = 60) throws -> String {
    try Command.shell(script, environment: environment, limit: limit)
  }

  func expectNoTemporaries() throws {
    #expect(try shell(#"find "$V" -name '.photovault-*.tmp'"#) == "")
  }

  private var environment: [String: String] {
    [
      "M": mountPoint, "W": work, "V": backing, "T": Checkout.workloads,
      "PHOTOS": (try? Photos.folder.get()) ?? "",
      "HOME": folder, "XDG_RUNTIME_DIR": folder, "XDG_DATA_HOME": folder + "/data",
    ].merging(variables) { $1 }
  }

  private var logFile: String { folder + "/daemon.err" }

  private func hasEnded(_ process: ChildProcess) -> Bool {
    var information = siginfo_t()
    return waitid(P_PID, id_t(process.id), &information, WEXITED | WNOHANG | WNOWAIT) == 0
      && information.si_signo == SIGCHLD
  }

  /// Whatever happened: no mount, no process, no files.
  private func tearDown() {
    if let daemon {
      daemon.signal(SIGTERM)
      if daemon.wait(seconds: 10) == nil {
        daemon.signal(SIGKILL)
        _ = daemon.wait()
      }
    }
    if daemon != nil || isMounted {
      for pid in MountTable.daemons(of: folder) { kill(pid, SIGKILL) }
    }
    if isMounted { _ = try? Command.run(["umount", "-l", mountPoint]) }
    Scratch.remove(folder)
  }
}
