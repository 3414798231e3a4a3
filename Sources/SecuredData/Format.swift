/// The byte map of an RNCryptor message. Source: RNCryptor-Spec v3, v2, v1.
///
/// | bytes | field |
/// |---|---|
/// | 0 | version |
/// | 1 | options: bit 0 = made with a password |
/// | 2-9 | encryption salt (password only) |
/// | 10-17 | HMAC salt (password only) |
/// | then 16 | IV |
/// | then | ciphertext: AES-256-CBC, PKCS#7 |
/// | last 32 | HMAC-SHA256 over all before it (v1: over the ciphertext alone) |
public enum Format {
  public static let currentVersion: UInt8 = 3
  public static let saltByteCount = 8
  public static let ivByteCount = 16
  public static let blockByteCount = 16
  public static let keyByteCount = 32
  public static let hmacByteCount = 32
  /// version, options, two salts, IV.
  public static let passwordHeaderByteCount = 34
  /// version, options, IV.
  public static let keyHeaderByteCount = 18
  /// PBKDF2-HMAC-SHA1 rounds of all versions.
  public static let derivationRounds = 10_000
  /// The least message there is: an empty file in key mode.
  public static let leastByteCount = keyHeaderByteCount + blockByteCount + hmacByteCount

  /// Bytes of ciphertext for `plaintextSize` bytes: padding adds 1 to 16.
  public static func ciphertextSize(plaintextSize: Int64) -> Int64 {
    (plaintextSize / 16 + 1) * 16
  }

  /// Bytes of a password-mode message.
  public static func messageSize(plaintextSize: Int64) -> Int64 {
    Int64(passwordHeaderByteCount + hmacByteCount) + ciphertextSize(plaintextSize: plaintextSize)
  }

  /// Whether a message of that size, made with a password or a key, can hold that much.
  public static func fits(plaintextSize: Int64, messageSize: Int64) -> Bool {
    guard 0..<messageSize ~= plaintextSize else { return false }
    let header = messageSize - ciphertextSize(plaintextSize: plaintextSize) - Int64(hmacByteCount)
    return header == passwordHeaderByteCount || header == keyHeaderByteCount
  }
}

/// The two salts in a password message's header.
public struct Salts: Hashable, Sendable {
  public let encryptionSalt: [UInt8]
  public let hmacSalt: [UInt8]

  /// Each is 8 bytes.
  public init(encryptionSalt: [UInt8], hmacSalt: [UInt8]) {
    precondition(encryptionSalt.count == Format.saltByteCount)
    precondition(hmacSalt.count == Format.saltByteCount)
    self.encryptionSalt = encryptionSalt
    self.hmacSalt = hmacSalt
  }

  public static func random() throws(CryptoFailure) -> Salts {
    Salts(
      encryptionSalt: try Random.bytes(Format.saltByteCount),
      hmacSalt: try Random.bytes(Format.saltByteCount))
  }
}
