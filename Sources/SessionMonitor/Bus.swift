import Glibc
import Platform
import RuntimeLibraries

/// A connection to a message bus, for one thread. Nothing here waits: answers and signals arrive
/// in `process`.
final class Bus {
  private final class Handler {
    let library: SystemdBus
    let body: (BusMessage?) -> Void

    init(_ library: SystemdBus, _ body: @escaping (BusMessage?) -> Void) {
      self.library = library
      self.body = body
    }
  }

  /// How long a service may take to answer.
  private static let patience: UInt64 = 2_000_000  // microseconds

  private let library: SystemdBus
  private let connection: SystemdBus.Connection
  /// Calls that wait for their answers.
  private(set) var pendingCallCount = 0

  /// Begins to connect. Throws what connect(2) says.
  init(address: String, _ library: SystemdBus) throws(Errno) {
    self.library = library
    var made: SystemdBus.Connection?
    try Self.check(library.new(&made))
    guard let made else { throw .noMemory }
    connection = made
    try Self.check(library.setAddress(made, address))
    try Self.check(library.setBusClient(made, 1))
    try Self.check(library.negotiateDescriptors(made, 1))
    try Self.check(library.start(made))
  }

  deinit { _ = library.closeUnref(connection) }

  // MARK: Asking

  /// Calls `handler` for each signal that `rule` matches.
  /// Source: D-Bus specification, match rules.
  func watch(_ rule: String, _ handler: @escaping (BusMessage) -> Void) {
    let context = Unmanaged.passRetained(
      Handler(library) { if let message = $0 { handler(message) } })
    var slot: SystemdBus.Slot?
    let result = library.addMatchAsync(
      connection, &slot, rule, Self.trampoline, nil, context.toOpaque())
    handOver(slot, context, result)
  }

  /// Calls a method; `handler` gets the answer, which may be an error, or nil if nothing could be
  /// sent. A service that is not running is started, if `destination` is a well-known name.
  func call(
    _ destination: String, _ path: String, _ interface: String, _ member: String,
    _ arguments: [BusValue] = [], _ handler: @escaping (BusMessage?) -> Void
  ) {
    var message: SystemdBus.Message?
    let made = library.messageNewMethodCall(
      connection, &message, destination, path, interface, member)
    guard made >= 0, let message else { return handler(nil) }
    defer { _ = library.messageUnref(message) }
    for argument in arguments {
      guard argument.append(to: message, library) else { return handler(nil) }
    }
    let context = Unmanaged.passRetained(
      Handler(library) { [unowned self] answer in
        pendingCallCount -= 1
        handler(answer)
      })
    var slot: SystemdBus.Slot?
    let result = library.callAsync(
      connection, &slot, message, Self.trampoline, context.toOpaque(), Self.patience)
    pendingCallCount += 1
    if result < 0 { context.takeUnretainedValue().body(nil) }
    handOver(slot, context, result)
  }

  private static var trampoline: SystemdBus.Handler {
    { message, context, _ in
      guard let message, let context else { return 0 }
      let handler = Unmanaged<Handler>.fromOpaque(context).takeUnretainedValue()
      handler.body(BusMessage(message, handler.library))
      return 0
    }
  }

  /// The connection keeps `context` as long as it may call it.
  private func handOver(
    _ slot: SystemdBus.Slot?, _ context: Unmanaged<Handler>, _ result: CInt
  ) {
    guard result >= 0, let slot else { return context.release() }
    _ = library.slotSetDestroyCallback(slot) { context in
      if let context { Unmanaged<Handler>.fromOpaque(context).release() }
    }
    _ = library.slotSetFloating(slot, 1)
    _ = library.slotUnref(slot)
  }

  // MARK: What comes

  /// Sends what waits and handles all that came. Throws when the connection is gone.
  func process() throws(Errno) {
    while true {
      let result = library.process(connection, nil)
      if result < 0 { throw Errno(-result) }
      guard library.isOpen(connection) > 0 else { throw .notConnected }
      if result == 0 { return }
    }
  }

  /// What to wait for before the next `process`.
  var awaited: pollfd {
    let events = library.getEvents(connection)
    return pollfd(
      fd: library.getDescriptor(connection), events: Int16(truncatingIfNeeded: max(events, 0)),
      revents: 0)
  }

  /// When to call `process` at the latest, in milliseconds of CLOCK_MONOTONIC.
  var deadline: Int? {
    var time = UInt64.max
    guard library.getTimeout(connection, &time) >= 0, time != .max else { return nil }
    return Int(clamping: time / 1000)
  }

  private static func check(_ result: CInt) throws(Errno) {
    if result < 0 { throw Errno(-result) }
  }
}
