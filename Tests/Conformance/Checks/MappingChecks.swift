import Glibc

/// mmap(2): only a kernel can do that, so only behind a mount point.
enum MappingChecks {
  static let all: [Check] = [
    Check("aMappingShowsTheContent", needs: .systemCalls, aMappingShowsTheContent),
    Check("writesThroughAMappingAreRead", needs: .systemCalls, writesThroughAMappingAreRead),
    Check(
      "writesThroughAMappingAfterCloseAreKept", needs: .systemCalls,
      writesThroughAMappingAfterCloseAreKept),
    Check(
      "writesThroughAMappingOfANewFileAreKept", needs: .systemCalls,
      writesThroughAMappingOfANewFileAreKept),
    Check("syncedMappingsAreKept", needs: .systemCalls, syncedMappingsAreKept),
    Check("privateMappingsChangeNothing", needs: .systemCalls, privateMappingsChangeNothing),
    Check("aMappingSeesWritesAtOnce", needs: .systemCalls, aMappingSeesWritesAtOnce),
    Check("aMappingOfAnUnlinkedFileLives", needs: .systemCalls, aMappingOfAnUnlinkedFileLives),
    Check("aMappingOfAReplacedFileLives", needs: .systemCalls, aMappingOfAReplacedFileLives),
    Check("mappingsThroughTwoLinksAreOne", needs: .systemCalls, mappingsThroughTwoLinksAreOne),
    Check("aMappingFollowsTruncation", needs: .systemCalls, aMappingFollowsTruncation),
    Check("aMappingNeverExtendsTheFile", needs: .systemCalls, aMappingNeverExtendsTheFile),
    Check("aReaderCannotMapForWriting", needs: .systemCalls, aReaderCannotMapForWriting),
    Check("aMappingWriteChangesTheTime", needs: .systemCalls, aMappingWriteChangesTheTime),
    Check("aMappingFollowsARename", needs: .systemCalls, aMappingFollowsARename),
    Check("aMappingIsWrittenByManyThreads", needs: .systemCalls, aMappingIsWrittenByManyThreads),
  ]

  static func aMappingShowsTheContent(_ fs: Volume) throws {
    let size = 300_001
    try fs.make("a", pattern(size))
    for _ in 0..<2 {
      let handle = try fs.open("a")
      do {
        let mapping = try Mapping(handle, size: size, writable: false)
        try expect(mapping.bytes(200_000..<200_010), Array(pattern(size)[200_000..<200_010]))
        try expect(mapping.bytes(0..<size), pattern(size))
      }
      try fs.close(handle)
      try fs.remount()
    }
  }

  static func writesThroughAMappingAreRead(_ fs: Volume) throws {
    var expected = pattern(200_000)
    try fs.make("a", expected)
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 200_000, writable: true)
      for offset in [0, 4090, 65_530, 199_990] {
        mapping.store(Array("0123456789".utf8), at: offset)
        expected.replaceSubrange(offset..<offset + 10, with: Array("0123456789".utf8))
        try fs.expectContents(handle, expected)
      }
      try fs.expectContents("a", expected)
    }
    try fs.close(handle)
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func writesThroughAMappingAfterCloseAreKept(_ fs: Volume) throws {
    var expected = pattern(200_000)
    try fs.make("a", expected)
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 200_000, writable: true)
      try fs.close(handle)
      mapping.store(Array("after the close".utf8), at: 100_000)
    }
    expected.replaceSubrange(100_000..<100_015, with: Array("after the close".utf8))
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  /// What databases and linkers do: make, extend, map, write, close, unmap.
  static func writesThroughAMappingOfANewFileAreKept(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.write(handle, "head")
    try fs.truncate(.handle(handle), to: 150_000)
    do {
      let mapping = try Mapping(handle, size: 150_000, writable: true)
      try expect(mapping.bytes(0..<6), Array("head".utf8) + [0, 0])
      mapping.store(pattern(100_000), at: 50_000)
      try fs.close(handle)
      mapping.store(Array("tail".utf8), at: 149_996)
    }
    var expected = Array("head".utf8) + zeros(49_996) + pattern(100_000)
    expected.replaceSubrange(149_996..<150_000, with: Array("tail".utf8))
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }

  static func syncedMappingsAreKept(_ fs: Volume) throws {
    try fs.make("a", zeros(100_000))
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 100_000, writable: true)
      mapping.store(Array("one".utf8), at: 10)
      try mapping.synchronize()
      mapping.store(Array("two".utf8), at: 70_000)
      try mapping.synchronize()
      try fs.fsync(handle)
    }
    try fs.close(handle)
    try fs.remount()
    var expected = zeros(100_000)
    expected.replaceSubrange(10..<13, with: Array("one".utf8))
    expected.replaceSubrange(70_000..<70_003, with: Array("two".utf8))
    try fs.expectContents("a", expected)
  }

  static func privateMappingsChangeNothing(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a")
    do {
      let mapping = try Mapping(handle, size: 100_000, writable: true, shared: false)
      mapping.store(zeros(100_000), at: 0)
      try mapping.synchronize()
      try expect(mapping.bytes(0..<10), zeros(10))
    }
    try fs.close(handle)
    try fs.expectContents("a", pattern(100_000))
    try fs.remount()
    try fs.expectContents("a", pattern(100_000))
  }

  static func aMappingSeesWritesAtOnce(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let reader = try fs.open("a")
    do {
      let mapping = try Mapping(reader, size: 100_000, writable: false)
      try expect(mapping.bytes(0..<100_000), pattern(100_000))
      let writer = try fs.open("a", O_RDWR)
      try fs.write(writer, "written", at: 50_000)
      try expect(mapping.bytes(50_000..<50_007), Array("written".utf8))
      try fs.fsync(writer)
      try expect(mapping.bytes(50_000..<50_007), Array("written".utf8))
      try fs.close(writer)
      try expect(mapping.bytes(50_000..<50_007), Array("written".utf8))
    }
    try fs.close(reader)
  }

  static func aMappingOfAnUnlinkedFileLives(_ fs: Volume) throws {
    try fs.make("a", pattern(300_000))
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 300_000, writable: true)
      try fs.unlink("a")
      try fs.close(handle)
      try expect(mapping.bytes(0..<300_000), pattern(300_000))
      mapping.store(zeros(1000), at: 200_000)
      try mapping.synchronize()
      try expect(mapping.bytes(200_000..<201_000), zeros(1000))
    }
    try fs.expectNames("", [])
  }

  static func aMappingOfAReplacedFileLives(_ fs: Volume) throws {
    try fs.make("a", pattern(300_000))
    let handle = try fs.open("a")
    do {
      let mapping = try Mapping(handle, size: 300_000, writable: false)
      try expect(mapping.bytes(0..<10), pattern(10))
      try fs.make("b", "new")
      try fs.rename("b", "a")
      try fs.close(handle)
      try expect(mapping.bytes(0..<300_000), pattern(300_000))
    }
    try fs.expectContents("a", "new")
  }

  static func mappingsThroughTwoLinksAreOne(_ fs: Volume) throws {
    try fs.make("a", zeros(10_000))
    try fs.link("a", "b")
    let first = try fs.open("a", O_RDWR)
    let second = try fs.open("b", O_RDWR)
    do {
      let one = try Mapping(first, size: 10_000, writable: true)
      let two = try Mapping(second, size: 10_000, writable: true)
      one.store([1, 2, 3], at: 5000)
      try expect(two.bytes(5000..<5003), [1, 2, 3])
      two.store([4], at: 5001)
      try expect(one.bytes(5000..<5003), [1, 4, 3])
      try fs.expectContents("b", zeros(5000) + [1, 4, 3] + zeros(4997))
    }
    try fs.close(first)
    try fs.close(second)
    try fs.remount()
    try fs.expectContents("a", zeros(5000) + [1, 4, 3] + zeros(4997))
    try fs.expectContents("b", zeros(5000) + [1, 4, 3] + zeros(4997))
  }

  static func aMappingFollowsTruncation(_ fs: Volume) throws {
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 100_000, writable: true)
      try expect(mapping.bytes(99_990..<100_000), Array(pattern(100_000)[99_990...]))
      try fs.truncate(.handle(handle), to: 50_000)
      try fs.truncate(.handle(handle), to: 100_000)
      try expect(mapping.bytes(50_000..<100_000), zeros(50_000))
      mapping.store(Array("x".utf8), at: 75_000)
    }
    try fs.close(handle)
    try fs.remount()
    let expected =
      Array(pattern(100_000)[..<50_000]) + zeros(25_000) + Array("x".utf8) + zeros(24_999)
    try fs.expectContents("a", expected)
  }

  static func aMappingNeverExtendsTheFile(_ fs: Volume) throws {
    try fs.make("a", "content")
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 4096, writable: true)
      try expect(mapping.bytes(7..<4096), zeros(4089))
      mapping.store(Array("CONTENT AND MORE".utf8), at: 0)
      try mapping.synchronize()
    }
    try fs.expectContents(handle, "CONTENT")
    try fs.close(handle)
    try fs.remount()
    try fs.expectContents("a", "CONTENT")
  }

  static func aReaderCannotMapForWriting(_ fs: Volume) throws {
    try fs.make("a", "content")
    let reader = try fs.open("a")
    let writer = try fs.open("a", O_WRONLY)
    try expectError(EACCES) { _ = try Mapping(reader, size: 7, writable: true) }
    try expectError(EACCES) { _ = try Mapping(writer, size: 7, writable: false) }
    try fs.close(reader)
    try fs.close(writer)
  }

  static func aMappingWriteChangesTheTime(_ fs: Volume) throws {
    try fs.make("a", zeros(10_000))
    try fs.utimens("a", .seconds(1000), .seconds(1000))
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 10_000, writable: true)
      mapping.store([1], at: 0)
      try mapping.synchronize()
    }
    try expect(fs.stat("a").st_mtim.tv_sec > 1000, "the modification time stays")
    try fs.close(handle)
    try fs.remount()
    try expect(fs.stat("a").st_mtim.tv_sec > 1000, "the modification time stays")
  }

  static func aMappingFollowsARename(_ fs: Volume) throws {
    try fs.make("a", zeros(100_000))
    let handle = try fs.open("a", O_RDWR)
    do {
      let mapping = try Mapping(handle, size: 100_000, writable: true)
      mapping.store([1], at: 0)
      try fs.rename("a", "b")
      try fs.close(handle)
      mapping.store([2], at: 99_999)
    }
    try fs.expectContents("b", [1] + zeros(99_998) + [2])
    try fs.remount()
    try fs.expectNames("", ["b"])
    try fs.expectContents("b", [1] + zeros(99_998) + [2])
  }

  static func aMappingIsWrittenByManyThreads(_ fs: Volume) throws {
    let share = 50_000
    try fs.make("a", zeros(8 * share))
    try Parallel.run(8) { number in
      let handle = try fs.open("a", O_RDWR)
      let mapping = try Mapping(handle, size: 8 * share, writable: true)
      try fs.close(handle)
      mapping.store(pattern(share, seed: UInt64(number)), at: number * share)
      if number % 2 == 0 { try mapping.synchronize() }
    }
    let expected = (0..<8).flatMap { pattern(share, seed: UInt64($0)) }
    try fs.expectContents("a", expected)
    try fs.remount()
    try fs.expectContents("a", expected)
  }
}
