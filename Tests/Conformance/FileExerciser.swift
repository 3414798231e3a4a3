import Glibc
import Platform

/// What fsx does: random reads, writes, truncations, mappings and reopenings of one file, each
/// compared with an array of bytes.
enum FileExerciser {
  private static let largest = 300_000

  static func run(on fs: Volume, seed: UInt64, count: Int, mapping: Bool) throws {
    var state = State(fs: fs, generator: SeededGenerator(seed: seed))
    for step in 0..<count {
      do {
        try state.step(mapping: mapping)
      } catch let failure as CheckFailure {
        let journal = state.journal.suffix(12).joined(separator: "; ")
        throw CheckFailure(
          "\(failure) at step \(step) of seed \(seed): \(journal)", #filePath, #line)
      }
    }
    try state.reopen()
    try fs.expectContents("fsx", state.model)
    state.close()
    try fs.remount()
    try fs.expectContents("fsx", state.model)
  }

  private struct State {
    let fs: Volume
    var generator: SeededGenerator
    var model: [UInt8] = []
    var handles: [Handle] = []
    var journal: [String] = []

    init(fs: Volume, generator: SeededGenerator) {
      self.fs = fs
      self.generator = generator
    }

    /// Sizes and offsets near the boundaries of blocks, pages and chunks come often.
    private mutating func number(_ limit: Int) -> Int {
      guard limit > 0 else { return 0 }
      let boundaries = [16, 4096, 65_536, 131_072]
      guard Int.random(in: 0..<3, using: &generator) == 0,
        let unit = boundaries.randomElement(using: &generator)
      else { return Int.random(in: 0...limit, using: &generator) }
      let near = unit * Int.random(in: 0...4, using: &generator)
      return min(max(near + Int.random(in: -2...2, using: &generator), 0), limit)
    }

    private mutating func handle() throws -> Handle {
      if handles.isEmpty { handles.append(try fs.open("fsx", O_CREAT | O_RDWR)) }
      return handles[Int.random(in: 0..<handles.count, using: &generator)]
    }

    mutating func step(mapping: Bool) throws {
      switch Int.random(in: 0..<(mapping ? 120 : 100), using: &generator) {
      case 0..<30: try read()
      case 30..<65: try write()
      case 65..<72: try truncate()
      case 72..<77: try synchronize()
      case 77..<84: try reopen()
      case 84..<88: try openAnother()
      case 88..<92: try append()
      case 92..<95: try rewrite()
      case 95..<97: try checkAll()
      case 97..<99: try allocate()
      case 99..<100: try remount()
      case 100..<110: try mapRead()
      default: try mapWrite()
      }
    }

    private mutating func read() throws {
      let offset = number(model.count + 1000)
      let count = number(150_000)
      journal.append("read \(count) at \(offset)")
      let wanted = offset < model.count ? model[offset..<min(offset + count, model.count)] : []
      try expect(fs.read(try handle(), count, at: Int64(offset)), Array(wanted), "read")
    }

    private mutating func write() throws {
      // Half of the writes go on at the end, as most programs do.
      let goesOn = Bool.random(using: &generator) && model.count < largest
      let offset = goesOn ? model.count : number(min(model.count + 5000, largest))
      let bytes = pattern(1 + number(70_000), seed: generator.next())
      journal.append("write \(bytes.count) at \(offset)")
      try fs.write(try handle(), bytes, at: Int64(offset))
      put(bytes, at: offset)
    }

    private mutating func put(_ bytes: [UInt8], at offset: Int) {
      let end = offset + bytes.count
      if model.count < end { model += zeros(end - model.count) }
      model.replaceSubrange(offset..<end, with: bytes)
    }

    private mutating func truncate() throws {
      let size = number(largest)
      let byPath = Bool.random(using: &generator)
      journal.append("truncate \(byPath ? "by path " : "")to \(size)")
      let handle = try handle()
      try fs.truncate(byPath ? "fsx" : .handle(handle), to: Int64(size))
      model = Array(model.prefix(size)) + zeros(max(0, size - model.count))
    }

    private mutating func synchronize() throws {
      journal.append("fsync")
      let handle = try handle()
      if Bool.random(using: &generator) { try fs.fsync(handle) } else { try fs.fdatasync(handle) }
    }

    mutating func reopen() throws {
      journal.append("reopen")
      close()
      _ = try handle()
    }

    private mutating func openAnother() throws {
      guard handles.count < 4 else { return try closeOne() }
      journal.append("open another")
      handles.append(try fs.open("fsx", O_CREAT | O_RDWR))
    }

    private mutating func closeOne() throws {
      journal.append("close one")
      let index = Int.random(in: 0..<handles.count, using: &generator)
      try fs.close(handles.remove(at: index))
    }

    private mutating func append() throws {
      guard model.count < largest else { return }
      let bytes = pattern(number(20_000), seed: generator.next())
      journal.append("append \(bytes.count)")
      let handle = try fs.open("fsx", O_CREAT | O_WRONLY | O_APPEND)
      try fs.write(handle, bytes)
      try fs.close(handle)
      put(bytes, at: model.count)
    }

    private mutating func rewrite() throws {
      let bytes = pattern(number(200_000), seed: generator.next())
      journal.append("rewrite with \(bytes.count)")
      try fs.make("fsx", bytes)
      model = bytes
    }

    private mutating func allocate() throws {
      let offset = number(largest)
      let length = 1 + number(20_000)
      journal.append("allocate \(length) at \(offset)")
      try fs.fallocate(try handle(), 0, Int64(offset), Int64(length))
      if model.count < offset + length { model += zeros(offset + length - model.count) }
    }

    private mutating func checkAll() throws {
      journal.append("compare")
      _ = try handle()
      try fs.expectContents("fsx", model)
    }

    private mutating func remount() throws {
      journal.append("remount")
      _ = try handle()
      close()
      try fs.remount()
      try fs.expectContents("fsx", model)
    }

    private mutating func mapRead() throws {
      guard !model.isEmpty else { return }
      journal.append("map and read")
      let handle = try handle()
      let mapping = try Mapping(handle, size: model.count, writable: false)
      try expect(mapping.bytes(0..<model.count), model, "mapping")
    }

    private mutating func mapWrite() throws {
      guard model.count > 1 else { return }
      let offset = number(model.count - 1)
      let count = min(1 + number(30_000), model.count - offset)
      journal.append("map and write \(count) at \(offset)")
      let bytes = pattern(count, seed: generator.next())
      let handle = try handle()
      let mapping = try Mapping(handle, size: model.count, writable: true)
      mapping.store(bytes, at: offset)
      if Bool.random(using: &generator) { try mapping.synchronize() }
      put(bytes, at: offset)
    }

    mutating func close() {
      handles = []
      fs.closeAll()
    }
  }
}
