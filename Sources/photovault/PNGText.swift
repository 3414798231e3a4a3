import Glibc
import Platform
import RuntimeLibraries

/// Finds a line of text in PNG files, many of them one after the other. Reads as little as it can:
/// writers put texts before the picture, so mostly that is one read of 4 KiB.
/// Source: the PNG specification, 5.3 and 11.3.4.
struct PNGText: ~Copyable {
  private static let signature: UInt64 = 0x8950_4E47_0D0A_1A0A
  private static let windowByteCount = 4096
  private static let greatestText = 1 << 16  // a URI has at most three bytes for each of a path
  private static let greatestChunkCount = 10_000

  private let keyword: [UInt8]
  private let buffer = UnsafeMutableRawBufferPointer.allocate(
    byteCount: greatestText, alignment: MemoryLayout<UInt64>.alignment)
  private var windowStart = 0
  private var windowEnd = 0

  init(keyword: String) { self.keyword = Array(keyword.utf8) + [0] }

  deinit { buffer.deallocate() }

  /// The text under the keyword; nil where there is none, or no PNG file.
  mutating func value(in file: CInt) throws(Errno) -> [UInt8]? {
    (windowStart, windowEnd) = (0, 0)
    guard let start = try position(of: 0, 8, in: file), number(UInt64.self, start) == Self.signature
    else { return nil }
    var offset = 8
    for _ in 0..<Self.greatestChunkCount {
      guard let header = try position(of: offset, 8, in: file) else { return nil }
      let length = Int(number(UInt32.self, header))
      let type = Kind(rawValue: number(UInt32.self, header + 4))
      if type == .end { return nil }
      if let type, length <= Self.greatestText,
        let start = try position(of: offset + 8, length, in: file)
      {
        let content = UnsafeRawBufferPointer(rebasing: buffer[start..<start + length])
        if content.starts(with: keyword) {
          return Self.text(Array(content.dropFirst(keyword.count))[...], type)
        }
      }
      offset += 12 + length  // and the checksum
    }
    return nil
  }

  private enum Kind: UInt32 {
    case plain = 0x7445_5874  // tEXt
    case compressed = 0x7A54_5874  // zTXt
    case international = 0x6954_5874  // iTXt
    case end = 0x4945_4E44  // IEND
  }

  /// What stands behind the keyword. Qt compresses texts of 40 characters and more.
  private static func text(_ content: ArraySlice<UInt8>, _ kind: Kind) -> [UInt8]? {
    switch kind {
    case .plain: return Array(content)
    case .compressed:
      guard content.first == 0 else { return nil }
      return Zlib.expand(content.dropFirst(), limit: greatestText)
    case .international:
      // Compressed or not, the method, a language, the translated keyword.
      let parts = content.dropFirst(2).split(
        separator: 0, maxSplits: 2, omittingEmptySubsequences: false)
      guard let isCompressed = content.first, parts.count == 3 else { return nil }
      return isCompressed == 0
        ? Array(parts[2]) : Zlib.expand(parts[2], limit: greatestText)
    case .end: return nil
    }
  }

  private func number<Number: FixedWidthInteger & BitwiseCopyable>(
    _ type: Number.Type, _ position: Int
  ) -> Number {
    Number(bigEndian: buffer.loadUnaligned(fromByteOffset: position, as: type))
  }

  /// Where in the buffer these bytes of the file are now; nil if the file ends before.
  private mutating func position(
    of offset: Int, _ count: Int, in file: CInt
  ) throws(Errno) -> Int? {
    if offset < windowStart || offset + count > windowEnd {
      let size = max(count, Self.windowByteCount)
      let read = try Syscalls.read(
        file, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<size]), at: Int64(offset))
      (windowStart, windowEnd) = (offset, offset + read)
    }
    return offset + count <= windowEnd ? offset - windowStart : nil
  }
}
