import Platform

/// Bytes as text, for attributes and for secrets that needn't be text: not every Secret Service keeps
/// bytes that are no UTF-8. No table is looked up, so secrets leave no trace in the cache.
enum Hexadecimal {
  static func digits(_ bytes: [UInt8]) -> [UInt8] {
    bytes.flatMap { [digit($0 >> 4), digit($0 & 15)] }
  }

  /// nil for what `digits` doesn't write.
  static func bytes(_ digits: [UInt8]) -> [UInt8]? {
    guard digits.count.isMultiple(of: 2) else { return nil }
    let values = digits.map(value)
    guard values.allSatisfy({ $0 < 16 }) else { return nil }
    return stride(from: 0, to: values.count, by: 2).map { values[$0] << 4 | values[$0 + 1] }
  }

  static func encode(_ secret: borrowing SecretBytes) throws(Errno) -> SecretBytes {
    var text = try SecretBytes(count: 2 * secret.count)
    secret.withUnsafeBytes { bytes in
      text.withUnsafeMutableBytes { text in
        for index in bytes.indices {
          text[2 * index] = digit(bytes[index] >> 4)
          text[2 * index + 1] = digit(bytes[index] & 15)
        }
      }
    }
    return text
  }

  /// Throws EINVAL for what `encode` doesn't write.
  static func decode(_ text: borrowing SecretBytes) throws(Errno) -> SecretBytes {
    guard text.count.isMultiple(of: 2) else { throw .invalidArgument }
    var secret = try SecretBytes(count: text.count / 2)
    let isRight = text.withUnsafeBytes { text in
      secret.withUnsafeMutableBytes { bytes in
        var isRight = true
        for index in bytes.indices {
          let (high, low) = (value(text[2 * index]), value(text[2 * index + 1]))
          isRight = isRight && high < 16 && low < 16
          bytes[index] = high << 4 | low & 15
        }
        return isRight
      }
    }
    guard isRight else { throw .invalidArgument }
    return secret
  }

  private static func digit(_ value: UInt8) -> UInt8 {
    value &+ UInt8(ascii: "0") &+ (value > 9 ? 39 : 0)  // from ":" to "a"
  }

  /// More than 15 for what is no digit.
  private static func value(_ digit: UInt8) -> UInt8 {
    let number = digit &- UInt8(ascii: "0")
    if number < 10 { return number }
    let letter = digit &- UInt8(ascii: "a")
    return letter < 6 ? letter + 10 : 255
  }
}
