import Glibc
import Platform
import RuntimeLibraries

/// Keeps up one connection: connects, and again when it is lost, after ever longer pauses.
final class BusLink {
  private static let firstPause = 250  // milliseconds
  private static let longestPause = 30_000
  /// How long a bus may take until it has answered the first questions.
  private static let patience = 5_000

  /// For messages: "system bus".
  let name: String
  private let address: String
  private let library: SystemdBus
  /// Asks the first questions over a new connection.
  private let began: (Bus) -> Void
  private let ended: () -> Void

  private(set) var bus: Bus?
  /// The first questions of this connection are answered.
  private(set) var isUp = false
  /// Why there is no connection.
  private(set) var failure: String?
  private var pause = firstPause
  private var nextTry = 0
  private var giveUpTime = 0

  init(
    _ name: String, _ address: String, _ library: SystemdBus, began: @escaping (Bus) -> Void,
    ended: @escaping () -> Void
  ) {
    self.name = name
    self.address = address
    self.library = library
    self.began = began
    self.ended = ended
  }

  /// It is known whether the bus can be used.
  var isSettled: Bool { isUp || failure != nil }

  /// When to call `step` at the latest.
  var deadline: Int {
    guard let bus else { return nextTry }
    return min(bus.deadline ?? .max, isUp ? .max : giveUpTime)
  }

  func step(now: Int) {
    do throws(Errno) {
      if bus == nil, now >= nextTry { try connect(now) }
      try bus?.process()
    } catch { return lose(now, "the \(name) can't be reached: \(error)") }
    guard let bus, !isUp else { return }
    if bus.pendingCallCount == 0 {
      if failure != nil { Log.notice("the \(name) can be reached now") }
      failure = nil
      isUp = true
      pause = Self.firstPause
    } else if now >= giveUpTime {
      lose(now, "the \(name) does not answer")
    }
  }

  private func connect(_ now: Int) throws(Errno) {
    giveUpTime = now + Self.patience
    let bus = try Bus(address: address, library)
    self.bus = bus
    began(bus)
  }

  private func lose(_ now: Int, _ why: String) {
    if isUp { Log.warning("\(why); trying again") }
    failure = why
    isUp = false
    bus = nil
    nextTry = now + pause
    pause = min(pause * 2, Self.longestPause)
    ended()
  }
}
