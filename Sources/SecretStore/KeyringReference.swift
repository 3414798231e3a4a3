import FoundationEssentials
import Platform

/// Stands where a file store has the item of an account whose item is in the Secret Service: that it
/// is there, and of which vault. Holds no secret.
///
/// So a name exists once whatever the store, accounts are listed without asking anybody, and an
/// account in a keyring that is locked or gone is told apart from one that never was.
package struct KeyringReference: Hashable, Sendable {
  static let suffix = ".secret-service"
  static let greatestByteCount = 32 << 10  // a path of 4 KiB, all escaped
  private static let format = 1

  package let name: AccountName
  package let vaultID: [UInt8]
  /// Absolute.
  package let vaultPath: String

  static func fileName(_ name: AccountName) -> FileName { FileName(name.text + suffix) }

  init(_ account: Account) {
    name = account.name
    vaultID = account.vaultID
    vaultPath = account.vaultPath
  }

  private struct Contents: Codable {
    struct Vault: Codable {
      var id: Data
      var path: String
    }

    var format: Int
    var account: String
    var vault: Vault
  }

  func encoded() throws(SecretStoreError) -> [UInt8] {
    let contents = Contents(
      format: Self.format, account: name.text,
      vault: Contents.Vault(id: Data(vaultID), path: vaultPath))
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(contents), data.count < Self.greatestByteCount else {
      throw .notAvailable(.damaged("its reference can't be written"))
    }
    return Array(data) + [UInt8(ascii: "\n")]
  }

  init(_ bytes: [UInt8], name: AccountName) throws(SecretStoreError) {
    guard let contents = try? JSONDecoder().decode(Contents.self, from: Data(bytes)),
      contents.account.utf8.elementsEqual(name.text.utf8),
      (8...64).contains(contents.vault.id.count),
      contents.vault.path.hasPrefix("/"), !contents.vault.path.utf8.contains(0)
    else { throw .notAvailable(.damaged("its reference to the Secret Service")) }
    guard contents.format == Self.format else {
      throw .notAvailable(.unsupportedFormat(contents.format))
    }
    self.name = name
    vaultID = Array(contents.vault.id)
    vaultPath = contents.vault.path
  }
}
