import Platform
import SecuredData
import Testing

/// A message in memory that can change while it is read.
private final class Source {
  var bytes: [UInt8]
  /// Called before each read with its number.
  var beforeRead: (Int) -> Void = { _ in }
  /// Most bytes a read gives.
  var limit = Int.max
  private(set) var reads = 0
  private(set) var largestRead = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) -> Int {
    beforeRead(reads)
    reads += 1
    largestRead = max(largestRead, buffer.count)
    let rest = bytes[min(Int(offset), bytes.count)...].prefix(min(limit, buffer.count))
    buffer.copyBytes(from: rest)
    return rest.count
  }
}

@Suite struct DecryptorTests {
  private static let keys = try? makeKeys(patterned(32), Array(patterned(64).suffix(32)))
  private let header = Header(mode: .keys, iv: patterned(16))

  private func message(_ count: Int, version: UInt8 = 3) throws -> [UInt8] {
    try seal(
      pad(patterned(count)), header: Header(version: version, mode: .keys, iv: header.iv),
      keys: try #require(Self.keys))
  }

  /// What reached the sink, and how it ended.
  private func run(_ source: Source) throws -> (released: [UInt8], failure: SecuredDataError?) {
    let keys = try #require(Self.keys)
    let size = Int64(source.bytes.count)
    var released: [UInt8] = []
    do throws(SecuredDataError) {
      try Decryptor.decrypt(messageSize: size) { _ in
        keys
      } read: { offset, buffer in
        source.read(offset, buffer)
      } sink: {
        released += $0
      }
    } catch { return (released, error) }
    return (released, nil)
  }

  @Test(arguments: [0, 1, 16, 65_519, 65_520, 65_535, 65_536, 131_071, 131_072, 300_001])
  func everySizeAroundAPieceComesBack(_ count: Int) throws {
    for version: UInt8 in 1...3 {
      let result = try run(Source(try message(count, version: version)))
      #expect(result.failure == nil)
      #expect(result.released == patterned(count))
    }
  }

  @Test func shortReadsAreGoneOnWith() throws {
    let source = Source(try message(200_000))
    source.limit = 1001
    let result = try run(source)
    #expect(result.failure == nil)
    #expect(result.released == patterned(200_000))
  }

  @Test func memoryStaysSmallForALargeMessage() throws {
    let source = Source(try message(8 << 20))
    #expect(try run(source).failure == nil)
    #expect(source.largestRead == 64 << 10)
  }

  @Test func aMessageOfOnePieceIsReadOnce() throws {
    let source = Source(try message(60_000))
    #expect(try run(source).failure == nil)
    #expect(source.reads == 3)  // header, ciphertext, HMAC
  }

  /// The first pass reads the header, 5 pieces and the HMAC; the second 5 pieces.
  @Test(arguments: 0..<12, [34, 70_000, 140_000, 300_000])
  func aSourceThatChangesReleasesOnlyVerifiedBytes(_ read: Int, _ position: Int) throws {
    let plaintext = patterned(300_001)
    let source = Source(try message(plaintext.count))
    source.beforeRead = { if $0 == read { source.bytes[position] ^= 1 } }
    let result = try run(source)
    if let failure = result.failure {
      #expect(failure == .notAuthenticated)
      #expect(result.released.count < plaintext.count)
      #expect(result.released.count % (64 << 10) == 0)
      #expect(plaintext.starts(with: result.released))
      if read < 2 { #expect(result.released.isEmpty) }
    } else {
      #expect(result.released == plaintext)
    }
  }

  @Test func piecesThatChangePlacesBetweenThePassesAreRefused() throws {
    let source = Source(try message(300_001))
    let piece = 64 << 10
    source.beforeRead = { read in
      guard read == 7 else { return }
      let first = Array(source.bytes[18..<(18 + piece)])
      let second = Array(source.bytes[(18 + piece)..<(18 + 2 * piece)])
      source.bytes.replaceSubrange(18..<(18 + 2 * piece), with: second + first)
    }
    let result = try run(source)
    #expect(result.failure == .notAuthenticated)
    #expect(result.released.isEmpty)
  }

  @Test(arguments: 0..<12)
  func aSourceThatShrinksReleasesOnlyVerifiedBytes(_ read: Int) throws {
    let plaintext = patterned(300_001)
    let source = Source(try message(plaintext.count))
    source.beforeRead = { if $0 == read { source.bytes.removeLast(290_000) } }
    let result = try run(source)
    #expect(result.failure == .notAuthenticated)
    #expect(plaintext.starts(with: result.released))
  }

  @Test(arguments: 1...3 as ClosedRange<UInt8>, [0, 17, 255])
  func badPaddingReleasesNothingHoweverLargeTheMessage(_ version: UInt8, _ last: UInt8) throws {
    let header = Header(version: version, mode: .keys, iv: header.iv)
    let padded = patterned(300_015) + [last]
    let message = try seal(padded, header: header, keys: try #require(Self.keys))
    let result = try run(Source(message))
    #expect(result.failure == .notAuthenticated)
    #expect(result.released.isEmpty)
  }

  @Test func failuresOfTheCallersPassThrough() throws {
    enum Failure: Error, Equatable {
      case message(SecuredDataError)
      case keys, read, sink
    }
    let keys = try #require(Self.keys)
    let source = Source(try message(1000))
    func run(keys fails: Bool, read: Bool, sink: Bool) throws(Failure) {
      try Decryptor.decrypt(
        messageSize: Int64(source.bytes.count), failure: Failure.message,
        keys: { _ throws(Failure) in
          if fails { throw .keys }
          return keys
        },
        read: { offset, buffer throws(Failure) in
          if read { throw .read }
          return source.read(offset, buffer)
        },
        sink: { _ throws(Failure) in if sink { throw .sink } })
    }
    try run(keys: false, read: false, sink: false)
    #expect(throws: Failure.keys) { try run(keys: true, read: false, sink: false) }
    #expect(throws: Failure.read) { try run(keys: false, read: true, sink: false) }
    #expect(throws: Failure.sink) { try run(keys: false, read: false, sink: true) }
    source.bytes[20] ^= 1
    #expect(throws: Failure.message(.notAuthenticated)) {
      try run(keys: false, read: false, sink: false)
    }
  }

  @Test(arguments: [Int64.min, -1, 0, 1, 65, 67])
  func sizesThatNoMessageHasAreRefusedBeforeKeysAreAsked(_ size: Int64) throws {
    let bytes = header.bytes + [UInt8](repeating: 0, count: 100)
    #expect(throws: SecuredDataError.wrongSize(size)) {
      try Decryptor.decrypt(messageSize: size) { _ throws(SecuredDataError) in
        throw .notAuthenticated
      } read: { offset, buffer in
        buffer.copyBytes(from: bytes[Int(offset)...].prefix(buffer.count))
        return buffer.count
      } sink: { _ in
      }
    }
  }
}

@Suite struct SecuredDataErrorTests {
  @Test func everyFailureSaysSomethingElse() {
    let failures: [SecuredDataError] = [
      .wrongSize(7), .version4Draft, .base64Text, .plainPicture("JPEG"), .unknownVersion(9),
      .unknownOptions(8), .wrongMode, .notAuthenticated, .outOfMemory,
    ]
    #expect(Set(failures.map(\.description)).count == failures.count)
    #expect("\(SecuredDataError.plainPicture("JPEG"))".contains("JPEG"))
  }
}
