package import Platform

/// From a password to RNCryptor's keys: PBKDF2-HMAC-SHA1, 10,000 rounds, about 20 ms for the pair.
package enum KeyDerivation {
  /// Writers of v1 and v2 cut the password to as many *bytes* as it has UTF-16 units, a bug that
  /// their messages keep; v3 takes all of it. Source: RNCryptor-Spec v2; for v1, which has no
  /// specification, `keyForPassword` in RNCryptor 1.1.
  package static func keys(
    password: borrowing SecretBytes, salts: Salts, version: UInt8 = Format.currentVersion
  ) throws(SecuredDataError) -> MessageKeys {
    var both: SecretBytes
    do { both = try SecretBytes(count: 2 * Format.keyByteCount) } catch { throw .outOfMemory }
    do {
      try password.withUnsafeBytes { password throws(CryptoFailure) in
        let used = version < 3 ? utf16Count(password) : password.count
        let cut = UnsafeRawBufferPointer(rebasing: password[..<min(used, password.count)])
        try both.withUnsafeMutableBytes { both throws(CryptoFailure) in
          try Derivation.pbkdf2(
            password: cut, salt: salts.encryptionSalt, rounds: Format.derivationRounds,
            into: UnsafeMutableRawBufferPointer(rebasing: both[..<Format.keyByteCount]))
          try Derivation.pbkdf2(
            password: cut, salt: salts.hmacSalt, rounds: Format.derivationRounds,
            into: UnsafeMutableRawBufferPointer(rebasing: both[Format.keyByteCount...]))
        }
      }
    } catch { throw .crypto(error) }
    return MessageKeys(both)
  }

  /// UTF-16 units of UTF-8 text: one for each lead byte, two for a lead byte of four.
  private static func utf16Count(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    for byte in bytes where byte & 0xC0 != 0x80 { count += byte >= 0xF0 ? 2 : 1 }
    return count
  }
}
