import Glibc
import Synchronization

/// One statement about POSIX and a function that finds out whether a file system keeps it.
package struct Check: Sendable, CustomStringConvertible {
  package enum Needs: Sendable {
    case anyDriver
    /// mmap, locks and the like, which only exist behind a mount point.
    case systemCalls
  }

  package let name: String
  package let needs: Needs
  private let body: @Sendable (Volume) throws -> Void

  package init(
    _ name: String, needs: Needs = .anyDriver, _ body: @escaping @Sendable (Volume) throws -> Void
  ) {
    self.name = name
    self.needs = needs
    self.body = body
  }

  package var description: String { name }

  private static let timeLimitSeconds = 100

  /// Runs in a new directory of its own. A check that hangs is given up: `abandon` may then free
  /// its thread, and the failure says so.
  package func run(on driver: any FileSystemDriver, abandon: @Sendable () -> Void = {}) throws {
    let outcome = Outcome()
    let directory = Self.newDirectoryName(for: name)
    try Background.start { [self] in
      outcome.finish(
        Result {
          let root = Volume(driver, base: "")
          try root.mkdir(directory)
          let volume = Volume(driver, base: directory)
          defer { volume.closeAll() }
          try body(volume)
        })
    }
    guard let result = outcome.wait(seconds: Self.timeLimitSeconds) else {
      abandon()
      throw CheckFailure("not done after \(Self.timeLimitSeconds) s", #filePath, #line)
    }
    try result.get()
  }

  private static let counter = Atomic<Int>(0)

  private static func newDirectoryName(for name: String) -> Path {
    let number = counter.wrappingAdd(1, ordering: .relaxed).newValue
    return Path("\(number)-\(name.prefix(20))")
  }
}

/// A result that another thread delivers.
private final class Outcome: Sendable {
  private let result = Mutex<Result<Void, any Error>?>(nil)

  func finish(_ value: Result<Void, any Error>) { result.withLock { $0 = value } }

  func wait(seconds: Int) -> Result<Void, any Error>? {
    let pollMicroseconds: UInt32 = 500
    let end = Self.now() + Int64(seconds) * 1_000_000_000
    while Self.now() < end {
      if let value = result.withLock({ $0 }) { return value }
      usleep(pollMicroseconds)
    }
    return nil
  }

  private static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.total
  }
}

/// A detached thread with a stack that deep recursion in debug builds fits into.
package enum Background {
  private final class Work: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
  }

  package static func start(_ body: @escaping @Sendable () -> Void) throws {
    let work = Unmanaged.passRetained(Work(body))
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    defer { pthread_attr_destroy(&attributes) }
    var thread = pthread_t()
    let code = pthread_create(
      &thread, &attributes,
      { argument in
        if let argument { Unmanaged<Work>.fromOpaque(argument).takeRetainedValue().body() }
        return nil
      }, work.toOpaque())
    if code != 0 {
      work.release()
      throw CheckFailure("pthread_create: \(code)", #filePath, #line)
    }
  }
}
