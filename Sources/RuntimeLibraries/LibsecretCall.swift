import Platform

/// One thing asked of the Secret Service, in the thread that waits for it.
struct LibsecretCall: Sendable {
  typealias Object = LibsecretSymbols.Object
  typealias Failure = Libsecret.Failure

  let symbols: LibsecretSymbols
  /// Cancelled when the time is up.
  let cancellable: LibsecretObject

  private static let sessionBus: CInt = 2  // G_BUS_TYPE_SESSION

  /// The connection to the service; GLib and libsecret keep one for the whole process.
  func service() throws(Failure) -> LibsecretObject {
    let bus: LibsecretObject
    do throws(Failure) {
      bus = try object { symbols.bus(Self.sessionBus, cancellable.pointer, $0) }
    } catch {
      if case .refused(let text) = error { throw .noBus(text) }
      throw error
    }
    // GLib would end this process along with the bus; a mount outlives it.
    symbols.setExitOnClose(bus.pointer, 0)
    return try object { symbols.service(0, cancellable.pointer, $0) }
  }

  func items(
    _ service: LibsecretObject, _ attributes: [String: String]
  ) throws(Failure) -> [LibsecretObject] {
    let all: CInt = 1 << 1  // SECRET_SEARCH_ALL: not only the first; without UNLOCK nobody is asked
    let list = try withTable(attributes) { table throws(Failure) in
      try checked { symbols.search(service.pointer, nil, table, all, cancellable.pointer, $0) }
    }
    return takeList(list)
  }

  /// Asks whoever sits there, if the service finds that needed. Throws `.dismissed`.
  func unlock(_ service: LibsecretObject, _ object: LibsecretObject) throws(Failure) {
    let list = symbols.append(nil, object.pointer)
    defer { symbols.freeList(list) }
    var unlocked: Object?
    let count = try checked {
      symbols.unlock(service.pointer, list, cancellable.pointer, &unlocked, $0)
    }
    _ = takeList(unlocked)
    if count < 1 { throw .dismissed }
  }

  /// The object that `body` returns a reference of. Throws `.dismissed` where there is none and no
  /// error: so libsecret tells of a question that was not answered.
  func object(
    _ body: (LibsecretSymbols.ErrorPlace) -> Object?
  ) throws(Failure) -> LibsecretObject {
    guard let object = try checked(body) else { throw .dismissed }
    return LibsecretObject(symbols, owning: object)
  }

  func withTable<Result>(
    _ attributes: [String: String], _ body: (Object) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    guard
      let table = symbols.makeTable(
        symbols.textHash, symbols.textEquality, symbols.freeAddress, symbols.freeAddress)
    else { throw .refused("out of memory") }
    defer { symbols.releaseTable(table) }
    for (name, value) in attributes {
      _ = symbols.insert(table, symbols.copyText(name), symbols.copyText(value))
    }
    return try body(table)
  }

  /// Runs `body` with a place for a `GError`, and throws what was put there.
  func checked<Result>(
    _ body: (LibsecretSymbols.ErrorPlace) -> Result
  ) throws(Failure) -> Result {
    var error: Object?
    let result = body(&error)
    guard let error else { return result }
    defer { symbols.freeError(error) }
    // struct GError { GQuark domain; gint code; gchar *message; }
    let domain = symbols.quarkText(error.load(as: UInt32.self)).map { String(cString: $0) }
    let message = error.load(fromByteOffset: 8, as: LibsecretSymbols.Text?.self)
    throw Failure(
      domain: domain ?? "", code: error.load(fromByteOffset: 4, as: Int32.self),
      message: message.map { String(cString: $0) } ?? "")
  }

  /// The list's own references; the list is freed.
  private func takeList(_ list: Object?) -> [LibsecretObject] {
    var objects: [LibsecretObject] = []
    // struct GList { gpointer data; GList *next; GList *prev; }
    var rest = list
    while let node = rest {
      if let object = node.load(as: Object?.self) {
        objects.append(LibsecretObject(symbols, owning: object))
      }
      rest = node.load(fromByteOffset: MemoryLayout<Object>.size, as: Object?.self)
    }
    symbols.freeList(list)
    return objects
  }
}

/// A reference of a GObject, whose count is thread-safe.
final class LibsecretObject: @unchecked Sendable {
  let pointer: LibsecretSymbols.Object
  private let symbols: LibsecretSymbols

  init(_ symbols: LibsecretSymbols, owning pointer: LibsecretSymbols.Object) {
    self.symbols = symbols
    self.pointer = pointer
  }

  deinit { symbols.release(pointer) }
}

extension Libsecret.Failure {
  /// Source: gioenums.h (GIOErrorEnum, GDBusError), secret-types.h (SecretError).
  init(domain: String, code: Int32, message: String) {
    switch (domain, code) {
    case ("g-io-error-quark", 19), ("g-io-error-quark", 24),  // CANCELLED (by us alone), TIMED_OUT
      ("g-dbus-error-quark", 12), ("g-dbus-error-quark", 20):  // TIMEOUT, TIMED_OUT
      self = .timedOut
    case ("g-dbus-error-quark", 2...4),  // SERVICE_UNKNOWN, NAME_HAS_NO_OWNER, NO_REPLY: it ended
      ("g-dbus-error-quark", 23...34):  // SPAWN_...: it can't be started
      self = .noService(message)
    case ("secret-error", 2): self = .locked  // SECRET_ERROR_IS_LOCKED
    case ("secret-error", 3): self = .missing  // SECRET_ERROR_NO_SUCH_OBJECT
    default: self = .refused(message)
    }
  }
}
