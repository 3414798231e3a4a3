package import Platform

/// Whole messages in memory. Large ones go through `Encryptor` and `Decryptor`.
public enum SecuredData {
  /// A v3 message with a fresh IV. `keys` must be those of `mode`'s salts.
  public static func encrypt(
    _ plaintext: UnsafeRawBufferPointer, keys: MessageKeys, mode: Header.Mode = .keys
  ) throws(SecuredDataError) -> [UInt8] {
    try encrypt(plaintext, with: try Encryptor(keys: keys, mode: mode))
  }

  public static func encrypt(
    _ plaintext: [UInt8], keys: MessageKeys, mode: Header.Mode = .keys
  ) throws(SecuredDataError) -> [UInt8] {
    try plaintext.withRawBytes { plaintext throws(SecuredDataError) in
      try encrypt(plaintext, keys: keys, mode: mode)
    }
  }

  /// A v3 message with fresh salts and a fresh IV.
  package static func encrypt(
    _ plaintext: [UInt8], password: borrowing SecretBytes
  ) throws(SecuredDataError) -> [UInt8] {
    let salts = try SecuredDataError.wrapping { () throws(CryptoFailure) in try Salts.random() }
    let keys = try KeyDerivation.keys(password: password, salts: salts)
    return try encrypt(plaintext, keys: keys, mode: .password(salts))
  }

  /// As above; the caller wipes the password.
  public static func encrypt(
    _ plaintext: [UInt8], password: [UInt8]
  ) throws(SecuredDataError) -> [UInt8] {
    try encrypt(plaintext, password: try secret(password))
  }

  /// Opens a key-mode message; one made with a password is `.wrongMode`.
  public static func decrypt(
    _ message: [UInt8], keys: MessageKeys
  ) throws(SecuredDataError) -> [UInt8] {
    try decrypt(message) { header throws(SecuredDataError) in
      guard header.mode == .keys else { throw .wrongMode }
      return keys
    }
  }

  /// Opens a message made with a password, of version 1 to 3; a key-mode one is `.wrongMode`.
  package static func decrypt(
    _ message: [UInt8], password: borrowing SecretBytes
  ) throws(SecuredDataError) -> [UInt8] {
    // A borrowed value can't be captured, so the header is read before.
    let start = message.prefix(Format.passwordHeaderByteCount)
    let header = try Array(start).withRawBytes { start throws(SecuredDataError) in
      try Header.parse(start, messageSize: Int64(message.count))
    }
    guard case .password(let salts) = header.mode else { throw .wrongMode }
    let keys = try KeyDerivation.keys(password: password, salts: salts, version: header.version)
    return try decrypt(message) { _ in keys }
  }

  /// As above; the caller wipes the password.
  public static func decrypt(
    _ message: [UInt8], password: [UInt8]
  ) throws(SecuredDataError) -> [UInt8] {
    try decrypt(message, password: try secret(password))
  }

  /// Opens a message with the keys that `keys` finds for its header.
  public static func decrypt(
    _ message: [UInt8], keys: (Header) throws(SecuredDataError) -> MessageKeys
  ) throws(SecuredDataError) -> [UInt8] {
    var plaintext: [UInt8] = []
    plaintext.reserveCapacity(message.count)  // growing would leave copies behind
    try Decryptor.decrypt(messageSize: Int64(message.count), keys: keys) { offset, buffer in
      let rest = message[min(Int(offset), message.count)...].prefix(buffer.count)
      buffer.copyBytes(from: rest)
      return rest.count
    } sink: {
      plaintext += $0
    }
    return plaintext
  }

  /// With a given IV and salts.
  package static func encrypt(
    _ plaintext: [UInt8], keys: MessageKeys, header: Header
  ) throws(SecuredDataError) -> [UInt8] {
    try plaintext.withRawBytes { plaintext throws(SecuredDataError) in
      try encrypt(plaintext, with: try Encryptor(keys: keys, header: header))
    }
  }

  private static func encrypt(
    _ plaintext: UnsafeRawBufferPointer, with encryptor: Encryptor
  ) throws(SecuredDataError) -> [UInt8] {
    var message: [UInt8] = []
    message.reserveCapacity(
      encryptor.header.byteCount + Format.hmacByteCount
        + Int(Format.ciphertextSize(plaintextSize: Int64(plaintext.count))))
    try encryptor.update(plaintext, appendingTo: &message)
    try encryptor.finish(appendingTo: &message)
    return message
  }

  private static func secret(_ bytes: [UInt8]) throws(SecuredDataError) -> SecretBytes {
    do {
      var secret = try SecretBytes(count: bytes.count)
      secret.withUnsafeMutableBytes { $0.copyBytes(from: bytes) }
      return secret
    } catch { throw .outOfMemory }
  }
}
