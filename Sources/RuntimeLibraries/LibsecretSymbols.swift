import Glibc

/// The functions of libsecret, and of the GLib beneath it, that this program calls. None of them is
/// variadic. Source: secret-service.h, secret-item.h, secret-collection.h, secret-value.h (0.20).
struct LibsecretSymbols: @unchecked Sendable {
  typealias Object = UnsafeMutableRawPointer
  /// Where a function puts its `GError *`.
  typealias ErrorPlace = UnsafeMutablePointer<Object?>
  typealias Text = UnsafePointer<CChar>

  static let library = OptionalLibrary.secret.rawValue

  // GLib, GObject
  let copyText: @convention(c) (Text) -> Object?
  let freeError: @convention(c) (Object) -> Void
  let quarkText: @convention(c) (UInt32) -> Text?
  /// hash, equality, free key, free value
  let makeTable: @convention(c) (Object?, Object?, Object?, Object?) -> Object?
  let insert: @convention(c) (Object, Object?, Object?) -> CInt
  let releaseTable: @convention(c) (Object) -> Void
  let append: @convention(c) (Object?, Object?) -> Object?
  let freeList: @convention(c) (Object?) -> Void
  let release: @convention(c) (Object) -> Void
  /// Their addresses, for `makeTable`.
  let textHash: Object
  let textEquality: Object
  let freeAddress: Object

  // GIO
  let makeCancellable: @convention(c) () -> Object?
  let cancel: @convention(c) (Object) -> Void
  let bus: @convention(c) (CInt, Object?, ErrorPlace) -> Object?
  let setExitOnClose: @convention(c) (Object, CInt) -> Void

  // libsecret
  let service: @convention(c) (CInt, Object?, ErrorPlace) -> Object?
  let search: @convention(c) (Object, Object?, Object, CInt, Object?, ErrorPlace) -> Object?
  /// service, objects, cancellable, the list of what is unlocked
  let unlock: @convention(c) (Object, Object?, Object?, ErrorPlace, ErrorPlace) -> CInt
  let collection: @convention(c) (Object, Text, CInt, Object?, ErrorPlace) -> Object?
  /// service, label, alias, flags
  let makeCollection: @convention(c) (Object, Text, Text, CInt, Object?, ErrorPlace) -> Object?
  let collectionIsLocked: @convention(c) (Object) -> CInt
  /// collection, schema, attributes, label, value, flags
  let makeItem:
    @convention(c) (Object, Object?, Object, Text, Object, CInt, Object?, ErrorPlace) -> Object?
  let itemIsLocked: @convention(c) (Object) -> CInt
  let loadSecret: @convention(c) (Object, Object?, ErrorPlace) -> CInt
  let secret: @convention(c) (Object) -> Object?
  let setSecret: @convention(c) (Object, Object, Object?, ErrorPlace) -> CInt
  let delete: @convention(c) (Object, Object?, ErrorPlace) -> CInt
  /// Copies the bytes into memory that libsecret locks, and wipes when it is released.
  let makeValue: @convention(c) (UnsafeRawPointer?, Int, Text) -> Object?
  let valueBytes: @convention(c) (Object, UnsafeMutablePointer<Int>) -> Object?
  let releaseValue: @convention(c) (Object) -> Void

  /// Loads the libraries; they stay. Throws `.notInstalled`.
  init() throws(Libsecret.Failure) {
    let symbols = try Symbols()
    copyText = try symbols.function("g_strdup")
    freeError = try symbols.function("g_error_free")
    quarkText = try symbols.function("g_quark_to_string")
    makeTable = try symbols.function("g_hash_table_new_full")
    insert = try symbols.function("g_hash_table_insert")
    releaseTable = try symbols.function("g_hash_table_unref")
    append = try symbols.function("g_list_append")
    freeList = try symbols.function("g_list_free")
    release = try symbols.function("g_object_unref")
    textHash = try symbols.address("g_str_hash")
    textEquality = try symbols.address("g_str_equal")
    freeAddress = try symbols.address("g_free")
    makeCancellable = try symbols.function("g_cancellable_new")
    cancel = try symbols.function("g_cancellable_cancel")
    bus = try symbols.function("g_bus_get_sync")
    setExitOnClose = try symbols.function("g_dbus_connection_set_exit_on_close")
    service = try symbols.function("secret_service_get_sync")
    search = try symbols.function("secret_service_search_sync")
    unlock = try symbols.function("secret_service_unlock_sync")
    collection = try symbols.function("secret_collection_for_alias_sync")
    makeCollection = try symbols.function("secret_collection_create_sync")
    collectionIsLocked = try symbols.function("secret_collection_get_locked")
    makeItem = try symbols.function("secret_item_create_sync")
    itemIsLocked = try symbols.function("secret_item_get_locked")
    loadSecret = try symbols.function("secret_item_load_secret_sync")
    secret = try symbols.function("secret_item_get_secret")
    setSecret = try symbols.function("secret_item_set_secret_sync")
    delete = try symbols.function("secret_item_delete_sync")
    makeValue = try symbols.function("secret_value_new")
    valueBytes = try symbols.function("secret_value_get")
    releaseValue = try symbols.function("secret_value_unref")
  }

  /// One handle finds what the library needs itself, too: GLib, GObject, GIO.
  private struct Symbols {
    private let handle: UnsafeMutableRawPointer

    init() throws(Libsecret.Failure) {
      guard let handle = dlopen(LibsecretSymbols.library, RTLD_NOW | RTLD_LOCAL) else {
        throw .notInstalled
      }
      self.handle = handle
    }

    func address(_ name: String) throws(Libsecret.Failure) -> Object {
      guard let address = dlsym(handle, name) else { throw .notInstalled }
      return address
    }

    func function<Function>(_ name: String) throws(Libsecret.Failure) -> Function {
      unsafeBitCast(try address(name), to: Function.self)
    }
  }
}
