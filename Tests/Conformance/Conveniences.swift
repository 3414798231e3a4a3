package import Glibc

extension Volume {
  /// A file with `bytes`, written and closed.
  package func make(
    _ path: Path, _ bytes: [UInt8] = [], mode: mode_t = 0o644,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    let handle = try open(path, O_CREAT | O_TRUNC | O_WRONLY, mode: mode, file, line)
    if !bytes.isEmpty { try write(handle, bytes, at: 0, file, line) }
    try close(handle, file, line)
  }

  package func make(
    _ path: Path, _ text: String, mode: mode_t = 0o644,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try make(path, Array(text.utf8), mode: mode, file, line)
  }

  /// Everything a fresh descriptor reads.
  package func contents(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [UInt8] {
    let handle = try open(path, O_RDONLY, file, line)
    let bytes = try contents(handle, file, line)
    try close(handle, file, line)
    return bytes
  }

  package func contents(
    _ handle: Handle, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [UInt8] {
    let pieceSize = 1 << 20
    var result: [UInt8] = []
    while true {
      let piece = try read(handle, pieceSize, at: Int64(result.count), file, line)
      if result.isEmpty { result = piece } else { result += piece }
      if piece.isEmpty { return result }
    }
  }

  /// The file holds `bytes`, and its size says so by path.
  package func expectContents(
    _ path: Path, _ bytes: [UInt8], _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try expect(
      Int(stat(.path(path), file, line).st_size), bytes.count, "size of \(path)", file, line)
    try expect(contents(path, file, line), bytes, "\(path)", file, line)
  }

  package func expectContents(
    _ path: Path, _ text: String, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try expectContents(path, Array(text.utf8), file, line)
  }

  /// The file holds `text`, read and measured through `handle`.
  package func expectContents(
    _ handle: Handle, _ bytes: [UInt8], _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try expect(
      Int(stat(.handle(handle), file, line).st_size), bytes.count, "size of the open file", file,
      line)
    try expect(contents(handle, file, line), bytes, "the open file", file, line)
  }

  package func expectContents(
    _ handle: Handle, _ text: String, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try expectContents(handle, Array(text.utf8), file, line)
  }

  /// All entries of an open directory from `offset` on, `pieceSize` a call.
  package func items(
    _ handle: Handle, from offset: Int64 = 0, pieceSize: Int = 100,
    _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [DirectoryItem] {
    var result: [DirectoryItem] = []
    while true {
      let piece = try readdir(
        handle, from: result.last?.nextOffset ?? offset, pieceSize, file, line)
      if piece.isEmpty { return result }
      result += piece
    }
  }

  package func items(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [DirectoryItem] {
    let handle = try open(path, O_RDONLY | O_DIRECTORY, file, line)
    let result = try items(handle, file, line)
    try close(handle, file, line)
    return result
  }

  /// The names in a directory without `.` and `..`, sorted by their bytes.
  package func names(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> [[UInt8]] {
    try items(path, file, line).map(\.name).filter { $0 != [0x2E] && $0 != [0x2E, 0x2E] }
      .sorted { $0.lexicographicallyPrecedes($1) }
  }

  /// The directory holds exactly these names.
  package func expectNames(
    _ path: Path, _ wanted: [String], _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    let got = try names(path, file, line).map { String(decoding: $0, as: UTF8.self) }
    try expect(
      got, wanted.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }, "\(path)", file, line)
  }

  /// No such name: neither by lookup nor in the listing of the check's directory.
  package func expectMissing(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws {
    try expectError(ENOENT, file: file, line: line) { try stat(.link(path), file, line) }
  }

  /// The path for system calls, as a C string's bytes. Only where the driver has a mount point.
  package func realPath(
    _ path: Path, _ file: StaticString = #filePath, _ line: UInt = #line
  ) throws -> Path {
    guard let root = driver.mountPoint else {
      throw CheckFailure("this driver has no mount point", file, line)
    }
    return root / resolved(path)
  }
}

/// `count` bytes that look random and depend on `seed` only; fewer are the beginning of more.
package func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var generator = SeededGenerator(seed: seed)
  return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    let raw = UnsafeMutableRawBufferPointer(buffer)
    var offset = 0
    while offset + 8 <= count {
      raw.storeBytes(of: generator.next(), toByteOffset: offset, as: UInt64.self)
      offset += 8
    }
    var rest = generator.next().littleEndian
    while offset < count {
      buffer[offset] = UInt8(truncatingIfNeeded: rest)
      rest >>= 8
      offset += 1
    }
    filled = count
  }
}

package func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

/// SplitMix64: the same numbers for the same seed on every machine.
package struct SeededGenerator: RandomNumberGenerator {
  private var state: UInt64

  /// Neighbouring seeds give streams that have nothing in common.
  package init(seed: UInt64) { state = Self.mix(seed &* 0xD1B5_4A32_D192_ED03) }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mix(state)
  }

  /// Source: SplitMix64 by Sebastiano Vigna, public domain.
  private static func mix(_ value: UInt64) -> UInt64 {
    var mixed = value
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}

extension timespec {
  package static func seconds(_ seconds: Int, _ nanoseconds: Int = 0) -> timespec {
    timespec(tv_sec: seconds, tv_nsec: nanoseconds)
  }

  /// utimensat(2): leave this one as it is.
  package static var omit: timespec { timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2) }
  /// utimensat(2): the current time.
  package static var now: timespec { timespec(tv_sec: 0, tv_nsec: (1 << 30) - 1) }

  /// Nanoseconds since 1970, for comparisons.
  package var total: Int64 { Int64(tv_sec) * 1_000_000_000 + Int64(tv_nsec) }
}
