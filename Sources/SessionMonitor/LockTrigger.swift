/// Why a folder locks.
package enum LockTrigger: String, Equatable, Sendable, CaseIterable {
  case idle
  case screenLocked
  case suspending
  case shuttingDown
  /// The user logs out, or the user's manager stops.
  case sessionEnded
  /// `photovault lock`.
  case requested

  /// For messages: "locked (screen locked)".
  package var reason: String {
    switch self {
    case .idle: "not in use"
    case .screenLocked: "screen locked"
    case .suspending: "going to sleep"
    case .shuttingDown: "shutting down"
    case .sessionEnded: "session ended"
    case .requested: "asked to"
    }
  }
}
