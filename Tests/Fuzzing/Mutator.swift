/// Random bytes and changes that are the same for the same seed. Source: SplitMix64, Steele, Lea,
/// Flood 2014.
package struct Mutator: Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Below `limit`; 0 where that is no more than 1.
  package mutating func below(_ limit: Int) -> Int {
    limit < 2 ? 0 : Int(next() % UInt64(limit))
  }

  package mutating func bytes(_ count: Int) -> [UInt8] {
    (0..<count).map { _ in UInt8(truncatingIfNeeded: next()) }
  }

  /// One of `corpus` with one to four changes, some of which bring in words of `dictionary` or pieces
  /// of others.
  package mutating func mutated(_ corpus: [[UInt8]], dictionary: [[UInt8]]) -> [UInt8] {
    guard !corpus.isEmpty else { return bytes(below(200)) }
    var bytes = corpus[below(corpus.count)]
    for _ in 0...below(4) { change(&bytes, corpus, dictionary) }
    return bytes
  }

  private static let interesting: [UInt8] = [0, 1, 0x20, 0x2E, 0x2F, 0x7F, 0x80, 0xFE, 0xFF]

  private mutating func change(
    _ bytes: inout [UInt8], _ corpus: [[UInt8]], _ dictionary: [[UInt8]]
  ) {
    let start = below(bytes.count)
    let end = min(bytes.count, start + 1 + below(24))
    switch below(11) {
    case 0, 1: if !bytes.isEmpty { bytes[start] ^= 1 << UInt8(below(8)) }
    case 2: if !bytes.isEmpty { bytes[start] = UInt8(below(256)) }
    case 3: for index in start..<end { bytes[index] = Self.interesting[below(9)] }
    case 4: bytes.removeSubrange(start..<end)
    case 5: bytes.removeLast(below(bytes.count))
    case 6: bytes.insert(contentsOf: self.bytes(1 + below(20)), at: start)
    case 7: bytes.insert(contentsOf: bytes[start..<end], at: start)
    case 8, 9:
      guard !dictionary.isEmpty else { return }
      let word = dictionary[below(dictionary.count)]
      if below(2) == 0 { bytes.removeSubrange(start..<min(bytes.count, start + word.count)) }
      bytes.insert(contentsOf: word, at: start)
    default:
      let other = corpus[below(corpus.count)]
      let from = below(other.count)
      bytes.replaceSubrange(start..<end, with: other[from..<min(other.count, from + 64)])
    }
  }
}
