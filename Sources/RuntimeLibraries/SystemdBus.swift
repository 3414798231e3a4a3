import Glibc

/// sd-bus, the D-Bus client of libsystemd, which may be missing: loaded when first asked for. Each
/// member is the C function of its name. Source: sd-bus(3).
package struct SystemdBus: @unchecked Sendable {
  package struct NotInstalled: Error, Sendable, CustomStringConvertible {
    package let description: String
  }

  package typealias Connection = OpaquePointer
  package typealias Message = OpaquePointer
  package typealias Slot = OpaquePointer
  package typealias Text = UnsafePointer<CChar>
  /// "sd_bus_message_handler_t": message, user data, an error to fill in.
  package typealias Handler =
    @convention(c) (Message?, UnsafeMutableRawPointer?, UnsafeMutableRawPointer?) -> CInt
  /// "sd_bus_destroy_t": user data.
  package typealias Destroy = @convention(c) (UnsafeMutableRawPointer?) -> Void

  // The connection.
  package let new: @convention(c) (UnsafeMutablePointer<Connection?>) -> CInt
  package let setAddress: @convention(c) (Connection, Text) -> CInt
  package let setBusClient: @convention(c) (Connection, CInt) -> CInt
  package let negotiateDescriptors: @convention(c) (Connection, CInt) -> CInt
  package let start: @convention(c) (Connection) -> CInt
  package let closeUnref: @convention(c) (Connection) -> Connection?
  package let isOpen: @convention(c) (Connection) -> CInt
  package let getDescriptor: @convention(c) (Connection) -> CInt
  package let getEvents: @convention(c) (Connection) -> CInt
  /// Microseconds of CLOCK_MONOTONIC, `UInt64.max` for none.
  package let getTimeout: @convention(c) (Connection, UnsafeMutablePointer<UInt64>) -> CInt
  package let process: @convention(c) (Connection, UnsafeMutablePointer<Message?>?) -> CInt
  package let addMatchAsync:
    @convention(c) (
      Connection, UnsafeMutablePointer<Slot?>, Text, Handler, Handler?, UnsafeMutableRawPointer
    ) -> CInt
  package let callAsync:
    @convention(c) (
      Connection, UnsafeMutablePointer<Slot?>, Message, Handler, UnsafeMutableRawPointer, UInt64
    ) -> CInt
  package let slotSetDestroyCallback: @convention(c) (Slot, Destroy) -> CInt
  package let slotSetFloating: @convention(c) (Slot, CInt) -> CInt
  package let slotUnref: @convention(c) (Slot) -> Slot?

  // Messages to send.
  package let messageNewMethodCall:
    @convention(c) (Connection, UnsafeMutablePointer<Message?>, Text, Text, Text, Text) -> CInt
  package let messageAppendBasic: @convention(c) (Message, CChar, UnsafeRawPointer) -> CInt
  package let messageOpenContainer: @convention(c) (Message, CChar, Text) -> CInt
  package let messageCloseContainer: @convention(c) (Message) -> CInt
  package let messageUnref: @convention(c) (Message) -> Message?

  // Messages that came.
  package let messageIsMethodError: @convention(c) (Message, Text?) -> CInt
  package let messageGetSender: @convention(c) (Message) -> Text?
  package let messageGetPath: @convention(c) (Message) -> Text?
  package let messageGetMember: @convention(c) (Message) -> Text?
  package let messageReadBasic: @convention(c) (Message, CChar, UnsafeMutableRawPointer) -> CInt
  package let messageEnterContainer: @convention(c) (Message, CChar, Text) -> CInt
  package let messageExitContainer: @convention(c) (Message) -> CInt
  package let messagePeekType:
    @convention(c) (Message, UnsafeMutablePointer<CChar>, UnsafeMutablePointer<Text?>) -> CInt
  package let messageSkip: @convention(c) (Message, Text) -> CInt

  /// The library. It stays loaded, and what the first call found holds for all.
  package static func load() throws(NotInstalled) -> SystemdBus { try loaded.get() }

  private static let loaded: Result<SystemdBus, NotInstalled> = {
    do throws(NotInstalled) { return .success(try SystemdBus()) } catch { return .failure(error) }
  }()

  private init() throws(NotInstalled) {
    guard let library = dlopen(OptionalLibrary.systemd.rawValue, RTLD_NOW) else {
      throw Self.missing()
    }
    new = try Self.function("new", library)
    setAddress = try Self.function("set_address", library)
    setBusClient = try Self.function("set_bus_client", library)
    negotiateDescriptors = try Self.function("negotiate_fds", library)
    start = try Self.function("start", library)
    closeUnref = try Self.function("close_unref", library)
    isOpen = try Self.function("is_open", library)
    getDescriptor = try Self.function("get_fd", library)
    getEvents = try Self.function("get_events", library)
    getTimeout = try Self.function("get_timeout", library)
    process = try Self.function("process", library)
    addMatchAsync = try Self.function("add_match_async", library)
    callAsync = try Self.function("call_async", library)
    slotSetDestroyCallback = try Self.function("slot_set_destroy_callback", library)
    slotSetFloating = try Self.function("slot_set_floating", library)
    slotUnref = try Self.function("slot_unref", library)
    messageNewMethodCall = try Self.function("message_new_method_call", library)
    messageAppendBasic = try Self.function("message_append_basic", library)
    messageOpenContainer = try Self.function("message_open_container", library)
    messageCloseContainer = try Self.function("message_close_container", library)
    messageUnref = try Self.function("message_unref", library)
    messageIsMethodError = try Self.function("message_is_method_error", library)
    messageGetSender = try Self.function("message_get_sender", library)
    messageGetPath = try Self.function("message_get_path", library)
    messageGetMember = try Self.function("message_get_member", library)
    messageReadBasic = try Self.function("message_read_basic", library)
    messageEnterContainer = try Self.function("message_enter_container", library)
    messageExitContainer = try Self.function("message_exit_container", library)
    messagePeekType = try Self.function("message_peek_type", library)
    messageSkip = try Self.function("message_skip", library)
  }

  /// `Function` has to be the C function's type.
  private static func function<Function>(
    _ name: String, _ library: UnsafeMutableRawPointer
  ) throws(NotInstalled) -> Function {
    guard let address = dlsym(library, "sd_bus_" + name) else { throw missing() }
    return unsafeBitCast(address, to: Function.self)
  }

  private static func missing() -> NotInstalled {
    let said = dlerror().map { String(cString: $0) } ?? "libsystemd.so.0"
    return NotInstalled(description: "libsystemd is not installed, or too old (\(said))")
  }
}
