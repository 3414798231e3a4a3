import Foundation
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

/// What another implementation computed for a vault with fixed keys: Fixtures/make_fixtures.py.
struct Expected: Decodable, Sendable {
  struct Keys: Decodable, Sendable {
    let names: String
    let xattrs: String
    let chunks: String
    let config: String
  }

  struct Name: Decodable, Sendable {
    let mode: String
    let name: String
    let text: String
    let blob: String
    let blobCompanion: String?
    let other: String
    let otherCompanion: String?
  }

  struct Link: Decodable, Sendable {
    let target: String
    let stored: String
  }

  struct Attribute: Decodable, Sendable {
    let name: String
    let value: String
    let nonce: String
    let storedName: String
    let storedValue: String
  }

  struct Place: Decodable, Sendable {
    let mode: String
    let iv: String
    let name: String
    let size: Int64
    let modified: Int64
    let seal: String
  }

  let secret: String
  let recoveryKey: String
  let encryptionSalt: String
  let hmacSalt: String
  let vaultID: String
  let directoryID: String
  let keys: Keys
  let superblocks: [String: String]
  let names: [Name]
  let links: [Link]
  let attributes: [Attribute]
  let places: [Place]

  static let values: Expected = {
    do {
      let file = try #require(
        Bundle.module.url(forResource: "expected", withExtension: "json", subdirectory: "Fixtures"))
      return try JSONDecoder().decode(Expected.self, from: Data(contentsOf: file))
    } catch { preconditionFailure("Fixtures/expected.json: \(error)") }
  }()

  /// The keys of the fixtures' vault, derived by us.
  static let vaultKeys: VaultKeys = {
    do {
      return try VaultKeys(
        password: secretBytes(values.recoveryKey),
        salts: Salts(
          encryptionSalt: bytes(values.encryptionSalt), hmacSalt: bytes(values.hmacSalt)),
        vaultID: bytes(values.vaultID))
    } catch { preconditionFailure("keys: \(error)") }
  }()

  static func codec(_ mode: NamesMode, isRoot: Bool = false) throws -> NameCodec {
    try NameCodec(
      keys: vaultKeys, mode: mode,
      directory: mode == .plain ? .plain : DirectoryID(bytes(values.directoryID)),
      isRoot: isRoot)
  }

  static func bytes(_ hexadecimal: String) -> [UInt8] {
    guard let bytes = Hexadecimal.decode(hexadecimal, byteCount: hexadecimal.utf8.count / 2) else {
      preconditionFailure("not hexadecimal: \(hexadecimal)")
    }
    return bytes
  }
}

func secretBytes(_ text: String) throws -> SecretBytes {
  var bytes = Array(text.utf8)
  return try SecretBytes(wiping: &bytes)
}

func revealed(_ secret: borrowing SecretBytes) -> String {
  secret.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
}
