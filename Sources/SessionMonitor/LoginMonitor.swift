import Glibc
import Platform

/// What logind says: the user's session locks or ends, the machine goes to sleep or down.
/// Source: org.freedesktop.login1(5).
final class LoginMonitor {
  private static let service = "org.freedesktop.login1"
  private static let managerPath = "/org/freedesktop/login1"
  private static let managerInterface = "org.freedesktop.login1.Manager"
  private static let sessionInterface = "org.freedesktop.login1.Session"
  private static let propertiesInterface = "org.freedesktop.DBus.Properties"

  private let options: SessionWatch.Options
  private let isBaseline: () -> Bool
  private let lock: (LockTrigger) -> Void

  private var bus: Bus?
  /// The unique name of logind's connection: signals from others don't count.
  private var owner: String?
  private var states = ScreenStates()
  /// The session that the mount was made in.
  private var ownSession: String?
  /// The user's graphical session, which may be another: a mount made by a service or over SSH.
  private var displaySession: String?
  /// Delays sleep while it is open. Source: org.freedesktop.login1(5), inhibitor locks.
  private var inhibitor: FileDescriptor?

  init(
    _ options: SessionWatch.Options, isBaseline: @escaping () -> Bool,
    lock: @escaping (LockTrigger) -> Void
  ) {
    self.options = options
    self.isBaseline = isBaseline
    self.lock = lock
  }

  /// Whether logind is there to tell of suspend.
  var isThere: Bool { owner != nil }

  /// Whether logind knows a session whose lock it can tell of.
  var hasSession: Bool { isThere && (ownSession != nil || displaySession != nil) }

  // MARK: The connection

  func begin(_ bus: Bus) {
    self.bus = bus
    bus.watchOwner(of: Self.service) { [unowned self] in appeared($0) }
    let from = "type='signal',sender='\(Self.service)'"
    bus.watch("\(from),path='\(Self.managerPath)',interface='\(Self.managerInterface)'") {
      [unowned self] in if $0.sender == owner { handleManager($0) }
    }
    let fromSessions = "\(from),path_namespace='\(Self.managerPath)/session'"
    bus.watch("\(fromSessions),interface='\(Self.sessionInterface)',member='Lock'") {
      [unowned self] message in
      guard message.sender == owner, isOurs(message.path), options.watchesScreen else { return }
      lock(.screenLocked)
    }
    bus.watch("\(fromSessions),interface='\(Self.propertiesInterface)'") {
      [unowned self] message in
      guard message.sender == owner, isOurs(message.path), let path = message.path else { return }
      handleChange(message, path)
    }
    bus.owner(of: Self.service) { [unowned self] in appeared($0) }
  }

  func end() {
    bus = nil
    owner = nil
  }

  private func appeared(_ owner: String?) {
    self.owner = owner
    guard owner != nil else { return }
    for (property, trigger) in [
      ("PreparingForSleep", LockTrigger.suspending), ("PreparingForShutdown", .shuttingDown),
    ] where trigger != .suspending || options.watchesSuspend {
      read(property, Self.managerInterface, Self.managerPath) { [unowned self] answer in
        if answer.inside("v", "b", answer.bool) == true { lock(trigger) }
      }
    }
    inhibit()
    look()
  }

  // MARK: Sleep

  /// Holds sleep up until `releaseInhibitor`, for as long as logind grants.
  private func inhibit() {
    guard options.watchesSuspend else { return }
    let words = ["sleep", "photovault", "locks an unlocked folder first", "delay"]
    askManager("Inhibit", words.map { .string($0) }) { [unowned self] answer in
      inhibitor = answer?.descriptor()
    }
  }

  /// Lets the machine sleep. Until it wakes up there is nothing to wait for.
  func releaseInhibitor() { inhibitor = nil }

  /// Lets the machine sleep when this process is gone, and the keys with it.
  func leaveInhibitorToProcess() {
    if let descriptor = inhibitor.take() { _ = descriptor.release() }
  }

  private func handleManager(_ message: BusMessage) {
    switch message.member {
    case "PrepareForSleep":
      guard options.watchesSuspend, let isComing = message.bool() else { return }
      if isComing { lock(.suspending) } else { inhibit() }
    case "PrepareForShutdown":
      if message.bool() == true { lock(.shuttingDown) }
    case "SessionNew":
      look()
    case "SessionRemoved":
      if message.string() != nil, let path = message.objectPath() { sessionEnded(path) }
    case "UserRemoved":
      if message.uint32() == options.user { lock(.sessionEnded) }
    default: break
    }
  }

  // MARK: Sessions

  private func isOurs(_ path: String?) -> Bool {
    path != nil && (path == ownSession || path == displaySession)
  }

  /// Finds the sessions and reads their states. Also called from time to time: not each change
  /// comes with a signal. While processes of a session live on, ours for one, logind does not
  /// remove it but calls it "closing".
  func look() {
    if let ownSession {
      refresh(ownSession)
    } else if let id = options.sessionID {
      askManager("GetSession", .string(id)) { [unowned self] answer in
        if let path = answer?.objectPath() {
          adopt(path, otherwise: lookByProcess)
        } else {
          lookByProcess()
        }
      }
    } else {
      lookByProcess()
    }
    lookForDisplay()
  }

  private func lookByProcess() {
    askManager("GetSessionByPID", .uint32(UInt32(getpid()))) { [unowned self] answer in
      if let path = answer?.objectPath() { adopt(path) {} }
    }
  }

  private func adopt(_ path: String, otherwise: @escaping () -> Void) {
    let found = { [unowned self] (found: [String: BusMessage.Property]) in
      // Jobs of cron and the like have sessions that end with the command that mounts, and a
      // program in tmux may outlive its session.
      guard case .string(let kind) = found["Class"], kind.hasPrefix("user"),
        found["State"] != .string("closing")
      else { return otherwise() }
      ownSession = path
      apply(found, path)
    }
    properties(of: path, gone: otherwise, found: found)
  }

  private func lookForDisplay() {
    askManager("GetUser", .uint32(options.user)) { [unowned self] answer in
      guard let user = answer?.objectPath() else { return }
      read("Display", "org.freedesktop.login1.User", user) { [unowned self] answer in
        let path = answer.inside("v", "(so)") {
          answer.inside("r", "so") { answer.string().flatMap { _ in answer.objectPath() } }
        }
        if let path, path != "/", path != ownSession { watchDisplay(path) }
      }
    }
  }

  private func watchDisplay(_ path: String) {
    if path == displaySession { return refresh(path) }
    properties(
      of: path, gone: {},
      found: { [unowned self] found in
        guard found["State"] != .string("closing") else { return }
        displaySession = path
        apply(found, path)
      })
  }

  private func refresh(_ path: String) {
    properties(
      of: path, gone: { [unowned self] in sessionEnded(path) },
      found: { [unowned self] in apply($0, path) })
  }

  private func apply(_ found: [String: BusMessage.Property], _ path: String) {
    if case .bool(let isLocked) = found["LockedHint"] {
      screenIs(isLocked, path, isBaseline: isBaseline())
    }
    if found["State"] == .string("closing") { sessionEnded(path) }
  }

  private func handleChange(_ message: BusMessage, _ path: String) {
    guard message.string() == Self.sessionInterface else { return }
    let changed = message.properties()
    if case .bool(let isLocked) = changed["LockedHint"] {
      screenIs(isLocked, path, isBaseline: false)
    }
    // What changed without its value, and "State", which is never in such a message.
    if changed["Active"] != nil || message.strings().contains("LockedHint") { refresh(path) }
  }

  private func screenIs(_ isLocked: Bool, _ path: String, isBaseline: Bool) {
    let isNew = states.becameLocked(path, isLocked, isBaseline: isBaseline)
    if isNew, options.watchesScreen { lock(.screenLocked) }
  }

  private func sessionEnded(_ path: String) {
    let decides = ownSession ?? displaySession
    if path == displaySession { displaySession = nil }
    if path == ownSession { ownSession = nil }
    if path == decides { lock(.sessionEnded) }
  }

  // MARK: Asking

  private func properties(
    of path: String, gone: @escaping () -> Void,
    found: @escaping ([String: BusMessage.Property]) -> Void
  ) {
    bus?.call(
      Self.service, path, Self.propertiesInterface, "GetAll", [.string(Self.sessionInterface)]
    ) { answer in
      guard let answer else { return }
      if answer.saysItIsGone {
        gone()
      } else if !answer.isError {
        found(answer.properties())
      }
    }
  }

  /// `answered` gets nil instead of an error.
  private func askManager(
    _ member: String, _ arguments: BusValue..., answered: @escaping (BusMessage?) -> Void
  ) {
    askManager(member, arguments, answered: answered)
  }

  private func askManager(
    _ member: String, _ arguments: [BusValue], answered: @escaping (BusMessage?) -> Void
  ) {
    bus?.call(Self.service, Self.managerPath, Self.managerInterface, member, arguments) { answer in
      answered(answer.flatMap { $0.isError ? nil : $0 })
    }
  }

  /// Reads one property.
  private func read(
    _ property: String, _ interface: String, _ path: String,
    _ handler: @escaping (BusMessage) -> Void
  ) {
    let words = [BusValue.string(interface), .string(property)]
    bus?.call(Self.service, path, Self.propertiesInterface, "Get", words) { answer in
      if let answer, !answer.isError { handler(answer) }
    }
  }
}
