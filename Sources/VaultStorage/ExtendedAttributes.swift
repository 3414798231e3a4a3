package import Platform
import SecuredData

/// Extended attributes as they are stored, in both names modes. Pure computation.
///
/// | | stored |
/// |---|---|
/// | name | `user.photovault.x.` + base64url(SIV(name)) |
/// | value | nonce (16 random bytes) + SIV(0x01 + value), bound to the nonce and the name |
package struct ExtendedAttributes: Sendable {
  private static let prefix = Array("user.photovault.x.".utf8)
  private static let namePurpose = Array("photovault/1/xattr/name".utf8)
  private static let valuePurpose = Array("photovault/1/xattr/value".utf8)
  private static let nonceByteCount = 16
  // OpenSSL's SIV takes no empty text, and a value may be empty.
  private static let valueMark: UInt8 = 1
  private static let longestName = 255  // XATTR_NAME_MAX
  /// What a stored value is longer than the value.
  package static let valueOverhead = nonceByteCount + SIV.overhead + 1

  private let keys: VaultKeys

  package init(keys: VaultKeys) { self.keys = keys }

  /// Throws `.system(.range)`, as setxattr(2) does, for a name of more than 161 bytes.
  package func storedName(_ name: FileName) throws(StorageError) -> FileName {
    guard name.count > 0 else { throw .system(.range) }
    let stored = Self.prefix + Base64URL.encode(try encrypt(name.bytes, Self.namePurpose))
    guard stored.count <= Self.longestName else { throw .system(.range) }
    return FileName(stored)
  }

  /// Whether the name says that it is one of ours; it may still not decode.
  static func isOurs(stored: FileName) -> Bool { stored.bytes.starts(with: prefix) }

  /// nil for an attribute that is not ours to show.
  package func name(stored: FileName) throws(StorageError) -> FileName? {
    guard stored.bytes.starts(with: Self.prefix),
      let raw = Base64URL.decode(stored.bytes.dropFirst(Self.prefix.count)),
      let name = try decrypt(raw, Self.namePurpose), !name.isEmpty, !name.contains(0)
    else { return nil }
    return FileName(name)
  }

  package func encode(value: [UInt8], name: FileName) throws(StorageError) -> [UInt8] {
    let nonce = try StorageError.inCrypto { () throws(CryptoFailure) in
      try Random.bytes(Self.nonceByteCount)
    }
    return try encode(value: value, name: name, nonce: nonce)
  }

  func encode(
    value: [UInt8], name: FileName, nonce: [UInt8]
  ) throws(StorageError) -> [UInt8] {
    nonce + (try encrypt([Self.valueMark] + value, Self.valuePurpose + nonce + name.bytes))
  }

  /// Throws `.damagedMetadata` for a value that was not made with these keys for this name.
  package func decode(stored: [UInt8], name: FileName) throws(StorageError) -> [UInt8] {
    let nonce = Array(stored.prefix(Self.nonceByteCount))
    let sealed = Array(stored.dropFirst(nonce.count))
    guard let marked = try decrypt(sealed, Self.valuePurpose + nonce + name.bytes),
      marked.first == Self.valueMark
    else { throw .damagedMetadata }
    return Array(marked.dropFirst())
  }

  private func encrypt(
    _ plaintext: [UInt8], _ associatedData: [UInt8]
  ) throws(StorageError) -> [UInt8] {
    try StorageError.inCrypto { () throws(CryptoFailure) in
      try keys.extendedAttributes.withUnsafeBytes { key throws(CryptoFailure) in
        try SIV.encrypt(plaintext, associatedData: associatedData, key: key)
      }
    }
  }

  private func decrypt(
    _ ciphertext: [UInt8], _ associatedData: [UInt8]
  ) throws(StorageError) -> [UInt8]? {
    try StorageError.inCrypto { () throws(CryptoFailure) in
      try keys.extendedAttributes.withUnsafeBytes { key throws(CryptoFailure) in
        try SIV.decrypt(ciphertext, associatedData: associatedData, key: key)
      }
    }
  }
}
