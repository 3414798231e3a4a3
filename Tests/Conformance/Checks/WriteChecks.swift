import Glibc

/// Contents: sizes, orders and places of writes.
enum WriteChecks {
  static let all: [Check] = [
    Check("contentsOfEverySizeComeBack", contentsOfEverySizeComeBack),
    Check("contentsWrittenInPiecesComeBack", contentsWrittenInPiecesComeBack),
    Check("readsAtEveryBoundaryAreRight", readsAtEveryBoundaryAreRight),
    Check("readingPastTheEndGivesNothing", readingPastTheEndGivesNothing),
    Check("overwritingAtEveryBoundaryKeepsTheRest", overwritingAtEveryBoundaryKeepsTheRest),
    Check("overwritingWhileStreamingKeepsTheRest", overwritingWhileStreamingKeepsTheRest),
    Check("overwritingAcrossTheEndExtends", overwritingAcrossTheEndExtends),
    Check("writesInReverseOrderComeBack", writesInReverseOrderComeBack),
    Check("writesInRandomOrderComeBack", writesInRandomOrderComeBack),
    Check("overlappingWritesLeaveTheLastOne", overlappingWritesLeaveTheLastOne),
    Check("holesReadAsZeros", holesReadAsZeros),
    Check("aHoleBehindStreamedContentReadsAsZeros", aHoleBehindStreamedContentReadsAsZeros),
    Check("aHoleIsFilledLater", aHoleIsFilledLater),
    Check("writesAfterFsyncCount", writesAfterFsyncCount),
    Check("fsyncAfterEveryPieceKeepsAll", fsyncAfterEveryPieceKeepsAll),
    Check("fsyncOnAReaderSucceeds", fsyncOnAReaderSucceeds),
    Check("readsBetweenStreamedWritesAreRight", readsBetweenStreamedWritesAreRight),
    Check("rewritingTwiceInOneOpenKeepsTheSecond", rewritingTwiceInOneOpenKeepsTheSecond),
    Check("rewritingWithoutTruncationKeepsTheTail", rewritingWithoutTruncationKeepsTheTail),
    Check("twoHandlesWriteTwoHalves", twoHandlesWriteTwoHalves),
    Check("anEmptyWriteDoesNotExtend", anEmptyWriteDoesNotExtend),
    Check("sizesFollowEveryWrite", sizesFollowEveryWrite),
    Check("aLargeFileComesBack", aLargeFileComesBack),
    Check("manySmallCommitsKeepOneFile", manySmallCommitsKeepOneFile),
    Check("absurdSizesAreRefused", absurdSizesAreRefused),
    Check("manyFilesOpenForWritingAtOnceComeBack", manyFilesOpenForWritingAtOnceComeBack),
    Check("manyThreadsWriteManyFiles", manyThreadsWriteManyFiles),
    Check("manyThreadsWriteOneFile", manyThreadsWriteOneFile),
  ]

  /// Around the cipher's block, the page, the chunk of the index and a large request.
  static let sizes = [
    0, 1, 2, 15, 16, 17, 31, 32, 33, 4095, 4096, 4097, 65_519, 65_520, 65_535, 65_536, 65_537,
    131_071, 131_072, 131_073, 1_048_575, 1_048_576, 1_048_577,
  ]

  static func contentsOfEverySizeComeBack(_ fs: Volume) throws {
    for size in sizes {
      try fs.make("f\(size)", pattern(size, seed: UInt64(size)))
      try fs.expectContents("f\(size)", pattern(size, seed: UInt64(size)))
    }
    try fs.remount()
    for size in sizes { try fs.expectContents("f\(size)", pattern(size, seed: UInt64(size))) }
  }

  static func contentsWrittenInPiecesComeBack(_ fs: Volume) throws {
    let expected = pattern(150_001)
    for piece in [13, 1000, 4096, 65_536, 100_000] {
      let handle = try fs.open("p\(piece)", O_CREAT | O_WRONLY)
      for offset in stride(from: 0, to: expected.count, by: piece) {
        let end = min(offset + piece, expected.count)
        try fs.write(handle, Array(expected[offset..<end]), at: Int64(offset))
      }
      try fs.close(handle)
      try fs.expectContents("p\(piece)", expected)
    }
    try fs.remount()
    for piece in [13, 1000, 4096, 65_536, 100_000] {
      try fs.expectContents("p\(piece)", expected)
    }
  }

  static func readsAtEveryBoundaryAreRight(_ fs: Volume) throws {
    let content = pattern(300_000)
    try fs.make("a", content)
    for _ in 0..<2 {
      let handle = try fs.open("a")
      for boundary in [16, 4096, 65_536, 131_072, 196_608, 299_990] {
        for offset in boundary - 2...boundary + 2 {
          for count in [1, 3, 16, 4096, 65_537] {
            let end = min(offset + count, content.count)
            try expect(fs.read(handle, count, at: Int64(offset)), Array(content[offset..<end]))
          }
        }
      }
      try fs.close(handle)
      try fs.remount()
    }
  }

  static func readingPastTheEndGivesNothing(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try expect(fs.read(handle, 100), [])
    try fs.write(handle, pattern(5000))
    for _ in 0..<2 {
      let reader = try fs.open("a")
      try expect(fs.read(reader, 100, at: 4990), Array(pattern(5000)[4990...]))
      for offset: Int64 in [5000, 5001, 8192, 65_536, 1 << 40] {
        try expect(fs.read(reader, 100, at: offset), [])
      }
      try expect(fs.read(reader, 0), [])
      try fs.close(reader)
      try fs.fsync(handle)
    }
    try fs.close(handle)
    try expect(fs.stat("a").st_size, 5000)
  }

  static func overwritingAtEveryBoundaryKeepsTheRest(_ fs: Volume) throws {
    var expected = pattern(200_000)
    try fs.make("a", expected)
    let handle = try fs.open("a", O_RDWR)
    for boundary in [2, 16, 32, 4096, 65_520, 65_536, 131_072, 196_608, 199_996] {
      for shift in -2...1 {
        let offset = boundary + shift
        let piece = pattern(3, seed: UInt64(offset))
        try fs.write(handle, piece, at: Int64(offset))
        expected.replaceSubrange(offset..<offset + 3, with: piece)
      }
    }
    try fs.expectContents(handle, expected)
    try fs.close(handle)
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func overwritingWhileStreamingKeepsTheRest(_ fs: Volume) throws {
    var expected = pattern(3_000_000)
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, Array(expected[..<2_500_000]))
    try fs.write(handle, "overwritten", at: 1_234_567)
    expected.replaceSubrange(1_234_567..<1_234_578, with: Array("overwritten".utf8))
    try fs.write(handle, Array(expected[2_500_000...]), at: 2_500_000)
    try fs.expectContents(handle, expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func overwritingAcrossTheEndExtends(_ fs: Volume) throws {
    for size in [10, 4096, 65_536, 70_000] {
      let name = Path("f\(size)")
      try fs.make(name, pattern(size))
      let handle = try fs.open(name, O_WRONLY)
      try fs.write(handle, pattern(100, seed: 9), at: Int64(size - 5))
      try fs.close(handle)
      let expected = Array(pattern(size).dropLast(5)) + pattern(100, seed: 9)
      try fs.expectContents(name, expected)
      try fs.remount()
      try fs.expectContents(name, expected)
    }
  }

  static func writesInReverseOrderComeBack(_ fs: Volume) throws {
    let expected = pattern(40 * 5000)
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    for block in (0..<40).reversed() {
      let range = block * 5000..<(block + 1) * 5000
      try fs.write(handle, Array(expected[range]), at: Int64(range.lowerBound))
    }
    try fs.expectContents(handle, expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func writesInRandomOrderComeBack(_ fs: Volume) throws {
    var generator = SeededGenerator(seed: 7)
    let expected = pattern(64 * 16_384)
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    for block in (0..<64).shuffled(using: &generator) {
      let range = block * 16_384..<(block + 1) * 16_384
      try fs.write(handle, Array(expected[range]), at: Int64(range.lowerBound))
    }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func overlappingWritesLeaveTheLastOne(_ fs: Volume) throws {
    var expected: [UInt8] = []
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    for (round, offset) in [0, 900, 500, 60_000, 59_000, 65_000, 10, 120_000].enumerated() {
      let piece = pattern(10_000, seed: UInt64(round))
      try fs.write(handle, piece, at: Int64(offset))
      if expected.count < offset + 10_000 {
        expected += zeros(offset + 10_000 - expected.count)
      }
      expected.replaceSubrange(offset..<offset + 10_000, with: piece)
      try fs.expectContents(handle, expected)
    }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func holesReadAsZeros(_ fs: Volume) throws {
    for offset in [1, 16, 4096, 65_536, 70_000, 1_048_577, 8 << 20] {
      let name = Path("f\(offset)")
      let handle = try fs.open(name, O_CREAT | O_RDWR)
      try fs.write(handle, "end", at: Int64(offset))
      try fs.expectContents(handle, zeros(offset) + Array("end".utf8))
      try fs.close(handle)
      try fs.remount()
      try fs.expectContents(name, zeros(offset) + Array("end".utf8))
    }
  }

  static func aHoleBehindStreamedContentReadsAsZeros(_ fs: Volume) throws {
    let head = pattern(100_001)
    for gap in [1, 100, 65_536, 2_000_000] {
      let name = Path("f\(gap)")
      let handle = try fs.open(name, O_CREAT | O_RDWR)
      try fs.write(handle, head)
      try fs.write(handle, "end", at: Int64(head.count + gap))
      try fs.expectContents(handle, head + zeros(gap) + Array("end".utf8))
      try fs.close(handle)
      try fs.remount()
      try fs.expectContents(name, head + zeros(gap) + Array("end".utf8))
    }
  }

  static func aHoleIsFilledLater(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "end", at: 200_000)
    try fs.close(handle)
    let again = try fs.open("a", O_RDWR)
    try fs.write(again, pattern(100_000), at: 50_000)
    let expected = zeros(50_000) + pattern(100_000) + zeros(50_000) + Array("end".utf8)
    try fs.expectContents(again, expected)
    try fs.close(again)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func writesAfterFsyncCount(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, pattern(100_000))
    try fs.fsync(handle)
    try fs.expectContents("a", pattern(100_000))
    try fs.write(handle, "after", at: 100_000)
    try fs.fdatasync(handle)
    try fs.write(handle, "middle", at: 50_000)
    var expected = pattern(100_000) + Array("after".utf8)
    expected.replaceSubrange(50_000..<50_006, with: Array("middle".utf8))
    try fs.expectContents(handle, expected)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func fsyncAfterEveryPieceKeepsAll(_ fs: Volume) throws {
    let expected = pattern(12 * 20_000)
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    for block in 0..<12 {
      let range = block * 20_000..<(block + 1) * 20_000
      try fs.write(handle, Array(expected[range]), at: Int64(range.lowerBound))
      if block % 2 == 0 { try fs.fsync(handle) } else { try fs.fdatasync(handle) }
      try fs.expectContents("a", Array(expected[..<range.upperBound]))
    }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func fsyncOnAReaderSucceeds(_ fs: Volume) throws {
    let writer = try fs.open("a", O_CREAT | O_WRONLY)
    try fs.write(writer, "uncommitted")
    let reader = try fs.open("a")
    try fs.fsync(reader)
    try fs.fdatasync(reader)
    try fs.expectContents(reader, "uncommitted")
    try fs.close(writer)
    try fs.fsync(reader)
    try fs.close(reader)
    let directory = try fs.open("", O_RDONLY | O_DIRECTORY)
    try fs.fsync(directory)
    try fs.close(directory)
    try fs.remount()
    try fs.expectContents("a", "uncommitted")
  }

  static func readsBetweenStreamedWritesAreRight(_ fs: Volume) throws {
    let expected = pattern(50 * 30_000)
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    for block in 0..<50 {
      let range = block * 30_000..<(block + 1) * 30_000
      try fs.write(handle, Array(expected[range]), at: Int64(range.lowerBound))
      for offset in [0, range.lowerBound - 10, range.upperBound - 10, range.upperBound / 2] {
        let start = max(0, offset)
        let end = min(start + 20, range.upperBound)
        try expect(fs.read(handle, 20, at: Int64(start)), Array(expected[start..<end]))
      }
    }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func rewritingTwiceInOneOpenKeepsTheSecond(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    try fs.write(handle, pattern(150_000, seed: 1))
    try fs.write(handle, pattern(150_000, seed: 2))
    try fs.write(handle, pattern(80_000, seed: 3))
    try fs.close(handle)
    let expected = pattern(80_000, seed: 3) + Array(pattern(150_000, seed: 2)[80_000...])
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func rewritingWithoutTruncationKeepsTheTail(_ fs: Volume) throws {
    try fs.make("a", pattern(150_000, seed: 1))
    let handle = try fs.open("a", O_WRONLY)
    for offset in stride(from: 0, to: 100_000, by: 10_000) {
      try fs.write(handle, pattern(10_000, seed: UInt64(offset)), at: Int64(offset))
    }
    try fs.close(handle)
    let head = stride(from: 0, to: 100_000, by: 10_000).flatMap {
      pattern(10_000, seed: UInt64($0))
    }
    try fs.remount()
    try fs.expectContents("a", head + Array(pattern(150_000, seed: 1)[100_000...]))
  }

  static func twoHandlesWriteTwoHalves(_ fs: Volume) throws {
    let expected = pattern(200_000)
    let low = try fs.open("a", O_CREAT | O_WRONLY)
    let high = try fs.open("a", O_WRONLY)
    for offset in stride(from: 0, to: 100_000, by: 5000) {
      try fs.write(low, Array(expected[offset..<offset + 5000]), at: Int64(offset))
      let upper = offset + 100_000
      try fs.write(high, Array(expected[upper..<upper + 5000]), at: Int64(upper))
    }
    try fs.close(high)
    try fs.close(low)
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func anEmptyWriteDoesNotExtend(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    try fs.write(handle, [], at: 1000)
    try expect(fs.stat("a").st_size, 0)
    try fs.write(handle, "x")
    try fs.write(handle, [], at: 1000)
    try expect(fs.stat("a").st_size, 1)
    try fs.close(handle)
    try fs.expectContents("a", "x")
  }

  static func sizesFollowEveryWrite(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    var end = 0
    for size in [1, 100, 4096, 65_536, 200_000, 3] {
      try fs.write(handle, zeros(size), at: Int64(end))
      end += size
      try expect(fs.stat(.handle(handle)).st_size, end)
      try expect(fs.stat("a").st_size, end)
      try expect(fs.seek(handle, 0, SEEK_END), Int64(end))
    }
    try fs.close(handle)
    try expect(fs.stat("a").st_size, end)
    try fs.remount()
    try expect(fs.stat("a").st_size, end)
  }

  static func aLargeFileComesBack(_ fs: Volume) throws {
    let pieceSize = 1 << 20
    let handle = try fs.open("a", O_CREAT | O_WRONLY)
    for piece in 0..<24 {
      try fs.write(
        handle, pattern(pieceSize, seed: UInt64(piece)), at: Int64(piece * pieceSize))
    }
    try fs.close(handle)
    for _ in 0..<2 {
      let reader = try fs.open("a")
      for piece in [23, 0, 11, 12, 5] {
        try expect(
          fs.read(reader, pieceSize, at: Int64(piece * pieceSize)),
          pattern(pieceSize, seed: UInt64(piece)))
      }
      try expect(fs.stat(.handle(reader)).st_size, 24 * pieceSize)
      try fs.close(reader)
      try fs.remount()
    }
  }

  static func manySmallCommitsKeepOneFile(_ fs: Volume) throws {
    try fs.make("a", zeros(2000))
    var expected = zeros(2000)
    for round in 0..<100 {
      let handle = try fs.open("a", O_RDWR)
      try fs.write(handle, [UInt8(round)], at: Int64(round * 19))
      expected[round * 19] = UInt8(round)
      try fs.close(handle)
    }
    try fs.expectContents("a", expected)
    try fs.expectNames("", ["a"])
    try fs.remount()
    try fs.expectContents("a", expected)
    try fs.expectNames("", ["a"])
  }

  static func absurdSizesAreRefused(_ fs: Volume) throws {
    try fs.make("a", "content")
    let handle = try fs.open("a", O_RDWR)
    try expectError(EFBIG, ENOSPC) { try fs.truncate(.handle(handle), to: 1 << 62) }
    try expectError(EFBIG, ENOSPC) { try fs.write(handle, "x", at: 1 << 62) }
    try expectError(EINVAL) { try fs.truncate(.handle(handle), to: -1) }
    try expectError(EINVAL) { try fs.truncate("a", to: -1) }
    try fs.expectContents(handle, "content")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "content")
  }

  static func manyFilesOpenForWritingAtOnceComeBack(_ fs: Volume) throws {
    let handles = try (0..<100).map { try fs.open("f\($0)", O_CREAT | O_WRONLY) }
    for round in 0..<3 {
      for (number, handle) in handles.enumerated() {
        try fs.write(
          handle, pattern(3000, seed: UInt64(number * 10 + round)), at: Int64(round * 3000))
      }
    }
    for handle in handles { try fs.close(handle) }
    try fs.remount()
    for number in 0..<100 {
      let expected = (0..<3).flatMap { pattern(3000, seed: UInt64(number * 10 + $0)) }
      try fs.expectContents("f\(number)", expected)
    }
  }

  static func manyThreadsWriteManyFiles(_ fs: Volume) throws {
    try Parallel.run(8) { number in
      for round in 0..<10 {
        let name = Path("t\(number)-\(round)")
        let content = pattern(40_000 * round + number, seed: UInt64(number * 100 + round))
        try fs.make("\(name).tmp", content)
        try fs.rename("\(name).tmp", name)
        try fs.expectContents(name, content)
        if round % 3 == 0 { try fs.unlink(name) }
      }
    }
    try fs.remount()
    var names: [String] = []
    for number in 0..<8 {
      for round in 0..<10 where round % 3 != 0 {
        names.append("t\(number)-\(round)")
        try fs.expectContents(
          "t\(number)-\(round)",
          pattern(40_000 * round + number, seed: UInt64(number * 100 + round)))
      }
    }
    try fs.expectNames("", names)
  }

  static func manyThreadsWriteOneFile(_ fs: Volume) throws {
    let blockSize = 10_000
    try fs.make("a", zeros(8 * 20 * blockSize))
    try Parallel.run(8) { number in
      let handle = try fs.open("a", O_RDWR)
      for round in 0..<20 {
        let block = round * 8 + number
        let content = pattern(blockSize, seed: UInt64(block))
        try fs.write(handle, content, at: Int64(block * blockSize))
        try expect(fs.read(handle, blockSize, at: Int64(block * blockSize)), content)
        if round % 7 == number { try fs.fsync(handle) }
      }
      try fs.close(handle)
    }
    let expected = (0..<160).flatMap { pattern(blockSize, seed: UInt64($0)) }
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }
}
