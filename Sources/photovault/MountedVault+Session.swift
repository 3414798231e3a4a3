import Glibc
import Platform
import SessionMonitor

/// What the desktop has to do with a mount: it locks it, and it shows what became of it.
extension MountedVault {
  /// How long a mount waits for an answer of the buses; one takes some milliseconds.
  private static let busPatience = 80  // milliseconds

  func startWatch() throws(Errno) -> NativeThread {
    try watch.start(late: { self.log($0) }, lock: { self.lockAndTell($0) })
  }

  /// The folder answers. What can't be watched is said to who mounts, and to the log.
  func becomeReady(_ ready: () -> Void) {
    let finding = watch.finding(withinMilliseconds: Self.busPatience)
    if let finding, finding.isProblem { log(finding) }
    ready()
    guard let finding, Log.isSystemLog || !finding.isProblem else { return }
    log(finding)
  }

  private func log(_ finding: SessionWatch.Finding) {
    if finding.text.isEmpty { return }
    let line = "\(record.mountPoint) \(finding.text)"
    if finding.isProblem { Log.warning(line) } else { Log.notice(line) }
  }

  /// Locks and tells the user; true if the folder is locked.
  @discardableResult
  func lockAndTell(_ trigger: LockTrigger) -> Bool {
    let outcome = lock(trigger)
    tell(outcome, trigger)
    if case .ended = outcome { return true }
    return false
  }

  /// The idle lock, unless a program has something open.
  func unmountUnused() -> Outcome {
    let outcome = unmount()
    if outcome != .busy { tell(outcome, .idle) }
    return outcome
  }

  /// The lock hangs: says so before the process ends.
  func tellGivenUp() { tell(waitForEnd(), .requested) }

  private func tell(_ outcome: Outcome, _ trigger: LockTrigger) {
    switch outcome {
    case .ended([], []):
      // At the end of a session nobody is there to read it.
      if trigger == .sessionEnded || trigger == .shuttingDown { return }
      watch.show(Notice("\(subject) locked", trigger.reason))
    case .ended(let unsaved, var problems):
      if !unsaved.isEmpty {
        problems.append(
          "the last changes to these could not be saved: \(Self.shortList(unsaved))")
      }
      let text = Terminal.clean(problems.joined(separator: "; "))
      watch.show(Notice("\(subject) locked", text, isUrgent: true))
    case .busy: tellFailure(trigger, .busy)
    case .failed(let error): tellFailure(trigger, error)
    }
  }

  private func tellFailure(_ trigger: LockTrigger, _ error: Errno) {
    Log.error("could not lock \(record.mountPoint) (\(trigger.reason)): \(error)")
    watch.show(
      Notice(
        "\(subject) could not be locked", "\(trigger.reason), but: \(error)", isUrgent: true))
  }

  /// The idle lock waits for programs.
  func tellWaiting(_ holders: [Holder]) {
    let programs = holders.map { holder in
      let names = holder.names(in: record.mountPoint)
      return names.isEmpty ? holder.program : "\(holder.program) (holds \(Self.shortList(names)))"
    }
    let who = programs.isEmpty ? "a program" : Self.shortList(programs)
    watch.show(Notice("\(subject) are not locked yet", "waiting for \(Terminal.clean(who))"))
  }

  private var subject: String { "Photos of \(record.user)" }

  private static func shortList(_ words: [String]) -> String {
    let shown = words.prefix(3).joined(separator: ", ")
    return words.count > 3 ? "\(shown) and \(words.count - 3) more" : shown
  }
}

extension SessionWatch.Options {
  /// The session that the environment names. Source: pam_systemd(8).
  init(_ options: MountOptions) {
    self.init(
      systemBus: BusAddress.system, sessionBus: BusAddress.session,
      sessionID: try? Home.environment("XDG_SESSION_ID"), user: getuid(),
      watchesScreen: options.locksWithScreen, countsBlanking: options.locksWhenBlank,
      watchesSuspend: options.locksOnSuspend)
  }
}

/// The buses that the environment names. Source: D-Bus specification, well-known bus instances.
enum BusAddress {
  static var system: String {
    (try? Home.environment("DBUS_SYSTEM_BUS_ADDRESS")) ?? socket("/run/dbus/system_bus_socket")
  }

  static var session: String {
    if let given = try? Home.environment("DBUS_SESSION_BUS_ADDRESS") { return given }
    let directory = (try? Home.environment("XDG_RUNTIME_DIR")) ?? "/run/user/\(getuid())"
    return socket(directory + "/bus")
  }

  /// Source: D-Bus specification, server addresses: all but these bytes are written "%xx".
  static func socket(_ path: String) -> String {
    path.utf8.reduce(into: "unix:path=") { result, byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
        UInt8(ascii: "/"), UInt8(ascii: "."), UInt8(ascii: "*"):
        result.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16)
        result += byte < 16 ? "%0\(digits)" : "%\(digits)"
      }
    }
  }
}
