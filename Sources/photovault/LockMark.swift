import Glibc
import Platform
import SecuredData

/// What `photovault lock` leaves for mounts that it can't see yet because their password is just
/// being checked: a mount that finds another mark than at its beginning locks itself.
struct LockMark: Codable, Equatable, Sendable {
  private let values: [String]

  private static let everybody = "locked"
  private static let byteCount = 16

  /// The marks that concern `user` as they are now.
  init(of user: String) {
    values = [Self.everybody, Self.name(user)].map { name in
      guard let directory = try? MountRegistry.state().open(),
        let bytes = try? SmallFile.read(
          FileName(name), in: directory.rawValue, atMost: 2 * Self.byteCount)
      else { return "" }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  /// Leaves a new mark for `user`; nil: for everybody.
  static func leave(for user: String?) throws(CommandError) {
    let registry = try MountRegistry.state()
    let name = user.map(Self.name) ?? everybody
    try about("\(registry.path)/\(name)") { () throws(Errno) in
      let directory = try registry.open()
      var mark = ""
      for byte in try random() { mark += String(byte, radix: 36) }
      try SmallFile.replace(
        FileName(name), with: Array(mark.utf8.prefix(2 * byteCount)), in: directory.rawValue,
        temporary: FileName("\(name).\(getpid())"), overwriting: true)
    }
  }

  private static func random() throws(Errno) -> [UInt8] {
    do throws(CryptoFailure) { return try Random.bytes(byteCount) } catch { throw .inputOutput }
  }

  private static func name(_ user: String) -> String { "locked-" + MountRegistry.name(user) }
}
