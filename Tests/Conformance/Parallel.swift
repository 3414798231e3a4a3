import Glibc
import Synchronization

/// Runs a piece of a check on several threads at once.
enum Parallel {
  private final class Gathered: Sendable {
    let state = Mutex<(left: Int, failure: (any Error)?)>((0, nil))
  }

  /// Calls `body` with 0 to `count` - 1, each on a thread of its own, waits for all and throws the
  /// first failure.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
    let gathered = Gathered()
    gathered.state.withLock { $0.left = count }
    for number in 0..<count {
      try Background.start {
        let result = Result { try body(number) }
        gathered.state.withLock { state in
          state.left -= 1
          if case .failure(let error) = result, state.failure == nil { state.failure = error }
        }
      }
    }
    let pollMicroseconds: UInt32 = 500
    while gathered.state.withLock({ $0.left }) > 0 { usleep(pollMicroseconds) }
    if let failure = gathered.state.withLock({ $0.failure }) { throw failure }
  }
}
