package import Platform
import SecuredData

/// 256 random bits in Crockford base32, in groups of four: `7K3M-...`. The text, as shown, is the
/// RNCryptor password of every blob. It is never a `String`.
package enum RecoveryKey {
  /// 52 digits and 12 times `-`.
  package static let textByteCount = 64
  private static let digitCount = 52
  private static let byteCount = 32
  private static let alphabet: StaticString = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

  package static func generate() throws(StorageError) -> SecretBytes {
    var random = try StorageError.onDisk { () throws(Errno) in try SecretBytes(count: byteCount) }
    try StorageError.inCrypto { () throws(CryptoFailure) in
      try random.withUnsafeMutableBytes { buffer throws(CryptoFailure) in
        try Random.fill(buffer)
      }
    }
    do throws(Errno) { return try text(of: random) } catch { throw .system(error) }
  }

  /// The text of 32 bytes.
  static func text(of secret: borrowing SecretBytes) throws(Errno) -> SecretBytes {
    precondition(secret.count == byteCount)
    var digits = try SecretBytes(count: digitCount)
    secret.withUnsafeBytes { source in
      digits.withUnsafeMutableBytes { target in
        for index in 0..<digitCount {
          let bit = index * 5
          let high = UInt16(source[bit / 8]) << 8
          let low = bit / 8 + 1 < byteCount ? UInt16(source[bit / 8 + 1]) : 0
          target[index] = UInt8((high | low) >> UInt16(11 - bit % 8) & 31)
        }
      }
    }
    return try spelled(digits)
  }

  /// The key as shown, from what somebody typed: case, white space, `-` and the look-alikes O/0,
  /// I/1, l/1 don't count. nil when it is no recovery key.
  package static func normalise(
    _ typed: borrowing SecretBytes
  ) throws(StorageError) -> SecretBytes? {
    do throws(Errno) {
      var digits = try SecretBytes(count: digitCount)
      let isKey = typed.withUnsafeBytes { source in
        digits.withUnsafeMutableBytes { target in
          var count = 0
          for character in source where !isSeparator(character) {
            guard count < digitCount, let value = value(of: character) else { return false }
            target[count] = value
            count += 1
          }
          // 260 bits hold 256: a last digit with other bits was never shown by us.
          return count == digitCount && target[digitCount - 1] & 15 == 0
        }
      }
      return isKey ? try spelled(digits) : nil
    } catch { throw .system(error) }
  }

  private static func spelled(_ digits: borrowing SecretBytes) throws(Errno) -> SecretBytes {
    var text = try SecretBytes(count: textByteCount)
    digits.withUnsafeBytes { source in
      text.withUnsafeMutableBytes { target in
        for index in 0..<digitCount {
          let position = index + index / 4
          target[position] = alphabet.utf8Start[Int(source[index])]
          if index % 4 == 3, index + 1 < digitCount { target[position + 1] = UInt8(ascii: "-") }
        }
      }
    }
    return text
  }

  private static func isSeparator(_ character: UInt8) -> Bool {
    character == UInt8(ascii: "-") || character == UInt8(ascii: " ")
      || (9...13).contains(character)
  }

  private static func value(of character: UInt8) -> UInt8? {
    let isLower = (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(character)
    switch isLower ? character - 32 : character {
    case UInt8(ascii: "O"): return 0
    case UInt8(ascii: "I"), UInt8(ascii: "L"): return 1
    case let upper:
      for index in 0..<32 where alphabet.utf8Start[index] == upper { return UInt8(index) }
      return nil
    }
  }
}
