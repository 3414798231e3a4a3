import FoundationEssentials
import Platform

/// An account item as JSON: what the file holds, and the secret of a Secret Service item.
///
///     {"format":1,"account":..,"vault":{"id":..,"path":..},"thisDeviceOnly":..,
///      "kdf":{"name":"scrypt","n":131072,"r":8,"p":1,"salt":..},"secret":..}
///
/// Bytes are base64.
package enum AccountCoder {
  package static let format = 1
  /// More than any item has: a path and a secret of 4 KiB each, all escaped.
  package static let greatestByteCount = 64 << 10
  private static let greatestSecretByteCount = 8 << 10
  private static let vaultIDByteCounts = 8...64

  private struct Item: Codable {
    var format: Int
    var account: String
    var vault: Vault
    var thisDeviceOnly: Bool
    var kdf: KDF
    var secret: Data
  }

  private struct Vault: Codable {
    var id: Data
    var path: String
  }

  private struct KDF: Codable {
    var name: String
    var n: UInt64
    var r: UInt64
    var p: UInt64
    var salt: Data
  }

  /// Read first: another format may have other members.
  private struct Version: Codable {
    var format: Int
  }

  package static func encode(_ account: Account) throws(SecretStoreError) -> [UInt8] {
    let cost = account.scrypt.cost
    let item = Item(
      format: format, account: account.name.text,
      vault: Vault(id: Data(account.vaultID), path: account.vaultPath),
      thisDeviceOnly: account.thisDeviceOnly,
      kdf: KDF(
        name: "scrypt", n: cost.n, r: cost.r, p: cost.p, salt: Data(account.scrypt.salt)),
      secret: Data(account.sealedSecret))
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(item), data.count < greatestByteCount else {
      throw .notAvailable(.damaged("the item can't be written"))
    }
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// Checks that the item is one of `name` and asks for nothing unreasonable.
  package static func decode(
    _ bytes: [UInt8], name: AccountName
  ) throws(SecretStoreError) -> Account {
    guard bytes.count <= greatestByteCount else { throw damaged("it is too long") }
    let data = Data(bytes)
    let decoder = JSONDecoder()
    guard let version = try? decoder.decode(Version.self, from: data) else {
      throw damaged("it is not JSON, or has no format")
    }
    guard version.format == format else {
      throw .notAvailable(.unsupportedFormat(version.format))
    }
    guard let item = try? decoder.decode(Item.self, from: data) else {
      throw damaged("a member is missing or of the wrong kind")
    }
    guard item.account.utf8.elementsEqual(name.text.utf8) else {
      throw damaged("it belongs to another account")
    }
    guard vaultIDByteCounts.contains(item.vault.id.count) else { throw damaged("the vault's id") }
    guard item.vault.path.hasPrefix("/"), !item.vault.path.utf8.contains(0),
      item.vault.path.utf8.count < 4096  // PATH_MAX
    else { throw damaged("the vault's path") }
    let cost = Scrypt.Cost(n: item.kdf.n, r: item.kdf.r, p: item.kdf.p)
    guard item.kdf.name == "scrypt" else { throw damaged("the kdf is not scrypt") }
    guard cost.isReasonable, Scrypt.saltByteCounts.contains(item.kdf.salt.count) else {
      throw damaged("its kdf's parameters are out of bounds")
    }
    guard item.secret.count <= greatestSecretByteCount else { throw damaged("its secret") }
    return Account(
      name: name, vaultID: Array(item.vault.id), vaultPath: item.vault.path,
      thisDeviceOnly: item.thisDeviceOnly,
      scrypt: Scrypt(cost: cost, salt: Array(item.kdf.salt)),
      sealedSecret: Array(item.secret))
  }

  private static func damaged(_ what: String) -> SecretStoreError {
    .notAvailable(.damaged(what))
  }
}
