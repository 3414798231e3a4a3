import Glibc
import Platform

/// fallocate(2) and lseek(2) with SEEK_DATA and SEEK_HOLE.
enum SpaceChecks {
  static let all: [Check] = [
    Check("allocatingGrowsWithZeros", allocatingGrowsWithZeros),
    Check("allocatingWithinKeepsContent", allocatingWithinKeepsContent),
    Check("allocatingWithKeepSizeKeepsTheSize", allocatingWithKeepSizeKeepsTheSize),
    Check("allocatingBeforeWritingKeepsTheContent", allocatingBeforeWritingKeepsTheContent),
    Check("punchedHolesReadAsZerosOrAreRefused", punchedHolesReadAsZerosOrAreRefused),
    Check("zeroedRangesReadAsZerosOrAreRefused", zeroedRangesReadAsZerosOrAreRefused),
    Check("otherAllocationsAreRightOrRefused", otherAllocationsAreRightOrRefused),
    Check("allocationArgumentsAreChecked", allocationArgumentsAreChecked),
    Check("dataIsFoundWhereItIs", dataIsFoundWhereItIs),
    Check("theEndIsAHole", theEndIsAHole),
    Check("holesThatAreFoundAreZeros", holesThatAreFoundAreZeros),
  ]

  private static let keepSize: CInt = 1  // FALLOC_FL_KEEP_SIZE
  private static let punchHole: CInt = 2  // FALLOC_FL_PUNCH_HOLE
  private static let zeroRange: CInt = 0x10  // FALLOC_FL_ZERO_RANGE
  private static let seekData: CInt = 3  // SEEK_DATA
  private static let seekHole: CInt = 4  // SEEK_HOLE

  static func allocatingGrowsWithZeros(_ fs: Volume) throws {
    for (size, offset, length) in [(0, 0, 100), (10, 10, 65_536), (5000, 100_000, 50_000)] {
      let name = Path("f\(size)")
      try fs.make(name, pattern(size))
      let handle = try fs.open(name, O_RDWR)
      try fs.fallocate(handle, 0, Int64(offset), Int64(length))
      let expected = pattern(size) + zeros(offset + length - size)
      try fs.expectContents(handle, expected)
      try fs.close(handle)
      try fs.remount()
      try fs.expectContents(name, expected)
    }
  }

  static func allocatingWithinKeepsContent(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.fallocate(handle, 0, 10, 50_000)
    try fs.fallocate(handle, keepSize, 0, 100_000)
    try fs.expectContents(handle, pattern(100_000))
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", pattern(100_000))
  }

  static func allocatingWithKeepSizeKeepsTheSize(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "content")
    try fs.fallocate(handle, keepSize, 0, 1_000_000)
    try fs.expectContents(handle, "content")
    try fs.write(handle, "!", at: 7)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "content!")
  }

  /// What rsync --preallocate, torrent programs and cameras do: allocate all, then write in order.
  static func allocatingBeforeWritingKeepsTheContent(_ fs: Volume) throws {
    let content = pattern(300_000)
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.fallocate(handle, 0, 0, 300_000)
    try expect(fs.stat("a").st_size, 300_000)
    for offset in stride(from: 0, to: 300_000, by: 50_000) {
      try fs.write(handle, Array(content[offset..<offset + 50_000]), at: Int64(offset))
    }
    try fs.expectContents(handle, content)
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", content)
  }

  static func punchedHolesReadAsZerosOrAreRefused(_ fs: Volume) throws {
    try zerosOrRefused(fs, punchHole | keepSize)
  }

  static func zeroedRangesReadAsZerosOrAreRefused(_ fs: Volume) throws {
    try zerosOrRefused(fs, zeroRange)
    try zerosOrRefused(fs, zeroRange | keepSize)
  }

  private static func zerosOrRefused(_ fs: Volume, _ mode: CInt) throws {
    var expected = pattern(200_000)
    try fs.make("a", expected)
    let handle = try fs.open("a", O_RDWR)
    for (offset, length) in [(5, 10), (4096, 4096), (50_000, 100_000), (199_990, 10)] {
      do {
        try fs.fallocate(handle, mode, Int64(offset), Int64(length))
        expected.replaceSubrange(offset..<offset + length, with: zeros(length))
      } catch let failure as CheckFailure where failure.errno == .notSupported {}
      try fs.expectContents(handle, expected)
    }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func otherAllocationsAreRightOrRefused(_ fs: Volume) throws {
    let collapse: CInt = 8  // FALLOC_FL_COLLAPSE_RANGE
    let insert: CInt = 0x20  // FALLOC_FL_INSERT_RANGE
    let content = pattern(3 * 65_536)
    try fs.make("a", content)
    let handle = try fs.open("a", O_RDWR)
    var expected = content
    do {
      try fs.fallocate(handle, collapse, 65_536, 65_536)
      expected.removeSubrange(65_536..<2 * 65_536)
    } catch let failure as CheckFailure where failure.errno == .notSupported {}
    try fs.expectContents(handle, expected)
    do {
      try fs.fallocate(handle, insert, 65_536, 65_536)
      expected.insert(contentsOf: zeros(65_536), at: 65_536)
    } catch let failure as CheckFailure where failure.errno == .notSupported {}
    try fs.expectContents(handle, expected)
    try expectError(EOPNOTSUPP, EINVAL) { try fs.fallocate(handle, punchHole, 0, 10) }
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func allocationArgumentsAreChecked(_ fs: Volume) throws {
    try fs.make("a", "x")
    let handle = try fs.open("a", O_RDWR)
    try expectError(EINVAL) { try fs.fallocate(handle, 0, 0, 0) }
    try expectError(EINVAL) { try fs.fallocate(handle, 0, -1, 10) }
    try expectError(EINVAL) { try fs.fallocate(handle, 0, 0, -1) }
    try expectError(EFBIG, ENOSPC) { try fs.fallocate(handle, 0, 0, 1 << 60) }
    let reader = try fs.open("a")
    try expectError(EBADF) { try fs.fallocate(reader, 0, 0, 10) }
    try fs.close(reader)
    try fs.expectContents(handle, "x")
    try fs.close(handle)
  }

  static func dataIsFoundWhereItIs(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let new = try fs.open("b", O_CREAT | O_RDWR)
    try fs.write(new, pattern(100_000))
    let committed = try fs.open("a")
    for handle in [committed, new] {
      for offset: Int64 in [0, 1, 4096, 65_536, 99_999] {
        try expect(fs.seek(handle, offset, seekData), offset)
        try expect(fs.seek(handle, offset, seekHole), 100_000)
      }
    }
    try fs.close(committed)
    try fs.close(new)
  }

  static func theEndIsAHole(_ fs: Volume) throws {
    try fs.make("a", "content")
    try fs.make("empty")
    let handle = try fs.open("a")
    try expect(fs.seek(handle, 0, SEEK_END), 7)
    for offset: Int64 in [7, 8, 1 << 40] {
      try expectError(ENXIO) { try fs.seek(handle, offset, seekData) }
      try expectError(ENXIO) { try fs.seek(handle, offset, seekHole) }
    }
    try fs.close(handle)
    let empty = try fs.open("empty")
    try expectError(ENXIO) { try fs.seek(empty, 0, seekData) }
    try expectError(ENXIO) { try fs.seek(empty, 0, seekHole) }
    try fs.close(empty)
  }

  static func holesThatAreFoundAreZeros(_ fs: Volume) throws {
    let size = 1_300_000
    var expected = zeros(size)
    let writer = try fs.open("a", O_CREAT | O_RDWR)
    for offset in [200_000, 700_000, 1_200_000] {
      try fs.write(writer, pattern(100_000), at: Int64(offset))
      expected.replaceSubrange(offset..<offset + 100_000, with: pattern(100_000))
    }
    for round in 0..<2 {
      let handle = round == 0 ? writer : try fs.open("a")
      var position: Int64 = 0
      var rebuilt = zeros(size)
      while position < size {
        let data: Int64
        do { data = try fs.seek(handle, position, seekData) } catch let failure as CheckFailure
          where failure.errno == .noSeekTarget
        { break }
        let hole = try fs.seek(handle, data, seekHole)
        try expect(data >= position && hole > data, "data at \(data), hole at \(hole)")
        let bytes = try fs.read(handle, Int(hole - data), at: data)
        rebuilt.replaceSubrange(Int(data)..<Int(hole), with: bytes)
        position = hole
      }
      try expect(rebuilt, expected)
      try fs.close(handle)
      try fs.remount()
    }
  }
}
