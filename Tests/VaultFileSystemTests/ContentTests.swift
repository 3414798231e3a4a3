import Foundation
import Glibc
import Platform
import Synchronization
import Testing
import VaultFileSystem
import VaultStorage

@Suite struct ContentTests {
  static let sizes = [
    0, 1, 15, 16, 17, 4095, 4096, 4097, 65_535, 65_536, 65_537, 262_143, 262_144, 262_145,
    1_048_575, 1_048_576, 1_048_577, 3_000_000,
  ]

  @Test(arguments: sizes) func whatWasWrittenIsReadAfterARemount(size: Int) throws {
    let folder = try Folder()
    let bytes = pattern(size)
    try folder.store(bytes, as: "photo.jpg")
    #expect(try folder.contents("photo.jpg") == bytes)
    try folder.remount()
    #expect(try folder.fileSystem.attributes(folder.node("photo.jpg")).st_size == size)
    #expect(try folder.contents("photo.jpg") == bytes)
  }

  @Test func aFileIsReadableWhileItIsStreamed() throws {
    let folder = try Folder()
    let bytes = pattern(700_003)
    let handle = try folder.create("film.mp4")
    var position = 0
    for size in [1, 15, 70_000, 262_144, 5, 300_000, 67_838] {
      try folder.write(handle, Array(bytes[position..<(position + size)]), at: Int64(position))
      position += size
      let start = max(0, position - 100_000)
      #expect(
        try folder.read(handle, 200_000, at: Int64(start)) == Array(bytes[start..<position]))
    }
    try folder.close(handle)
    try folder.remount()
    #expect(try folder.contents("film.mp4") == bytes)
  }

  @Test(arguments: [1, 2, 3, 4, 5, 6]) func randomChangesGiveWhatMemoryGives(seed: Int) throws {
    let folder = try Folder(names: seed % 2 == 0 ? .plain : .encrypted)
    var random = SeededGenerator(seed: UInt64(seed))
    var model: [UInt8] = []
    var handle = try folder.create("file")
    for step in 0..<300 {
      switch Int.random(in: 0..<20, using: &random) {
      case 0..<10:
        let offset = Int.random(in: 0...(model.count + 40_000), using: &random)
        let bytes = pattern(Int.random(in: 1...60_000, using: &random), seed: UInt64(step))
        try folder.write(handle, bytes, at: Int64(offset))
        if model.count < offset + bytes.count {
          model += [UInt8](repeating: 0, count: offset + bytes.count - model.count)
        }
        model.replaceSubrange(offset..<(offset + bytes.count), with: bytes)
      case 10..<13:
        try folder.write(handle, pattern(5000, seed: UInt64(step)), at: Int64(model.count))
        model += pattern(5000, seed: UInt64(step))
      case 13..<15:
        let size = Int.random(in: 0...400_000, using: &random)
        var changes = AttributeChanges()
        changes.size = Int64(size)
        _ = try folder.fileSystem.setAttributes(folder.node("file"), changes)
        if size < model.count {
          model.removeLast(model.count - size)
        } else {
          model += [UInt8](repeating: 0, count: size - model.count)
        }
      case 15: try folder.fileSystem.flush(handle)
      case 16: try folder.fileSystem.synchronize(handle, dataOnly: false)
      case 17:
        try folder.close(handle)
        if step % 3 == 0 { try folder.remount() }
        handle = try folder.open("file", flags: O_RDWR)
      default:
        let offset = Int.random(in: 0...model.count, using: &random)
        let count = Int.random(in: 1...100_000, using: &random)
        let expected = Array(model[offset..<min(model.count, offset + count)])
        #expect(try folder.read(handle, count, at: Int64(offset)) == expected)
      }
      #expect(try folder.fileSystem.attributes(folder.node("file")).st_size == model.count)
    }
    try folder.close(handle)
    try folder.remount()
    #expect(try folder.contents("file") == model)
    #expect(try folder.stored().count == 1)
  }

  @Test func editsBeyondMemoryGoThroughAnEncryptedFile() throws {
    let folder = try Folder()
    let marker = Array("PLAINTEXT-MARKER-OF-THE-TEST-".utf8)
    var model = [UInt8](repeating: 0, count: 12 << 20)
    let handle = try folder.create("big")
    // From the end to the start, so that nothing is streamed and memory is not enough.
    for start in stride(from: model.count - 32_768, through: 0, by: -32_768) {
      let part = (0..<32_768).map { marker[($0 + start) % marker.count] }
      try folder.write(handle, part, at: Int64(start))
      model.replaceSubrange(start..<(start + 32_768), with: part)
    }
    for link in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
      let path = "/proc/self/fd/\(link)"
      guard
        let target = try? FileManager.default.destinationOfSymbolicLink(atPath: path),
        target.hasPrefix(folder.directory), target.hasSuffix("(deleted)"),
        let data = FileManager.default.contents(atPath: path)
      else { continue }
      #expect(data.range(of: Data(marker)) == nil)
    }
    #expect(try folder.read(handle, model.count) == model)
    try folder.close(handle)
    try folder.remount()
    #expect(try folder.contents("big") == model)
  }

  @Test func anEmptiedFileKeepsItsOldVersionUntilTheWriterHasFinished() throws {
    let folder = try Folder()
    let old = pattern(100_000, seed: 1)
    try folder.store(old, as: "photo.jpg")
    let stored = try folder.stored()
    let before = try Data(contentsOf: URL(filePath: "\(folder.directory)/\(stored[0])"))
    // As a shell does it: opened, duplicated, the first one closed, then written.
    let handle = try folder.open("photo.jpg", flags: O_WRONLY | O_TRUNC)
    try folder.fileSystem.flush(handle)
    #expect(try folder.fileSystem.attributes(folder.node("photo.jpg")).st_size == 0)
    let during = try Data(contentsOf: URL(filePath: "\(folder.directory)/\(stored[0])"))
    #expect(before == during)
    try folder.write(handle, pattern(5, seed: 2))
    try folder.close(handle)
    try folder.remount()
    #expect(try folder.contents("photo.jpg") == pattern(5, seed: 2))
  }

  @Test func whatIsInterruptedNeverTakesTheOldPhotosPlace() throws {
    let folder = try Folder()
    let old = pattern(100_000, seed: 1)
    try folder.store(old, as: "photo.jpg")
    let rewritten = try folder.open("photo.jpg", flags: O_WRONLY | O_TRUNC)
    try folder.write(rewritten, pattern(40_000, seed: 2))
    let fresh = try folder.create("fresh.jpg")
    try folder.write(fresh, pattern(700_000, seed: 3))
    let emptied = try folder.create("not begun.jpg")
    try folder.store(old, as: "edited")
    let edited = try folder.open("edited", flags: O_RDWR)
    try folder.write(edited, [9, 9, 9], at: 50)
    #expect(folder.fileSystem.commitAll(areAllClosed: false) == [])
    #expect(errno { try folder.write(rewritten, [1], at: 40_000) } == .inputOutput)
    for handle in [rewritten, fresh, emptied, edited] { folder.fileSystem.release(handle) }
    try folder.remount()
    #expect(try folder.contents("photo.jpg") == old)
    let names = try folder.names()
    let kept = try #require(names.first { $0.hasPrefix("photo (interrupted ") })
    #expect(
      kept.wholeMatch(of: /photo \(interrupted \d{4}-\d\d-\d\d \d\d\.\d\d\.\d\d\)\.jpg/) != nil)
    #expect(try folder.contents(kept) == pattern(40_000, seed: 2))
    let keptFresh = try #require(names.first { $0.hasPrefix("fresh (interrupted ") })
    #expect(try folder.contents(keptFresh) == pattern(700_000, seed: 3))
    #expect(names.count == 4)
    var expected = old
    expected.replaceSubrange(50..<53, with: [9, 9, 9])
    #expect(try folder.contents("edited") == expected)
  }

  @Test func everyCommitHasAFreshIV() throws {
    let folder = try Folder(names: .plain)
    var seen: Set<Data> = []
    for round in 0..<5 {
      try folder.store([1, 2, 3], as: "photo")
      let blob = try Data(contentsOf: URL(filePath: "\(folder.directory)/photo.securedData"))
      #expect(blob[0] == 3 && blob[1] == 1)
      seen.insert(blob[18..<34])
      #expect(seen.count == round + 1)
    }
  }

  @Test func writingOnAfterAFlushUsesAnotherIV() throws {
    let folder = try Folder(names: .plain)
    let handle = try folder.create("photo")
    try folder.write(handle, pattern(100_000))
    try folder.fileSystem.flush(handle)
    let path = "\(folder.directory)/photo.securedData"
    let first = try Data(contentsOf: URL(filePath: path))
    try folder.write(handle, pattern(1000, seed: 2), at: 100_000)
    try folder.close(handle)
    let second = try Data(contentsOf: URL(filePath: path))
    #expect(first[18..<34] != second[18..<34])
    try folder.remount()
    #expect(try folder.contents("photo") == pattern(100_000) + pattern(1000, seed: 2))
  }

  private final class Turn: Sendable {
    let number = Atomic<Int>(0)
  }

  /// The kernel tells of a last close later; a program may have opened the file again by then.
  @Test func aFileOpenedAgainWhileItIsClosedKeepsWhatIsWritten() throws {
    let folder = try Folder()
    let bytes = pattern(20_000)
    for _ in 0..<400 {
      let first = try folder.create("photo", flags: O_RDWR | O_TRUNC)
      try folder.fileSystem.flush(first)
      let turn = Turn()
      let fileSystem = folder.fileSystem
      let closing = Thread {
        turn.number.store(1, ordering: .releasing)
        fileSystem.release(first)
        turn.number.store(2, ordering: .releasing)
      }
      closing.start()
      while turn.number.load(ordering: .acquiring) == 0 { sched_yield() }
      let second = try folder.open("photo", flags: O_WRONLY | O_TRUNC)
      try folder.write(second, bytes)
      try folder.close(second)
      while turn.number.load(ordering: .acquiring) != 2 { sched_yield() }
      #expect(try folder.contents("photo") == bytes)
      try folder.unlink("photo")
    }
  }

  /// The kernel drops the releases that it has not told of yet when a mount goes. Who emptied a file
  /// and closed it before an orderly unmount finds it empty, whoever was cut off finds the old one.
  @Test(.timeLimit(.minutes(1)), arguments: [true, false])
  func anEmptiedFileWhoseReleaseIsLost(wereAllClosed: Bool) throws {
    let folder = try Folder()
    try folder.store(pattern(50_000), as: "photo.jpg")
    let handle = try folder.open("photo.jpg", flags: O_WRONLY | O_TRUNC)
    try folder.fileSystem.flush(handle)
    #expect(folder.fileSystem.commitAll(areAllClosed: wereAllClosed) == [])
    folder.fileSystem.release(handle)
    try folder.remount()
    let expected = wereAllClosed ? [] : pattern(50_000)
    #expect(try folder.contents("photo.jpg") == expected)
  }
}

/// A generator that gives the same for the same seed.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64
  init(seed: UInt64) { state = seed &* 0xD1B5_4A32_D192_ED03 | 1 }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }
}
