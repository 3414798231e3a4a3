import Glibc
import Platform
import RuntimeLibraries

/// Who can be reached on a bus, asked once and within a time limit.
package enum BusServices {
  package enum Answer: Equatable, Sendable {
    /// These of the names have an owner.
    case owned([String])
    /// libsystemd is missing, the bus is, or it says nothing.
    case noAnswer
  }

  /// What can say that the screen is locked: on the system bus, on the session bus.
  package static let loginNames = ["org.freedesktop.login1"]
  package static let screenNames = ScreenSaverMonitor.names

  /// Nobody is started by being asked for.
  package static func owned(
    _ names: [String], at address: String, withinMilliseconds patience: Int
  ) -> Answer {
    guard let library = try? SystemdBus.load(), let bus = try? Bus(address: address, library)
    else { return .noAnswer }
    var owned: Set<String> = []
    var answers = 0
    for name in names {
      bus.owner(of: name) { owner in
        answers += 1
        if owner != nil { owned.insert(name) }
      }
    }
    let end = MonotonicTime.milliseconds + patience
    while answers < names.count {
      do throws(Errno) { try bus.process() } catch { return .noAnswer }
      let rest = end - MonotonicTime.milliseconds
      if answers == names.count { break }
      if rest <= 0 { return .noAnswer }
      var wanted = bus.awaited
      poll(&wanted, 1, CInt(rest))
    }
    return .owned(names.filter(owned.contains))
  }
}
