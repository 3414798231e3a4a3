/// Base64 with `-` and `_`, without padding. Source: RFC 4648, section 5.
enum Base64URL {
  private static let alphabet: StaticString =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

  static func encodedCount(_ count: Int) -> Int { (count * 4 + 2) / 3 }

  static func encode(_ bytes: [UInt8]) -> [UInt8] {
    let count = encodedCount(bytes.count)
    let digits = alphabet.utf8Start
    return [UInt8](unsafeUninitializedCapacity: count) { target, initialized in
      var bits: UInt32 = 0
      var bitCount = 0
      var index = 0
      for byte in bytes {
        bits = bits << 8 | UInt32(byte)
        bitCount += 8
        while bitCount >= 6 {
          bitCount -= 6
          target.initializeElement(at: index, to: digits[Int(bits >> UInt32(bitCount) & 63)])
          index += 1
        }
      }
      if bitCount > 0 {
        target.initializeElement(at: index, to: digits[Int(bits << UInt32(6 - bitCount) & 63)])
      }
      initialized = count
    }
  }

  /// nil for anything that `encode` doesn't make: two texts never stand for the same bytes.
  static func decode(_ text: ArraySlice<UInt8>) -> [UInt8]? {
    if text.count % 4 == 1 { return nil }
    var result: [UInt8] = []
    result.reserveCapacity(text.count * 3 / 4)
    var bits: UInt32 = 0
    var bitCount = 0
    for character in text {
      guard let value = value(of: character) else { return nil }
      bits = bits << 6 | value
      bitCount += 6
      if bitCount >= 8 {
        bitCount -= 8
        result.append(UInt8(truncatingIfNeeded: bits >> UInt32(bitCount)))
      }
    }
    return bits & (1 << UInt32(bitCount) - 1) == 0 ? result : nil
  }

  @inline(__always)
  static func value(of character: UInt8) -> UInt32? {
    switch character {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character - UInt8(ascii: "A"))
    case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character - UInt8(ascii: "a")) + 26
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character - UInt8(ascii: "0")) + 52
    case UInt8(ascii: "-"): 62
    case UInt8(ascii: "_"): 63
    default: nil
    }
  }
}
