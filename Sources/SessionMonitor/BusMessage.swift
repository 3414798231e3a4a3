import Glibc
import Platform
import RuntimeLibraries

/// An argument of a method. Source: D-Bus specification, type system.
enum BusValue {
  case byte(UInt8)
  case int32(Int32)
  case uint32(UInt32)
  case string(String)
  case strings([String])
  /// "a{sv}".
  indirect case dictionary([(String, BusValue)])

  private var signature: String {
    switch self {
    case .byte: "y"
    case .int32: "i"
    case .uint32: "u"
    case .string: "s"
    case .strings: "as"
    case .dictionary: "a{sv}"
    }
  }

  /// false: the message can't be used any more.
  func append(to message: SystemdBus.Message, _ library: SystemdBus) -> Bool {
    func contain(_ type: Unicode.Scalar, _ contents: String, _ body: () -> Bool) -> Bool {
      library.messageOpenContainer(message, CChar(type), contents) >= 0 && body()
        && library.messageCloseContainer(message) >= 0
    }
    func basic(_ type: Unicode.Scalar, _ value: UnsafeRawPointer) -> Bool {
      library.messageAppendBasic(message, CChar(type), value) >= 0
    }
    switch self {
    case .byte(let value): return withUnsafePointer(to: value) { basic("y", $0) }
    case .int32(let value): return withUnsafePointer(to: value) { basic("i", $0) }
    case .uint32(let value): return withUnsafePointer(to: value) { basic("u", $0) }
    case .string(let value): return value.withCString { basic("s", $0) }
    case .strings(let values):
      return contain("a", "s") {
        values.allSatisfy { BusValue.string($0).append(to: message, library) }
      }
    case .dictionary(let entries):
      return contain("a", "{sv}") {
        entries.allSatisfy { name, value in
          contain("e", "sv") {
            BusValue.string(name).append(to: message, library)
              && contain("v", value.signature) { value.append(to: message, library) }
          }
        }
      }
    }
  }
}

/// A message that came, valid while its handler runs. Values are read one after the other.
struct BusMessage {
  enum Property: Equatable {
    case bool(Bool)
    case string(String)
  }

  private let message: SystemdBus.Message
  private let library: SystemdBus

  init(_ message: SystemdBus.Message, _ library: SystemdBus) {
    self.message = message
    self.library = library
  }

  var isError: Bool { library.messageIsMethodError(message, nil) > 0 }

  /// An error that says that the object asked about does not exist.
  var saysItIsGone: Bool {
    [
      "org.freedesktop.login1.NoSuchSession", "org.freedesktop.DBus.Error.UnknownObject",
      "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface",
    ].contains { (name: String) in library.messageIsMethodError(message, name) > 0 }
  }

  var sender: String? { library.messageGetSender(message).map { String(cString: $0) } }
  var path: String? { library.messageGetPath(message).map { String(cString: $0) } }
  var member: String? { library.messageGetMember(message).map { String(cString: $0) } }

  func string() -> String? { text("s") }
  func objectPath() -> String? { text("o") }

  func bool() -> Bool? {
    var value: CInt = 0
    return read("b", &value) ? value != 0 : nil
  }

  func uint32() -> UInt32? {
    var value: UInt32 = 0
    return read("u", &value) ? value : nil
  }

  /// A copy of the descriptor that the message carries.
  func descriptor() -> FileDescriptor? {
    var value: CInt = -1
    guard read("h", &value) else { return nil }
    return try? Syscalls.duplicate(value)
  }

  /// Reads inside of a container; nil at the end of the one around it, or if it is another.
  func inside<Result>(
    _ type: Unicode.Scalar, _ contents: String, _ body: () -> Result?
  ) -> Result? {
    guard library.messageEnterContainer(message, CChar(type), contents) > 0 else { return nil }
    let result = body()
    // An array is left only from its end.
    return library.messageExitContainer(message) >= 0 ? result : nil
  }

  /// "as".
  func strings() -> [String] {
    inside("a", "s") {
      var all: [String] = []
      while let next = string() { all.append(next) }
      return all
    } ?? []
  }

  /// "a{sv}": those that are a truth value or a text.
  func properties() -> [String: Property] {
    inside("a", "{sv}") {
      var all: [String: Property] = [:]
      while inside("e", "sv", { addProperty(to: &all) }) != nil {}
      return all
    } ?? [:]
  }

  private func addProperty(to all: inout [String: Property]) -> Bool? {
    guard let name = string() else { return nil }
    var type: CChar = 0
    var contents: SystemdBus.Text?
    guard library.messagePeekType(message, &type, &contents) > 0, let contents else { return nil }
    switch String(cString: contents) {
    case "b": all[name] = inside("v", "b") { bool().map { .bool($0) } }
    case "s": all[name] = inside("v", "s") { string().map { .string($0) } }
    default:
      if library.messageSkip(message, "v") < 0 { return nil }
    }
    return true
  }

  private func text(_ type: Unicode.Scalar) -> String? {
    var value: SystemdBus.Text?
    return read(type, &value) ? value.map { String(cString: $0) } : nil
  }

  private func read(_ type: Unicode.Scalar, _ value: UnsafeMutableRawPointer) -> Bool {
    library.messageReadBasic(message, CChar(type), value) > 0
  }
}

extension CChar {
  /// The letter of a D-Bus type.
  init(_ scalar: Unicode.Scalar) { self.init(truncatingIfNeeded: scalar.value) }
}
