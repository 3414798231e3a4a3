import Glibc
import Testing

/// Two private buses with logind, screen savers and notifications, all by `Workloads/desktop.py`.
final class DesktopSession {
  let folder: String
  private let process: ChildProcess
  private let commands: Int32
  private var count = 0

  private init(_ vault: MountedVault) throws {
    folder = try Scratch.makeFolder()
    mkfifo(folder + "/commands", 0o600)
    commands = open(folder + "/commands", O_RDWR | O_CLOEXEC)
    // Not the python3 of a developer's own, which lacks the system's modules.
    process = try Command.spawn(
      ["/usr/bin/python3", Checkout.workloads + "/desktop.py", folder, vault.mountPoint],
      environment: ["NO_AT_BRIDGE": "1"], input: folder + "/commands", output: folder + "/out",
      errors: folder + "/err")
    vault.variables = [
      "DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(folder)/system",
      "DBUS_SESSION_BUS_ADDRESS": "unix:path=\(folder)/session",
    ]
  }

  /// A vault, not mounted yet, and a desktop that has done `commands`.
  static func with(
    _ commands: [String], backing: String? = nil,
    _ body: (DesktopSession, MountedVault) throws -> Void
  ) throws {
    try MountedVault.withUnmounted(backing: backing) { vault in
      let desktop = try DesktopSession(vault)
      defer { desktop.end() }
      for command in commands { try desktop.tell(command) }
      try body(desktop, vault)
    }
  }

  /// Both buses, logind, and a session "c2" that is the user's display.
  static let usual = [
    "start system", "start session", "logind", "add-session c2", "set-display c2",
  ]

  /// One command of desktop.py; returns when it is done.
  func tell(_ command: String) throws {
    let line = Array((command + "\n").utf8)
    #expect(write(commands, line, line.count) == line.count)
    count += 1
    let isDone = Wait.until(seconds: 20) {
      Scratch.read(folder + "/answers").split(separator: "\n").count >= count
    }
    try #require(isDone, "desktop.py: \(command): \(Scratch.read(folder + "/err").suffix(2000))")
  }

  var events: String { Scratch.read(folder + "/events") }

  /// What programs asked of the service.
  func calls(_ service: String) -> String { Scratch.read("\(folder)/\(service).calls") }

  private func end() {
    close(commands)
    // Its group: the buses, too, which may be stopped.
    kill(-process.id, SIGKILL)
    _ = process.wait()
    Scratch.remove(folder)
  }
}

extension MountedVault {
  /// Mounts and waits until the log says that all is watched, or what isn't.
  func mountWatched(_ options: [String] = [], saying text: String = " locks ") throws {
    try clearLog()
    try mount(options: options)
    try #require(Wait.until(seconds: 20) { log.contains(text) }, "the log: \(log)")
  }

  /// The folder locked by itself, for this reason, in the time that logind grants.
  func expectLocked(_ reason: String, _ cause: String) throws {
    let start = Time.now
    try expectEnd()
    #expect(Time.now - start < 5, "\(cause)")
    #expect(log.contains("locking \(mountPoint): \(reason)"), "\(cause): \(log)")
  }

  func expectStaysMounted(_ cause: String) {
    usleep(400_000)
    #expect(isMounted, "\(cause): \(log)")
  }
}

enum Time {
  /// Seconds.
  static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
