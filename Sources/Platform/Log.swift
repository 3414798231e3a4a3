import Glibc
import Synchronization

/// Lines for whoever runs the mount: standard error in the foreground, the system log otherwise.
///
/// A line may name a photo, never hold a byte of one, a password or a key.
package enum Log {
  package enum Level: Int32, Sendable {
    case error = 3
    case warning = 4
    case notice = 5

    var word: String {
      switch self {
      case .error: "error"
      case .warning: "warning"
      case .notice: "notice"
      }
    }
  }

  package enum Destination: Sendable {
    case standardError
    /// syslog(3), which the journal reads.
    case systemLog
    /// For tests.
    case function(@Sendable (Level, String) -> Void)
  }

  private static let destination = Mutex<Destination>(.standardError)

  package static func send(to newDestination: Destination) {
    destination.withLock { $0 = newDestination }
    if case .systemLog = newDestination { openlog(nil, LOG_PID, LOG_USER) }
  }

  package static var isSystemLog: Bool {
    if case .systemLog = destination.withLock({ $0 }) { true } else { false }
  }

  package static func error(_ message: String) { write(.error, message) }
  package static func warning(_ message: String) { write(.warning, message) }
  package static func notice(_ message: String) { write(.notice, message) }

  private static func write(_ level: Level, _ message: String) {
    // A name may hold a line break or what steers a terminal: one event stays one line of text.
    let line = String(message.unicodeScalars.map { isControl($0) ? "?" : Character($0) })
    switch destination.withLock({ $0 }) {
    case .standardError:
      let bytes = Array("photovault: \(level.word): \(line)\n".utf8)
      _ = Glibc.write(2, bytes, bytes.count)
    case .systemLog:
      line.withCString { text in withVaList([text]) { vsyslog(level.rawValue, "%s", $0) } }
    case .function(let function):
      function(level, line)
    }
  }

  private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029: true  // C0, C1, line and paragraph separator
    default: false
    }
  }
}
