package import Platform
import Synchronization

/// The desktop's Secret Service by way of libsecret, which is loaded when it is first asked for.
///
/// Programs behind that service hang, and libsecret waits for them even when it is told to stop (a
/// question on the screen). So each call runs in a thread of its own: when its time is up it is
/// cancelled, which ends it or at least keeps it from going on to its next step, and if it still
/// doesn't return the thread is given up. All that the thread touches belongs to it. From then on
/// every call fails at once.
///
/// GLib's own threads come from those threads and so inherit that no signal is delivered to them.
package final class Libsecret: Sendable {
  package enum Failure: Error, Hashable, Sendable {
    /// The library is not there, or lacks a function.
    case notInstalled
    case noBus(String)
    /// Nobody on the bus offers the service.
    case noService(String)
    case locked
    /// It is locked, and who was asked to unlock it didn't.
    case dismissed
    /// The item was there and is no more.
    case missing
    case timedOut
    /// Another answer, in the service's own words.
    case refused(String)
  }

  /// An item of the service. Its secret is not known yet.
  package struct Item: Sendable {
    fileprivate let object: LibsecretObject
    package let isLocked: Bool
  }

  /// The collection for new items.
  package struct Collection: Sendable {
    /// nil where there is none yet.
    fileprivate let object: LibsecretObject?
    package let isLocked: Bool
  }

  package static let shared = Libsecret()

  private struct State {
    var symbols: LibsecretSymbols?
    var hasTimedOut = false
  }

  private static let answerMilliseconds = 10_000
  /// For somebody to type a password.
  private static let questionMilliseconds = 120_000
  /// For a cancelled call to return.
  private static let farewellMilliseconds = 1_000

  private let state = Mutex(State())

  /// Items that have all these attributes, locked ones, too. Nobody is asked anything.
  package func items(matching attributes: [String: String]) throws(Failure) -> [Item] {
    try perform { call throws(Failure) in
      try call.items(call.service(), attributes).map { object in
        Item(object: object, isLocked: call.symbols.itemIsLocked(object.pointer) != 0)
      }
    }
  }

  /// Where new items go. Nobody is asked anything.
  package func defaultCollection() throws(Failure) -> Collection {
    try perform { call throws(Failure) in
      let service = try call.service()
      let pointer = try call.checked {
        call.symbols.collection(service.pointer, "default", 0, call.cancellable.pointer, $0)
      }
      guard let pointer else { return Collection(object: nil, isLocked: true) }
      let object = LibsecretObject(call.symbols, owning: pointer)
      return Collection(
        object: object, isLocked: call.symbols.collectionIsLocked(pointer) != 0)
    }
  }

  /// The service may ask on the screen. Throws `.dismissed`.
  package func unlock(_ item: Item) throws(Failure) {
    try perform(within: Self.questionMilliseconds) { call throws(Failure) in
      try call.unlock(call.service(), item.object)
    }
  }

  /// The same for the collection; where there is none the service makes one, and asks for its
  /// password.
  package func unlock(_ collection: Collection) throws(Failure) -> Collection {
    try perform(within: Self.questionMilliseconds) { call throws(Failure) in
      let service = try call.service()
      if let object = collection.object {
        try call.unlock(service, object)
        return Collection(object: object, isLocked: false)
      }
      let made = try call.object {
        call.symbols.makeCollection(
          service.pointer, "Default keyring", "default", 0, call.cancellable.pointer, $0)
      }
      return Collection(object: made, isLocked: false)
    }
  }

  /// Throws `.locked`.
  package func secret(of item: Item) throws(Failure) -> SecretBytes {
    let secret = try perform { call throws(Failure) in
      _ = try call.checked {
        call.symbols.loadSecret(item.object.pointer, call.cancellable.pointer, $0)
      }
      guard let value = call.symbols.secret(item.object.pointer) else { throw Failure.locked }
      defer { call.symbols.releaseValue(value) }
      var count = 0
      let start = call.symbols.valueBytes(value, &count)
      let bytes = UnsafeMutableRawBufferPointer(start: start, count: start == nil ? 0 : count)
      defer { SecretBytes.wipe(bytes) }
      return try Secret(copying: UnsafeRawBufferPointer(bytes))
    }
    return try secret.copy()
  }

  package func replaceSecret(
    of item: Item, with secret: borrowing SecretBytes
  ) throws(Failure) {
    let secret = try Secret(secret)
    try perform { call throws(Failure) in
      try secret.withValue(call) { value throws(Failure) in
        _ = try call.checked {
          call.symbols.setSecret(item.object.pointer, value, call.cancellable.pointer, $0)
        }
      }
    }
  }

  /// A further item, also beside one with the same attributes. Throws `.locked`.
  package func add(
    to collection: Collection, attributes: [String: String], label: String,
    secret: borrowing SecretBytes
  ) throws(Failure) {
    guard let target = collection.object else { throw .locked }
    let secret = try Secret(secret)
    try perform { call throws(Failure) in
      try secret.withValue(call) { value throws(Failure) in
        _ = try call.withTable(attributes) { table throws(Failure) in
          try call.object {
            call.symbols.makeItem(
              target.pointer, nil, table, label, value, 0, call.cancellable.pointer, $0)
          }
        }
      }
    }
  }

  package func delete(_ item: Item) throws(Failure) {
    try perform { call throws(Failure) in
      _ = try call.checked {
        call.symbols.delete(item.object.pointer, call.cancellable.pointer, $0)
      }
    }
  }
}

extension Libsecret {
  /// Runs `body` in a thread of its own and waits at most so long.
  private func perform<Value: Sendable>(
    within milliseconds: Int = Libsecret.answerMilliseconds,
    _ body: @escaping @Sendable (LibsecretCall) throws(Failure) -> Value
  ) throws(Failure) -> Value {
    let symbols = try loaded()
    guard let pointer = symbols.makeCancellable() else { throw .refused("out of memory") }
    let cancellable = LibsecretObject(symbols, owning: pointer)
    let answer = ConditionLock<Result<Value, Failure>?>(nil)
    let thread: NativeThread
    do throws(Errno) {
      thread = try NativeThread(named: "secret service") {
        let call = LibsecretCall(symbols: symbols, cancellable: cancellable)
        let result: Result<Value, Failure>
        do throws(Failure) { result = .success(try body(call)) } catch {
          result = .failure(error)
        }
        answer.withLock { $0 = result }
      }
    } catch { throw .refused(error.description) }

    var result: Result<Value, Failure>?
    func wait(_ milliseconds: Int) -> Bool {
      answer.withLock(
        when: { $0 != nil }, forMilliseconds: milliseconds, { result = $0 })
    }
    let isInTime = wait(milliseconds)
    if !isInTime { symbols.cancel(cancellable.pointer) }
    if isInTime || wait(Self.farewellMilliseconds) { thread.join() }
    if case .some(.failure(.timedOut)) = result { result = nil }
    guard let result else {
      state.withLock { $0.hasTimedOut = true }
      throw .timedOut
    }
    return try result.get()
  }

  private func loaded() throws(Failure) -> LibsecretSymbols {
    let result: Result<LibsecretSymbols, Failure> = state.withLock { state in
      if state.hasTimedOut { return .failure(.timedOut) }
      if let symbols = state.symbols { return .success(symbols) }
      do throws(Failure) {
        let symbols = try LibsecretSymbols()
        state.symbols = symbols
        return .success(symbols)
      } catch { return .failure(error) }
    }
    return try result.get()
  }
}

/// A secret on its way to or from another thread.
private final class Secret: Sendable {
  private let bytes: SecretBytes

  convenience init(_ secret: borrowing SecretBytes) throws(Libsecret.Failure) {
    self.init(try Self.checked { () throws(Errno) in try secret.copy() })
  }

  convenience init(copying source: UnsafeRawBufferPointer) throws(Libsecret.Failure) {
    self.init(try Self.checked { () throws(Errno) in try SecretBytes(copying: source) })
  }

  private init(_ bytes: consuming SecretBytes) { self.bytes = bytes }

  func copy() throws(Libsecret.Failure) -> SecretBytes {
    try Self.checked { () throws(Errno) in try bytes.copy() }
  }

  /// Calls `body` with a `SecretValue` of the bytes.
  func withValue(
    _ call: LibsecretCall, _ body: (LibsecretSymbols.Object) throws(Libsecret.Failure) -> Void
  ) throws(Libsecret.Failure) {
    let value = bytes.withUnsafeBytes { bytes in
      call.symbols.makeValue(bytes.baseAddress, bytes.count, "text/plain")
    }
    guard let value else { throw .refused("out of memory") }
    defer { call.symbols.releaseValue(value) }
    try body(value)
  }

  private static func checked(
    _ body: () throws(Errno) -> SecretBytes
  ) throws(Libsecret.Failure) -> SecretBytes {
    do throws(Errno) { return try body() } catch { throw .refused(error.description) }
  }
}
