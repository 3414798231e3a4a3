package import Platform

/// RNCryptor's two keys, 32 bytes each, wiped when nobody uses them any more.
public final class MessageKeys: Sendable {
  private let secret: SecretBytes

  /// `secret` is the encryption key and the HMAC key behind it: 64 bytes.
  package init(_ secret: consuming SecretBytes) {
    precondition(secret.count == 2 * Format.keyByteCount)
    self.secret = secret
  }

  package func withEncryptionKey<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try secret.withUnsafeBytes { bytes throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: bytes[..<Format.keyByteCount]))
    }
  }

  package func withHMACKey<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try secret.withUnsafeBytes { bytes throws(Failure) in
      try body(UnsafeRawBufferPointer(rebasing: bytes[Format.keyByteCount...]))
    }
  }

  /// Both, the encryption key first: the input of the vault's own key derivation.
  package func withBothKeys<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try secret.withUnsafeBytes(body)
  }
}

extension MessageKeys {
  /// Copies the keys, 32 bytes each; the caller wipes its own.
  public convenience init(
    encryptionKey: UnsafeRawBufferPointer, hmacKey: UnsafeRawBufferPointer
  ) throws(SecuredDataError) {
    precondition(encryptionKey.count == Format.keyByteCount)
    precondition(hmacKey.count == Format.keyByteCount)
    var both: SecretBytes
    do { both = try SecretBytes(count: 2 * Format.keyByteCount) } catch { throw .outOfMemory }
    both.withUnsafeMutableBytes { target in
      UnsafeMutableRawBufferPointer(rebasing: target[..<Format.keyByteCount])
        .copyMemory(from: encryptionKey)
      UnsafeMutableRawBufferPointer(rebasing: target[Format.keyByteCount...])
        .copyMemory(from: hmacKey)
    }
    self.init(both)
  }

  /// Derives the keys for a header's version and salts; the caller wipes the password.
  public static func derived(
    from password: UnsafeRawBufferPointer, salts: Salts, version: UInt8 = Format.currentVersion
  ) throws(SecuredDataError) -> MessageKeys {
    let secret: SecretBytes
    do { secret = try SecretBytes(copying: password) } catch { throw .outOfMemory }
    return try KeyDerivation.keys(password: secret, salts: salts, version: version)
  }
}
