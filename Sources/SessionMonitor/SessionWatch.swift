import Glibc
package import Platform
import RuntimeLibraries

/// Watches what locks a folder by itself: the screen, suspend, the end of the session; and tells
/// the user what became of it. A thread of its own keeps a connection to each bus.
///
/// Without libsystemd or a bus there is nothing to watch and nobody to tell; that is no error.
package final class SessionWatch: Sendable {
  package struct Options: Sendable {
    /// D-Bus addresses.
    package let systemBus: String
    package let sessionBus: String
    /// logind's name of the session, if the caller knows it.
    package let sessionID: String?
    package let user: UInt32
    package let watchesScreen: Bool
    /// A screen that is only dark counts as locked.
    package let countsBlanking: Bool
    package let watchesSuspend: Bool

    package init(
      systemBus: String, sessionBus: String, sessionID: String?, user: UInt32,
      watchesScreen: Bool, countsBlanking: Bool, watchesSuspend: Bool
    ) {
      self.systemBus = systemBus
      self.sessionBus = sessionBus
      self.sessionID = sessionID
      self.user = user
      self.watchesScreen = watchesScreen
      self.countsBlanking = countsBlanking
      self.watchesSuspend = watchesSuspend
    }
  }

  /// What can be watched of what was asked for.
  package struct Finding: Equatable, Sendable {
    /// A sentence for the user; empty if nothing was asked for.
    package let text: String
    /// Something can't be watched.
    package let isProblem: Bool
  }

  fileprivate struct State {
    var isStopping = false
    var notices: [Notice] = []
    /// Whether the lock that was begun has locked the folder.
    var lockResult: Bool?
    var finding: Finding?
    /// Nobody waits for `finding` any more.
    var isLate = false
  }

  private let options: Options
  fileprivate let state = ConditionLock(State())
  /// Written to when there is something for the thread to do.
  fileprivate let wake: Pipe

  package init(_ options: Options) throws(Errno) {
    self.options = options
    wake = try Pipe()
  }

  /// Begins to watch, once. `lock` is called on a thread of its own, returns when the folder is
  /// locked, and says whether it is; the machine is not let to sleep before. `late` gets
  /// what `finding` did not wait for.
  package func start(
    late: @escaping @Sendable (Finding) -> Void,
    lock: @escaping @Sendable (LockTrigger) -> Bool
  ) throws(Errno) -> NativeThread {
    try NativeThread(named: "session") { [self] in
      do throws(SystemdBus.NotInstalled) {
        Watcher(options, self, try SystemdBus.load(), late, lock).run()
      } catch {
        settle("\(error)", screen: false, suspend: false, late)
      }
    }
  }

  /// What can be watched, once that is known; nil if it isn't in time: the log gets it then.
  package func finding(withinMilliseconds patience: Int) -> Finding? {
    _ = state.withLock(when: { $0.finding != nil }, forMilliseconds: patience, { _ in })
    return state.withLock { state in
      state.isLate = state.finding == nil
      return state.finding
    }
  }

  /// Shows a notice on the desktop, some time or never.
  package func show(_ notice: Notice) {
    state.withLock { $0.notices.append(notice) }
    wakeUp()
  }

  /// Ends the thread once the last notices are on their way; join it to wait for that.
  package func stop() {
    state.withLock { $0.isStopping = true }
    wakeUp()
  }

  fileprivate func finishLock(_ isLocked: Bool) {
    state.withLock { $0.lockResult = isLocked }
    wakeUp()
  }

  private func wakeUp() { _ = write(wake.writeEnd.rawValue, "x", 1) }

  fileprivate func settle(
    _ reason: String, screen: Bool, suspend: Bool, _ late: (Finding) -> Void
  ) {
    var watched: [String] = []
    var missing: [String] = []
    if options.watchesScreen { screen ? watched.append(Self.screen) : missing.append(Self.screen) }
    if options.watchesSuspend {
      suspend ? watched.append(Self.suspend) : missing.append(Self.suspend)
    }
    let finding =
      missing.isEmpty
      ? Finding(
        text: watched.isEmpty ? "" : "locks " + watched.joined(separator: " and "),
        isProblem: false)
      : Finding(
        text: "will not lock \(missing.joined(separator: " or ")): \(reason)", isProblem: true)
    let isLate = state.withLock { state in
      state.finding = finding
      return state.isLate
    }
    if isLate { late(finding) }
  }

  private static let screen = "with the screen"
  private static let suspend = "before the machine sleeps"
}

/// What the thread knows.
private final class Watcher {
  /// How often to look for what comes without a signal.
  private static let lookInterval = 30_000  // milliseconds
  /// How long after the start a screen that is locked already was so before.
  private static let baselineTime = 5_000
  /// How long the last notices may take.
  private static let farewellTime = 300

  private let options: SessionWatch.Options
  private let watch: SessionWatch
  private let late: (SessionWatch.Finding) -> Void
  private let lock: @Sendable (LockTrigger) -> Bool
  private let library: SystemdBus
  private let began = MonotonicTime.milliseconds

  private let notifier = Notifier()
  private lazy var login = LoginMonitor(
    options, isBaseline: { [unowned self] in isBaseline },
    lock: { [unowned self] in wanted = wanted ?? $0 })
  private lazy var screenSavers = ScreenSaverMonitor(
    isBaseline: { [unowned self] in isBaseline },
    becameActive: { [unowned self] in screenSaverBecameActive($0) })
  private lazy var systemBus = BusLink(
    "system bus", options.systemBus, library, began: { [unowned self] in login.begin($0) },
    ended: { [unowned self] in login.end() })
  private lazy var sessionBus = BusLink(
    "session bus", options.sessionBus, library,
    began: { [unowned self] in if options.watchesScreen { screenSavers.begin($0) } },
    ended: { [unowned self] in
      screenSavers.end()
      notifier.end()
    })

  /// What came and is to be acted on.
  private var wanted: LockTrigger?
  private var isLocking = false
  private var isLocked = false
  private var isSettled = false
  private var nextLook = 0
  private var farewell: Int?

  init(
    _ options: SessionWatch.Options, _ watch: SessionWatch, _ library: SystemdBus,
    _ late: @escaping (SessionWatch.Finding) -> Void,
    _ lock: @escaping @Sendable (LockTrigger) -> Bool
  ) {
    self.options = options
    self.watch = watch
    self.library = library
    self.late = late
    self.lock = lock
  }

  func run() {
    nextLook = began + Self.lookInterval
    while true {
      let now = MonotonicTime.milliseconds
      for link in [systemBus, sessionBus] where farewell == nil || link.bus != nil {
        link.step(now: now)
      }
      if !isSettled, systemBus.isSettled, sessionBus.isSettled { settle() }
      if systemBus.isUp, now >= nextLook {
        nextLook = now + Self.lookInterval
        login.look()
      }
      if let trigger = wanted, !isLocking {
        wanted = nil
        if !isLocked { act(on: trigger) }
      }
      if handleRequests(now) { return }
      waitForEvents()
    }
  }

  /// true: all is done.
  private func handleRequests(_ now: Int) -> Bool {
    var notices: [Notice] = []
    let (isStopping, lockResult) = watch.state.withLock { state in
      swap(&notices, &state.notices)
      defer { state.lockResult = nil }
      return (state.isStopping, state.lockResult)
    }
    if let lockResult { lockEnded(lockResult) }
    if let bus = sessionBus.isUp ? sessionBus.bus : nil {
      for notice in notices { notifier.show(notice, on: bus) }
    }
    guard isStopping else { return false }
    let end = farewell ?? now + Self.farewellTime
    farewell = end
    return now >= end || (notifier.pendingCount == 0 && !isLocking)
  }

  /// Not on this thread: a lock that hangs has to be told of.
  private func act(on trigger: LockTrigger) {
    isLocking = true
    do throws(Errno) {
      _ = try NativeThread(named: "session lock") { [lock, watch] in
        watch.finishLock(lock(trigger))
      }
    } catch {
      watch.finishLock(lock(trigger))
    }
  }

  private func lockEnded(_ isLocked: Bool) {
    isLocking = false
    self.isLocked = isLocked
    if isLocked {
      login.leaveInhibitorToProcess()
    } else {
      // Nothing is won by keeping the machine awake any longer.
      login.releaseInhibitor()
    }
  }

  private var isBaseline: Bool {
    !isSettled && MonotonicTime.milliseconds < began + Self.baselineTime
  }

  /// GNOME says "active" of a screen that is only dark, too. It sets logind's LockedHint when it
  /// locks, so that decides where there is one.
  private func screenSaverBecameActive(_ name: String) {
    let maybeBlank = name == ScreenSaverMonitor.gnome && !options.countsBlanking
    if !(maybeBlank && login.hasSession) { wanted = wanted ?? .screenLocked }
  }

  private func settle() {
    isSettled = true
    let reasons = [systemBus.failure, sessionBus.failure].compactMap { $0 }
    watch.settle(
      reasons.isEmpty ? "there is no logind" : reasons.joined(separator: ", "),
      screen: sessionBus.isUp || login.hasSession, suspend: login.isThere, late)
  }

  private func waitForEvents() {
    var awaited = [pollfd(fd: watch.wake.readEnd.rawValue, events: Int16(POLLIN), revents: 0)]
    var end = farewell ?? (systemBus.isUp ? nextLook : .max)
    for link in [systemBus, sessionBus] {
      if let bus = link.bus { awaited.append(bus.awaited) }
      if farewell == nil || link.bus != nil { end = min(end, link.deadline) }
    }
    let pause = max(0, end - MonotonicTime.milliseconds)
    poll(&awaited, nfds_t(awaited.count), CInt(clamping: end == .max ? -1 : pause))
    guard awaited[0].revents != 0 else { return }
    var bytes: (UInt64, UInt64) = (0, 0)
    _ = withUnsafeMutableBytes(of: &bytes) { read(watch.wake.readEnd.rawValue, $0.baseAddress, 16) }
  }
}
