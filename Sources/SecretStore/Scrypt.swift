import Platform
import SecuredData

/// How an account's keys come from its password. Source: RFC 7914.
package struct Scrypt: Hashable, Sendable {
  package struct Cost: Hashable, Sendable {
    /// Memory and time; a power of two.
    package let n: UInt64
    /// Block size.
    package let r: UInt64
    /// Rounds of the whole.
    package let p: UInt64

    package init(n: UInt64, r: UInt64, p: UInt64) {
      self.n = n
      self.r = r
      self.p = p
    }

    /// 128 MiB, about half a second.
    package static let standard = Cost(n: 1 << 17, r: 8, p: 1)

    /// What an item may ask of this machine; an item is read before anything about it is verified.
    package var isReasonable: Bool {
      n.nonzeroBitCount == 1 && (1 << 14...1 << 20).contains(n)  // less is too easy to guess
        && (1...32).contains(r) && (1...16).contains(p)
        && 128 * n * r <= 1 << 30  // bytes of memory
        && n * r * p <= 1 << 24  // 16 times the standard's time
    }
  }

  package static let saltByteCount = 32
  static let saltByteCounts = 16...64

  package let cost: Cost
  package let salt: [UInt8]

  package init(cost: Cost, salt: [UInt8]) {
    self.cost = cost
    self.salt = salt
  }

  static func fresh(_ cost: Cost) throws(SecretStoreError) -> Scrypt {
    do throws(CryptoFailure) {
      return Scrypt(cost: cost, salt: try Random.bytes(saltByteCount))
    } catch { throw .notAvailable(.crypto(error)) }
  }

  /// The 64 bytes are the encryption key and the HMAC key behind it.
  func keys(password: borrowing SecretBytes) throws(SecretStoreError) -> MessageKeys {
    var keys: SecretBytes
    do throws(Errno) { keys = try SecretBytes(count: 2 * Format.keyByteCount) } catch {
      throw .notAvailable(.system("memory", error))
    }
    do throws(CryptoFailure) {
      try password.withUnsafeBytes { password throws(CryptoFailure) in
        try keys.withUnsafeMutableBytes { keys throws(CryptoFailure) in
          try Derivation.scrypt(
            password: password, salt: salt, n: cost.n, r: cost.r, p: cost.p, into: keys)
        }
      }
    } catch { throw .notAvailable(.crypto(error)) }
    return MessageKeys(keys)
  }
}
