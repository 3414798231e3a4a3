/// PKCS#7 over blocks of 16 bytes. Source: RFC 5652, section 6.3.
enum Padding {
  /// The padding's bytes in a message's last block, 1 to 16; nil when it is none. Takes the same
  /// time whatever is wrong.
  static func byteCount(inLastBlock block: UnsafeRawBufferPointer) -> Int? {
    precondition(block.count == Format.blockByteCount)
    let count = Int(block[Format.blockByteCount - 1])
    var difference = 0
    for index in 0..<Format.blockByteCount {
      // All ones for the last `count` bytes, else zero.
      let isPadding = (Format.blockByteCount - 1 - index - count) >> (Int.bitWidth - 1)
      difference |= (Int(block[index]) ^ count) & isPadding
    }
    // A sign bit where `count` is 0 or more than 16.
    difference |= (count - 1) >> (Int.bitWidth - 1)
    difference |= (Format.blockByteCount - count) >> (Int.bitWidth - 1)
    return difference == 0 ? count : nil
  }

  /// The last block: `rest` (0 to 15 bytes of plaintext) and the padding behind it.
  static func fill(_ block: UnsafeMutableRawBufferPointer, after restCount: Int) {
    precondition(block.count == Format.blockByteCount && restCount < Format.blockByteCount)
    let value = UInt8(Format.blockByteCount - restCount)
    for index in restCount..<Format.blockByteCount { block[index] = value }
  }
}
