import Dispatch
import Foundation
import Glibc
import Synchronization
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

/// Blobs and their chunk index, with somebody at the disk who changes both.
///
/// One after the other: what is kept in memory is bounded for all together.
@Suite(.serialized) struct BlobTests {
  static let sizes = [
    0, 1, 15, 16, 17, 65_519, 65_520, 65_521, 65_535, 65_536, 131_056, 262_128, 262_144, 262_160,
    5_000_000,
  ]

  /// A level-2 index: more leaves than three times the tags that it may hold.
  static let bigSize = 40 << 20

  private static func plaintext(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
    var state = seed &* 0xD1B5_4A32_D192_ED03 | 1
    var bytes: [UInt8] = []
    bytes.reserveCapacity(count + 8)
    while bytes.count < count {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      withUnsafeBytes(of: state) { bytes.append(contentsOf: $0) }
    }
    return Array(bytes[..<count])
  }

  private func store(_ bytes: [UInt8], as name: String, in vault: Vault) throws -> StoredName {
    let name = FileName(name)
    let stored = try vault.root.storedName(name, kind: .blob)
    let writer = try BlobWriter(in: vault.root, keys: vault.keys)
    for start in stride(from: 0, to: bytes.count, by: 100_001) {
      try bytes[start..<min(start + 100_001, bytes.count)].withUnsafeBytes {
        try writer.append($0)
      }
    }
    let replacing = try vault.root.find(name) != nil
    try AtomicReplace.publish(
      try writer.finish(),
      as: [AtomicReplace.Target(directory: vault.root, stored: stored, name: name)],
      replacing: replacing)
    return stored
  }

  private func open(_ stored: StoredName, _ vault: Vault) throws -> Blob {
    try Blob(
      descriptor: try Syscalls.open(
        stored.entry, in: vault.root.fd.rawValue, flags: O_RDONLY),
      keys: vault.keys, isWritable: true)
  }

  private func read(_ blob: Blob, _ count: Int, at offset: Int64 = 0) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: count)
    let got = try bytes.withUnsafeMutableBytes { try blob.read(into: $0, at: offset) }
    return Array(bytes[..<got])
  }

  private func isRefused(_ body: () throws -> Void) -> Bool {
    do {
      try body()
      return false
    } catch StorageError.blob(.notAuthenticated), StorageError.blob(.wrongSize) {
      return true
    } catch StorageError.system(.inputOutput) {
      return true
    } catch {
      Issue.record("\(error)")
      return false
    }
  }

  private func change(_ path: String, at offset: Int) throws {
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.seek(toOffset: UInt64(offset))
    let byte = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: [byte ^ 1])
    try file.close()
  }

  private func index(_ path: String) -> [UInt8]? {
    guard let file = try? Syscalls.open(FileName(path), flags: O_RDONLY) else { return nil }
    return try? Syscalls.extendedAttribute(file.rawValue, ChunkIndex.attribute)
  }

  private func setIndex(_ path: String, _ bytes: [UInt8]) throws {
    let file = try Syscalls.open(FileName(path), flags: O_RDONLY)
    try Syscalls.setExtendedAttribute(file.rawValue, ChunkIndex.attribute, bytes)
  }

  /// Changes what a disk holds of the tags of a blob's leaves; nil takes it away.
  private func setLeafTags(_ path: String, _ change: ([UInt8]) -> [UInt8]?) throws {
    let file = try Syscalls.open(FileName(path), flags: O_RDONLY)
    for name in try Syscalls.extendedAttributeNames(file.rawValue)
    where name.hasPrefix(StoredLeafTags.prefix) {
      let value = try Syscalls.extendedAttribute(file.rawValue, name)
      if let value = change(value) {
        try Syscalls.setExtendedAttribute(file.rawValue, name, value)
      } else {
        try Syscalls.removeExtendedAttribute(file.rawValue, name)
      }
    }
  }

  @Test(arguments: sizes) func aBlobIsARNCryptorMessageOfExactlyTheseBytes(size: Int) throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(size)
      let stored = try store(bytes, as: "photo", in: vault)
      let message = try #require(place.contents(stored.entry.text))
      #expect(message.count == 66 + 16 * (size / 16 + 1))
      // The other way of reading, which is held against vectors of Python and openssl.
      let keys = vault.keys.messageKeys
      #expect(
        try SecuredData.decrypt(message, keys: { _ throws(SecuredDataError) in keys }) == bytes)
      let blob = try open(stored, vault)
      #expect(try blob.plaintextSize() == size)
      #expect(try read(blob, size + 100) == bytes)
      #expect(try read(blob, 100, at: Int64(size)) == [])
      for offset in [1, 15, 16, 4095, 65_535, 131_070] where offset < size {
        #expect(
          try read(blob, 70_001, at: Int64(offset)) == Array(bytes[offset...].prefix(70_001)))
      }
      #expect((index(place.path + "/" + stored.entry.text) != nil) == (size >= 65_536))
    }
  }

  @Test func everyAlteredByteOfASmallBlobIsRefused() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let stored = try store(Self.plaintext(100), as: "photo", in: vault)
      let path = place.path + "/" + stored.entry.text
      for offset in 0..<(66 + 112) {
        try change(path, at: offset)
        let refused = errorOf { _ = try read(open(stored, vault), 100) } != nil
        #expect(refused, "byte \(offset)")
        try change(path, at: offset)
      }
      #expect(try read(open(stored, vault), 100) == Self.plaintext(100))
    }
  }

  private func errorOf(_ body: () throws -> Void) -> (any Error)? {
    do { try body() } catch { return error }
    return nil
  }

  @Test(arguments: [300_000, bigSize]) func alteredLeavesAreRefusedOthersAreNot(size: Int) throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(size)
      let stored = try store(bytes, as: "film", in: vault)
      let path = place.path + "/" + stored.entry.text
      let blob = try open(stored, vault)
      #expect(try read(blob, 1000) == Array(bytes[..<1000]))
      // After it was verified and opened: what counts are the bytes that are decrypted. Here a chunk
      // that nobody looked into; what is in memory may be read on, as it was verified.
      let place = size < 1 << 20 ? 200_000 : 400_000
      try change(path, at: 34 + place)
      #expect(isRefused { _ = try read(blob, 1000, at: Int64(place)) })
      #expect(try read(blob, 1000) == Array(bytes[..<1000]))
      #expect(try read(blob, 500, at: Int64(size - 500)) == Array(bytes[(size - 500)...]))
      // Opened anew, the index still knows.
      #expect(isRefused { _ = try read(open(stored, vault), 1000, at: Int64(place)) })
      // And without an index the whole blob is refused.
      try setIndex(path, [])
      #expect(isRefused { _ = try read(open(stored, vault), 1000) })
    }
  }

  @Test func aBigBlobReadsAtRandomPlaces() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(Self.bigSize)
      let stored = try store(bytes, as: "film", in: vault)
      let found = try #require(index(place.path + "/" + stored.entry.text))
      #expect(found.count < 3072 && found[1] == 2)
      let blob = try open(stored, vault)
      for offset in stride(from: 7, to: Self.bigSize, by: 3_333_333) {
        #expect(
          try read(blob, 200_000, at: Int64(offset)) == Array(bytes[offset...].prefix(200_000)))
      }
    }
  }

  /// Chunks of 256 KiB: what is read in order comes from memory once it was verified.
  @Test func aChunkThatIsKeptIsWhatWasVerified() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(Self.bigSize)
      let stored = try store(bytes, as: "film", in: vault)
      let path = place.path + "/" + stored.entry.text
      try setLeafTags(path) { _ in nil }
      let blob = try open(stored, vault)
      #expect(try read(blob, 4096) == Array(bytes[..<4096]))
      try change(path, at: 34 + 100_000)
      // From memory, at any offset and length, and over its end into the next chunk.
      for (offset, count) in [(99_000, 5000), (99_984, 32), (7, 1), (15, 17), (262_000, 300_000)] {
        #expect(
          try read(blob, count, at: Int64(offset)) == Array(bytes[offset..<(offset + count)]))
      }
      // Two chunks later it is gone from memory, and the disk's bytes are refused.
      for offset in [600_000, 900_000] {
        #expect(try read(blob, 100, at: Int64(offset)) == Array(bytes[offset...].prefix(100)))
      }
      #expect(isRefused { _ = try read(blob, 5000, at: 99_000) })
      #expect(try read(blob, 5000, at: 132_000) == Array(bytes[132_000..<137_000]))
    }
  }

  /// tmpfs holds them, as xfs and btrfs do.
  private static let roomyDisk = "/dev/shm"

  @Test func aDiskThatHoldsTheTagsOfAllLeavesSparesReading() throws {
    try TestVault.with(.plain, at: Self.roomyDisk) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(Self.bigSize)
      let stored = try store(bytes, as: "film", in: vault)
      let path = place.path + "/" + stored.entry.text
      func readCount(_ offset: Int) throws -> Int {
        let blob = try open(stored, vault)
        let calls = Mutex(0)
        SyscallFaults.arm { call in
          if call == .read { calls.withLock { $0 += 1 } }
          return nil
        }
        defer { SyscallFaults.disarm() }
        #expect(
          try read(blob, 100, at: Int64(offset)) == Array(bytes[offset..<(offset + 100)]))
        return calls.withLock { $0 }
      }
      let offsets = [0, 262_144, 20_000_000, Self.bigSize - 100]
      for offset in offsets { #expect(try readCount(offset) == 1) }
      var count = 0
      try setLeafTags(path) { value in
        count += value.count
        return value
      }
      #expect(count == 16 * (Self.bigSize / 65_536 + 1))
      // A whole chunk of four leaves, then the leaf; the first chunk is kept in memory.
      try setLeafTags(path) { _ in nil }
      for offset in offsets.dropLast() {
        #expect(try readCount(offset) == (offset == 0 ? 4 : 5))
      }
    }
  }

  @Test func leafTagsOnTheDiskAreNotTrusted() throws {
    try TestVault.with(.plain, at: Self.roomyDisk) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(Self.bigSize)
      let stored = try store(bytes, as: "film", in: vault)
      let path = place.path + "/" + stored.entry.text
      let other = try store(Self.plaintext(Self.bigSize, seed: 2), as: "other", in: vault)
      var others: [[UInt8]] = []
      try setLeafTags(place.path + "/" + other.entry.text) { value in
        others.append(value)
        return value
      }
      let wrong: [([UInt8]) -> [UInt8]?] = [
        { value in value.map { $0 ^ 1 } }, { Array($0.dropLast()) }, { Array($0.dropFirst()) },
        { _ in [] }, { _ in [1] }, { $0 + [0] }, { Array($0.reversed()) },
        { value in others.first { $0.count == value.count } },
      ]
      for change in wrong {
        var good: [[UInt8]] = []
        try setLeafTags(path) { value in
          good.append(value)
          return change(value)
        }
        let blob = try open(stored, vault)
        for offset in stride(from: 5, to: Self.bigSize, by: 7_000_001) {
          #expect(
            try read(blob, 100_000, at: Int64(offset))
              == Array(bytes[offset...].prefix(100_000)))
        }
        good.reverse()
        try setLeafTags(path) { _ in good.popLast() }
      }
      // Right tags don't make altered bytes right.
      try self.change(path, at: 34 + 20_000_000)
      let blob = try open(stored, vault)
      #expect(isRefused { _ = try read(blob, 100, at: 20_000_000) })
      #expect(try read(blob, 100) == Array(bytes[..<100]))
    }
  }

  @Test func manyReadersOfABigBlobGetTheSame() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let bytes = Self.plaintext(Self.bigSize)
      let blob = try open(try store(bytes, as: "film", in: vault), vault)
      let failures = Atomic<Int>(0)
      DispatchQueue.concurrentPerform(iterations: 8) { reader in
        for offset in stride(from: reader * 40_000, to: Self.bigSize, by: 131_072 * 3) {
          let found = try? read(blob, 131_072, at: Int64(offset))
          if found != Array(bytes[offset...].prefix(131_072)) {
            failures.add(1, ordering: .relaxed)
          }
        }
      }
      #expect(failures.load(ordering: .relaxed) == 0)
    }
  }

  @Test func blobsThatFindNoMemoryAreVerifiedAllTheSame() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let small = Self.plaintext(20_000)
      let big = Self.plaintext(Self.bigSize)
      let photo = try store(small, as: "photo", in: vault)
      let film = try store(big, as: "film", in: vault)
      // What is there at most, held by others.
      let held = (0..<8).map { _ in VerifiedCiphertext(byteCount: 8 << 20) }
      #expect(held.contains { $0 == nil })
      let blob = try open(film, vault)
      for offset in [0, 1, 262_143, 300_000, 600_007] {
        #expect(
          try read(blob, 300_000, at: Int64(offset)) == Array(big[offset...].prefix(300_000)))
      }
      #expect(try read(open(photo, vault), 30_000) == small)
      #expect(try read(open(photo, vault), 5, at: 4097) == Array(small[4097..<4102]))
      try change(place.path + "/" + photo.entry.text, at: 34 + 10_000)
      #expect(isRefused { _ = try read(open(photo, vault), 10) })
      withExtendedLifetime(held) {}
    }
  }

  @Test func anIndexThatIsNotThisBlobsIsIgnoredAndMadeAnew() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let first = Self.plaintext(300_000, seed: 1)
      let second = Self.plaintext(300_000, seed: 2)
      let stored = try store(first, as: "a", in: vault)
      let other = try store(second, as: "b", in: vault)
      let path = place.path + "/" + stored.entry.text
      let good = try #require(index(path))
      let swapped = try #require(index(place.path + "/" + other.entry.text))
      var altered = good
      altered[70] ^= 1
      var forgedSize = good
      forgedSize[4] ^= 1
      let wrong: [[UInt8]] = [
        [], [1], Array(good[..<75]), Array(good.dropLast()), good + [0], altered, forgedSize,
        swapped, [UInt8](repeating: 0xFF, count: good.count), [2] + good.dropFirst(),
      ]
      for bytes in wrong {
        try setIndex(path, bytes)
        #expect(try read(open(stored, vault), 400_000) == first)
        #expect(index(path) == good)
      }
      // From the version before.
      _ = try store(second, as: "a", in: vault)
      try setIndex(path, good)
      #expect(try read(open(stored, vault), 400_000) == second)
    }
  }

  @Test func truncatedAndLengthenedBlobsAreRefused() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let stored = try store(Self.plaintext(300_000), as: "photo", in: vault)
      let path = place.path + "/" + stored.entry.text
      let message = try #require(place.contents(stored.entry.text))
      let good = try #require(index(path))
      for count in [0, 1, 33, 34, 81, 82, 100, 65_570, message.count - 16, message.count - 1] {
        try place.write(stored.entry.text, Array(message[..<count]))
        try setIndex(path, good)
        #expect(errorOf { _ = try read(open(stored, vault), 10) } != nil, "\(count) bytes")
      }
      for extra in [1, 16, 32] {
        try place.write(stored.entry.text, message + [UInt8](repeating: 0, count: extra))
        try setIndex(path, good)
        #expect(errorOf { _ = try read(open(stored, vault), 10) } != nil)
      }
    }
  }

  @Test func aHeaderWithOtherSaltsIsNotReadThroughTheOldIndex() throws {
    try TestVault.with(.plain) { place in
      let vault = try place.open()
      let stored = try store(Self.plaintext(300_000), as: "photo", in: vault)
      let path = place.path + "/" + stored.entry.text
      for offset in [2, 9, 10, 17, 18, 33] {
        try change(path, at: offset)
        #expect(isRefused { _ = try read(open(stored, vault), 10, at: 100_000) })
        try change(path, at: offset)
      }
    }
  }
}
