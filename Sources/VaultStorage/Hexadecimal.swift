/// Bytes as pairs of lower-case digits.
enum Hexadecimal {
  static func encode(_ bytes: [UInt8]) -> String {
    let digits = Array("0123456789abcdef".utf8)
    var text: [UInt8] = []
    for byte in bytes { text += [digits[Int(byte >> 4)], digits[Int(byte & 15)]] }
    return String(decoding: text, as: UTF8.self)
  }

  /// nil unless `text` is `byteCount` pairs of lower-case digits.
  static func decode(_ text: String, byteCount: Int) -> [UInt8]? {
    let characters = Array(text.utf8)
    guard characters.count == 2 * byteCount else { return nil }
    var bytes: [UInt8] = []
    for index in stride(from: 0, to: characters.count, by: 2) {
      guard let high = value(of: characters[index]), let low = value(of: characters[index + 1])
      else { return nil }
      bytes.append(high << 4 | low)
    }
    return bytes
  }

  private static func value(of character: UInt8) -> UInt8? {
    switch character {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): character - UInt8(ascii: "0")
    case UInt8(ascii: "a")...UInt8(ascii: "f"): character - UInt8(ascii: "a") + 10
    default: nil
    }
  }
}
