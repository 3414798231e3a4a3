import FoundationEssentials
import Platform
package import SecuredData

/// `vault.json`: what a vault is, authenticated by its own key.
///
///     {"format":1,"id":"…","names":"encrypted","encryptionSalt":"…","hmacSalt":"…","mac":"…"}
///
/// `id` (16 bytes), the salts (8 each) and `mac` (32) are lower-case hexadecimal. `mac` is
/// HMAC-SHA256 under the vault's configuration key over the values of the members before it, in
/// the order above, each behind its length as 4 bytes, big-endian: `format` in decimal digits,
/// `names` as its word, the others as bytes. Members of another name are ignored.
package struct Superblock: Sendable, Equatable {
  package static let format = 1
  static let idByteCount = 16
  static let largestByteCount = 4096

  package let id: [UInt8]
  package let names: NamesMode
  package let salts: Salts
  let mac: [UInt8]

  private struct Version: Decodable {
    let format: Int
  }

  private struct Members: Decodable {
    let id: String
    let names: String
    let encryptionSalt: String
    let hmacSalt: String
    let mac: String
  }

  /// Reads the text; whether it is genuine only `isGenuine` tells.
  package init(parsing text: [UInt8]) throws(StorageError) {
    guard text.count <= Self.largestByteCount else { throw .notAVault("vault.json is too large") }
    let data = Data(text)
    let decoder = JSONDecoder()
    guard let version = try? decoder.decode(Version.self, from: data) else {
      throw .notAVault("vault.json has no format number")
    }
    guard version.format == Self.format else { throw .unsupportedFormat(version.format) }
    guard let members = try? decoder.decode(Members.self, from: data) else {
      throw .notAVault("vault.json lacks a member")
    }
    guard let names = NamesMode(rawValue: members.names) else {
      throw .notAVault("vault.json has an unknown names mode")
    }
    guard let id = Hexadecimal.decode(members.id, byteCount: Self.idByteCount),
      let encryptionSalt = Hexadecimal.decode(
        members.encryptionSalt, byteCount: Format.saltByteCount),
      let hmacSalt = Hexadecimal.decode(members.hmacSalt, byteCount: Format.saltByteCount),
      let mac = Hexadecimal.decode(members.mac, byteCount: HMACSHA256.byteCount)
    else { throw .notAVault("vault.json has a member of the wrong length") }
    self.id = id
    self.names = names
    salts = Salts(encryptionSalt: encryptionSalt, hmacSalt: hmacSalt)
    self.mac = mac
  }

  /// A new vault's, authenticated with `keys`.
  package init(id: [UInt8], names: NamesMode, keys: VaultKeys) throws(StorageError) {
    precondition(id.count == Self.idByteCount)
    self.id = id
    self.names = names
    salts = keys.salts
    mac = try Self.mac(id: id, names: names, salts: keys.salts, keys: keys)
  }

  /// Whether this was written with these keys and not altered.
  package func isGenuine(_ keys: VaultKeys) throws(StorageError) -> Bool {
    constantTimeEqual(try Self.mac(id: id, names: names, salts: salts, keys: keys), mac)
  }

  package var text: [UInt8] {
    let members = [
      #""format":\#(Self.format)"#,
      #""id":"\#(Hexadecimal.encode(id))""#,
      #""names":"\#(names.rawValue)""#,
      #""encryptionSalt":"\#(Hexadecimal.encode(salts.encryptionSalt))""#,
      #""hmacSalt":"\#(Hexadecimal.encode(salts.hmacSalt))""#,
      #""mac":"\#(Hexadecimal.encode(mac))""#,
    ]
    return Array("{\(members.joined(separator: ","))}\n".utf8)
  }

  private static func mac(
    id: [UInt8], names: NamesMode, salts: Salts, keys: VaultKeys
  ) throws(StorageError) -> [UInt8] {
    var message: [UInt8] = []
    for value in [
      Array(String(format).utf8), id, Array(names.rawValue.utf8), salts.encryptionSalt,
      salts.hmacSalt,
    ] {
      let count = UInt32(value.count)
      message += [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: count >> $0) } + value
    }
    return try StorageError.inCrypto { () throws(CryptoFailure) in
      try keys.configuration.withUnsafeBytes { key throws(CryptoFailure) in
        try message.withUnsafeBufferPointer { message throws(CryptoFailure) in
          try HMACSHA256.authenticate(UnsafeRawBufferPointer(message), key: key)
        }
      }
    }
  }
}
