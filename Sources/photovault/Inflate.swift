/// Expands what zlib compressed: enough for a line of text in a PNG file, without a library for it.
/// Source: RFC 1950 and 1951.
struct Inflate {
  /// nil if it is damaged or longer than `limit` when expanded. The checksum is not looked at.
  static func expand(_ bytes: ArraySlice<UInt8>, limit: Int) -> [UInt8]? {
    let header = bytes.prefix(2).map(Int.init)
    // Method 8, no preset dictionary, and the header's own check.
    guard header.count == 2, header[0] & 15 == 8, header[1] & 0x20 == 0,
      (header[0] << 8 | header[1]) % 31 == 0
    else { return nil }
    var inflate = Inflate(input: Array(bytes.dropFirst(2)), limit: limit)
    return inflate.run() ? inflate.output : nil
  }

  private let input: [UInt8]
  private let limit: Int
  /// In bits.
  private var position = 0
  private var output: [UInt8] = []

  private init(input: [UInt8], limit: Int) {
    self.input = input
    self.limit = limit
  }

  private mutating func run() -> Bool {
    while true {
      guard let isLast = bits(1), let kind = bits(2) else { return false }
      let isGood =
        switch kind {
        case 0: stored()
        case 1: coded(Self.fixedLiterals, Self.fixedDistances)
        case 2: codedWithOwnTables()
        default: false
        }
      if !isGood { return false }
      if isLast == 1 { return true }
    }
  }

  /// The next `count` bits, the first one lowest; nil at the end.
  private mutating func bits(_ count: Int) -> Int? {
    guard position + count <= input.count * 8 else { return nil }
    var value = 0
    for bit in 0..<count {
      let index = position + bit
      value |= Int(input[index >> 3] >> (index & 7) & 1) << bit
    }
    position += count
    return value
  }

  private mutating func stored() -> Bool {
    position = (position + 7) & ~7
    guard let count = bits(16), let inverse = bits(16), count ^ 0xFFFF == inverse else {
      return false
    }
    let start = position >> 3
    guard start + count <= input.count, output.count + count <= limit else { return false }
    output += input[start..<start + count]
    position += count * 8
    return true
  }

  // MARK: Huffman codes

  /// A canonical code: how many words there are of each length, and their symbols in order.
  private struct Code {
    var counts = [Int](repeating: 0, count: 16)
    var symbols: [Int] = []

    /// nil for lengths that no code can have.
    init?(lengths: [Int]) {
      for length in lengths where length > 0 { counts[length] += 1 }
      var room = 1
      for length in 1...15 {
        room = room * 2 - counts[length]
        if room < 0 { return nil }
      }
      for length in 1...15 {
        symbols += lengths.indices.filter { lengths[$0] == length }
      }
    }
  }

  private static let fixedLiterals = Code(
    lengths: (0..<288).map { $0 < 144 ? 8 : $0 < 256 ? 9 : $0 < 280 ? 7 : 8 })
  private static let fixedDistances = Code(lengths: [Int](repeating: 5, count: 30))

  private mutating func symbol(_ code: Code) -> Int? {
    var word = 0
    var first = 0
    var index = 0
    for length in 1...15 {
      guard let bit = bits(1) else { return nil }
      word |= bit
      let count = code.counts[length]
      if word - first < count { return code.symbols[index + word - first] }
      index += count
      first = (first + count) << 1
      word <<= 1
    }
    return nil
  }

  private static let lengthBases = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115,
    131, 163, 195, 227, 258,
  ]
  private static let distanceBases = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537,
    2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577,
  ]

  private mutating func coded(_ literals: Code?, _ distances: Code?) -> Bool {
    guard let literals, let distances else { return false }
    while true {
      guard let literal = symbol(literals) else { return false }
      if literal < 256 {
        guard output.count < limit else { return false }
        output.append(UInt8(literal))
      } else if literal == 256 {
        return true
      } else if !copy(literal - 257, distances) {
        return false
      }
    }
  }

  /// Repeats what stands further back.
  private mutating func copy(_ lengthCode: Int, _ distances: Code) -> Bool {
    guard lengthCode < Self.lengthBases.count else { return false }
    let lengthBits = lengthCode < 8 || lengthCode == 28 ? 0 : lengthCode / 4 - 1
    guard let more = bits(lengthBits), let code = symbol(distances),
      code < Self.distanceBases.count, let further = bits(code < 4 ? 0 : code / 2 - 1)
    else { return false }
    let length = Self.lengthBases[lengthCode] + more
    let distance = Self.distanceBases[code] + further
    guard distance <= output.count, output.count + length <= limit else { return false }
    for _ in 0..<length { output.append(output[output.count - distance]) }
    return true
  }

  private static let lengthOrder = [
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
  ]

  private mutating func codedWithOwnTables() -> Bool {
    guard let literals = bits(5), let distances = bits(5), let count = bits(4) else {
      return false
    }
    var lengths = [Int](repeating: 0, count: 19)
    for index in 0..<count + 4 {
      guard let length = bits(3) else { return false }
      lengths[Self.lengthOrder[index]] = length
    }
    guard let code = Code(lengths: lengths),
      let all = codeLengths(code, count: literals + 257 + distances + 1)
    else { return false }
    return coded(
      Code(lengths: Array(all[..<(literals + 257)])),
      Code(lengths: Array(all[(literals + 257)...])))
  }

  private mutating func codeLengths(_ code: Code, count: Int) -> [Int]? {
    var lengths: [Int] = []
    while lengths.count < count {
      guard let symbol = symbol(code) else { return nil }
      let run: (length: Int, count: Int?)
      switch symbol {
      case 16:
        guard let last = lengths.last else { return nil }
        run = (last, bits(2).map { $0 + 3 })
      case 17: run = (0, bits(3).map { $0 + 3 })
      case 18: run = (0, bits(7).map { $0 + 11 })
      default: run = (symbol, 1)
      }
      guard let times = run.count else { return nil }
      lengths += [Int](repeating: run.length, count: times)
    }
    return lengths.count == count ? lengths : nil
  }
}
