import Platform
import SecretStore
import SecuredData
import VaultStorage

/// Keys that are always the same, and valid samples of everything.
struct Samples: Sendable {
  static let vaultID = [UInt8](0..<16)
  static let salts = Salts(
    encryptionSalt: [UInt8](0..<8), hmacSalt: [UInt8](8..<16))
  static let header = Header(mode: .password(salts), iv: [UInt8](repeating: 9, count: 16))
  static let hmac = [UInt8](repeating: 5, count: 32)
  static let ciphertextSize = Format.ciphertextSize(plaintextSize: 400_000)
  private static let recoveryKey =
    "7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K3M-7K30"

  let keys: VaultKeys
  let itemKeys: MessageKeys

  static func made() throws -> Samples { try result.get() }

  private static let result = Result { try Samples() }

  private init() throws {
    var text = Array(Self.recoveryKey.utf8)
    let password = try SecretBytes(wiping: &text)
    keys = try VaultKeys(password: password, salts: Self.salts, vaultID: Self.vaultID)
    let key = [UInt8](repeating: 1, count: 32)
    itemKeys = try key.withUnsafeBytes { try MessageKeys(encryptionKey: $0, hmacKey: $0) }
  }

  static let all: [FuzzTarget: [[UInt8]]] = {
    do {
      return try Dictionary(
        uniqueKeysWithValues: FuzzTarget.allCases.map { ($0, try samples(of: $0)) })
    } catch { preconditionFailure("samples: \(error)") }
  }()

  private static func samples(of target: FuzzTarget) throws -> [[UInt8]] {
    let samples = try made()
    switch target {
    case .header, .message:
      let messages = try [0, 1, 15, 16, 100, 5000].map { count in
        let plaintext = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        return try SecuredData.encrypt(
          plaintext, keys: samples.keys.messageKeys, header: header)
      }
      return messages + [try SecuredData.encrypt([1, 2, 3], keys: samples.itemKeys)]
    case .names:
      let codec = try NameCodec(
        keys: samples.keys, mode: .encrypted, directory: .plain, isRoot: true)
      let long = String(repeating: "n", count: 240)
      return try ["a", "IMG_0001.JPG", "Zoë.heic", long].flatMap { name in
        let text = try codec.spelling(FileName(name)).text
        return [text, text + Array(".securedData".utf8), Array(name.utf8)]
      } + [Array((String(repeating: "A", count: 43) + ".long.securedData").utf8)]
    case .attributes:
      let attributes = ExtendedAttributes(keys: samples.keys)
      let name = FileName("user.title")
      let value = try attributes.encode(value: Array("A day".utf8), name: name)
      return [
        try attributes.storedName(name).bytes, name.bytes + value,
        // As long as its value, so that both halves are what they should be.
        FileName("user." + String(repeating: "x", count: value.count - 5)).bytes
          + (try attributes.encode(
            value: Array("A day".utf8),
            name: FileName("user." + String(repeating: "x", count: value.count - 5)))),
      ]
    case .superblock:
      return [try Superblock(id: vaultID, names: .encrypted, keys: samples.keys).text]
    case .account:
      let salt = String(repeating: "A", count: 43) + "="
      return ["alice", "bob"].map { name in
        Array(
          """
          {"account":"\(name)","format":1,"kdf":{"n":131072,"name":"scrypt","p":1,"r":8,\
          "salt":"\(salt)"},"secret":"AwAA","thisDeviceOnly":false,\
          "vault":{"id":"AAECAwQFBgcICQoLDA0ODw==","path":"/home/alice/photos"}}
          """.utf8)
      }
    case .chunkIndex:
      let count = ChunkLayout.leafCount(ciphertextSize: ciphertextSize)
      let index = try ChunkIndex(
        plaintextSize: 400_000, leafTags: [GMAC.Tag](repeating: GMAC.Tag(), count: count),
        keys: samples.keys, header: header)
      let other = try ChunkIndex(
        plaintextSize: 399_999, leafTags: [GMAC.Tag](repeating: GMAC.Tag(), count: count),
        keys: samples.keys, header: header)
      return [
        try index.encoded(keys: samples.keys, header: header, hmac: hmac),
        try other.encoded(keys: samples.keys, header: header, hmac: vaultID + vaultID),
      ]
    case .recoveryKey:
      return [recoveryKey, recoveryKey.lowercased(), recoveryKey.replacing("-", with: "")].map {
        Array($0.utf8)
      }
    }
  }
}
