import Glibc
import Platform
import Synchronization

/// A long job on one thread per processor. The first thread shows how far it is, prints what
/// happens, and stops it in order when a signal says so.
final class TransferRun: Sendable {
  private let files = Atomic(0)
  private let bytes = Atomic<Int64>(0)
  private let stops = Atomic(false)
  private let state = ConditionLock(State())
  private let total: (files: Int, bytes: Int64)

  private struct State {
    var messages: [String] = []
    var threadCount = 0
    var failure: CommandError?
  }

  init(files: Int, bytes: Int64) { total = (files, bytes) }

  /// No more files are to be begun.
  var isStopping: Bool { stops.load(ordering: .relaxed) }

  func count(files: Int = 0, bytes: Int64 = 0) {
    self.files.add(files, ordering: .relaxed)
    self.bytes.add(bytes, ordering: .relaxed)
  }

  /// One line for standard error, soon.
  func say(_ line: String) { state.withLock { $0.messages.append(line) } }

  /// Ends all after the files under way, with this error.
  func fail(_ error: CommandError) {
    state.withLock { if $0.failure == nil { $0.failure = error } }
    stops.store(true, ordering: .relaxed)
  }

  /// What `fail` was told first.
  var failure: CommandError? { state.withLock { $0.failure } }

  /// Runs `work` on every thread until each returns. The signal that stopped it, if one did; the
  /// second one ends the program at once.
  func run(
    threadCount: Int = max(1, Int(sysconf(CInt(_SC_NPROCESSORS_ONLN)))),
    _ work: @escaping @Sendable () -> Void
  ) throws(CommandError) -> CInt? {
    let signals = try about("signals") { () throws(Errno) in try HeldSignals() }
    var threads: [NativeThread] = []
    for _ in 0..<threadCount {
      state.withLock { $0.threadCount += 1 }
      do throws(Errno) {
        threads.append(
          try NativeThread(named: "transfer") {
            work()
            self.state.withLock { $0.threadCount -= 1 }
          })
      } catch {
        // With fewer threads it takes longer, with none it fails.
        state.withLock { $0.threadCount -= 1 }
        if threads.isEmpty { throw CommandError("threads", error) }
        break
      }
    }
    var progress = TransferProgress()
    var signal: CInt?
    while !state.withLock(
      when: { $0.threadCount == 0 }, forMilliseconds: Self.tickMilliseconds, { _ in })
    {
      report(&progress)
      guard let number = signals.take() else { continue }
      progress.clear()
      if number == SIGTSTP || signal != nil {
        signals.deliver(number)
        continue
      }
      signal = number
      stops.store(true, ordering: .relaxed)
      Terminal.note("stopping after the files under way; once more stops at once")
    }
    for thread in threads { thread.join() }
    report(&progress)
    progress.clear()
    return signal
  }

  /// Prints what was said since, where no thread runs.
  func flush() {
    let messages = state.withLock { state in
      defer { state.messages = [] }
      return state.messages
    }
    for message in messages { Terminal.note(Terminal.clean(message)) }
  }

  private static let tickMilliseconds = 100

  private func report(_ progress: inout TransferProgress) {
    if state.withLock({ !$0.messages.isEmpty }) { progress.clear() }
    flush()
    var now = Progress.State(
      files: files.load(ordering: .relaxed), bytes: bytes.load(ordering: .relaxed))
    now.totalFiles = total.files
    now.totalBytes = total.bytes
    progress.show(now)
  }

  /// Ends the program as the signal would have.
  static func end(by signal: CInt) -> ExitCode {
    kill(getpid(), signal)
    return .failed
  }
}

/// A bar where somebody looks; a line now and then where standard error goes into a file.
private struct TransferProgress {
  private var bar = Progress()
  private var began = Self.seconds
  private var printed = Self.seconds

  private static let secondsBetweenLines = 10.0

  mutating func show(_ state: Progress.State) {
    if Progress.isShown { return bar.show(state) }
    let now = Self.seconds
    guard now - printed >= Self.secondsBetweenLines else { return }
    printed = now
    let rate = Double(state.bytes) / max(now - began, 0.001)
    // All but the bar itself.
    let parts = Progress.line(state, rate: rate, width: 200).components(separatedBy: "]  ")
    Terminal.note(parts.last.map { $0.trimmed } ?? "")
  }

  mutating func clear() { bar.clear() }

  private static var seconds: Double {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
  }
}

extension String {
  fileprivate func components(separatedBy separator: String) -> [String] {
    guard let range = firstRange(of: separator) else { return [self] }
    return [String(self[..<range.lowerBound]), String(self[range.upperBound...])]
  }

  fileprivate var trimmed: String { String(drop { $0 == " " }) }
}
