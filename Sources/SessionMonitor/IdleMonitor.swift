/// Decides when a folder that nobody uses locks. Times are seconds of one clock that counts sleep.
package struct IdleMonitor: Sendable {
  package enum Action: Equatable, Sendable {
    case wait
    /// Lock, unless a program has a file open.
    case lock
    /// Lock, whoever has a file open.
    case lockByForce
  }

  /// How long to leave programs alone that had a file open at the last try.
  private static let pause = 5

  private let limit: Int
  private let forcedLimit: Int
  private var nextTry = 0

  /// 0 is never.
  package init(limit: Int, forcedLimit: Int) {
    self.limit = limit
    self.forcedLimit = forcedLimit
  }

  /// Whether there is anything to watch.
  package var isActive: Bool { limit > 0 || forcedLimit > 0 }

  package func action(now: Int, lastUse: Int) -> Action {
    let idle = now - lastUse
    if forcedLimit > 0, idle >= forcedLimit { return .lockByForce }
    if limit > 0, idle >= limit, now >= nextTry { return .lock }
    return .wait
  }

  /// The last try found a program with a file open.
  package mutating func wasBusy(now: Int) { nextTry = now + Self.pause }
}
