import SecuredData
import Testing

/// 20,000 random alterations of valid messages, always the same ones: none crashes, and none
/// releases a byte.
@Suite struct MutationTests {
  private static let alterationCount = 4_000

  @Test(arguments: [
    "v3-size-4097", "v3-size-0", "v3-keys-size-4097", "v2-size-4097", "v1-size-4097",
  ])
  func noAlterationReleasesAByte(_ name: String) throws {
    let vector = try #require(Vector.all.first { $0.name == name })
    let header = try #require(vector.header)
    let keys = try vector.keys(version: header.version)
    // What other salts would derive: right keys are 10,000 rounds away, so any others do.
    let otherKeys = try makeKeys(patterned(32), patterned(32))
    let headerByteCount = header.byteCount
    var random = SplitMix(state: UInt64(vector.message.count) &* 0x9E37_79B9)
    for _ in 0..<Self.alterationCount {
      let altered = random.alter(vector.message)
      guard altered != vector.message else { continue }
      var released: [UInt8] = []
      do throws(SecuredDataError) {
        try Decryptor.decrypt(messageSize: Int64(altered.count)) { found in
          found.mode == header.mode && found.version == header.version ? keys : otherKeys
        } read: { offset, buffer in
          let rest = altered[min(Int(offset), altered.count)...].prefix(buffer.count)
          buffer.copyBytes(from: rest)
          return rest.count
        } sink: {
          released += $0
        }
        // v1's HMAC leaves the header out.
        #expect(header.version == 1)
        #expect(
          altered.dropFirst(headerByteCount) == vector.message.dropFirst(headerByteCount))
      } catch {
        #expect(released.isEmpty)
        if case .crypto = error { Issue.record("\(error)") }
      }
    }
  }

  @Test func randomBytesAreNoMessage() {
    var random = SplitMix(state: 42)
    for _ in 0..<5_000 {
      var bytes = random.bytes(random.below(300))
      if random.below(2) == 0, bytes.count >= 2 {
        bytes[0] = UInt8(random.below(5))
        bytes[1] = UInt8(random.below(3))
      }
      let result = outcome { () throws(SecuredDataError) in
        try SecuredData.decrypt(bytes) { _ throws(SecuredDataError) in
          try makeKeys(patterned(32), patterned(32))
        }
      }
      if case .success = result { Issue.record("\(hex(bytes)) was opened") }
    }
  }
}

/// A small generator whose numbers are the same everywhere. Source: Steele, Lea, Flood 2014.
struct SplitMix {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func below(_ limit: Int) -> Int { limit < 1 ? 0 : Int(next() % UInt64(limit)) }

  mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }

  mutating func alter(_ message: [UInt8]) -> [UInt8] {
    var bytes = message
    for _ in 0...below(3) { alterOnce(&bytes) }
    return bytes
  }

  private mutating func alterOnce(_ bytes: inout [UInt8]) {
    let start = below(bytes.count)
    let end = min(bytes.count, start + 1 + below(64))
    switch below(11) {
    case 0, 1:
      if !bytes.isEmpty { bytes[start] ^= 1 << UInt8(below(8)) }
    case 2:
      // The header and the HMAC are small: they get their share.
      if !bytes.isEmpty { bytes[min(bytes.count - 1, below(34))] = UInt8(below(256)) }
    case 3:
      if !bytes.isEmpty { bytes[bytes.count - 1 - min(bytes.count - 1, below(48))] ^= 0x80 }
    case 4: bytes.removeLast(below(bytes.count))
    case 5: bytes.removeLast(min(bytes.count, 16 * (1 + below(8))))
    case 6: bytes += self.bytes(1 + below(40))
    case 7: bytes.removeSubrange(start..<end)
    case 8: bytes.insert(contentsOf: self.bytes(16), at: start)
    case 9: for index in start..<end { bytes[index] = 0 }
    default:
      // Two blocks change places.
      guard bytes.count >= 66 else { return }
      let first = 34 + 16 * below((bytes.count - 50) / 16)
      let second = 34 + 16 * below((bytes.count - 50) / 16)
      for index in 0..<16 { bytes.swapAt(first + index, second + index) }
    }
  }
}
