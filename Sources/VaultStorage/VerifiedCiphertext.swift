import Platform
import Synchronization

/// Memory for ciphertext that stays after it was verified, so that what is read next is neither
/// read from the disk nor verified again. It never holds plaintext.
///
/// What all blobs keep together is bounded: a blob that gets nothing verifies each leaf when it
/// is read.
final class VerifiedCiphertext: @unchecked Sendable {
  /// A chunk of a film of 1.5 GB; the chunks of greater ones are not kept.
  static let greatestByteCount = 8 << 20
  private static let totalByteCount = 32 << 20
  private static let keptByteCount = Atomic<Int>(0)

  /// The last chunk's memory, used again: the kernel would have to clear new memory.
  private struct Spare: @unchecked Sendable {
    var memory: UnsafeMutableRawBufferPointer?
  }
  private static let spare = Mutex(Spare())
  private static let greatestSpareByteCount = 2 << 20
  private static let leastSpareByteCount = 2 * ChunkLayout.leafByteCount

  /// The block before the ciphertext, then the ciphertext, behind what else `memory` holds.
  /// Changed by who makes it, until it is verified.
  let memory: UnsafeMutableRawBufferPointer

  /// nil where too much is kept already.
  init?(byteCount: Int) {
    guard byteCount <= Self.greatestByteCount + 16 else { return nil }
    let total = Self.keptByteCount.add(byteCount, ordering: .relaxed).newValue
    if total > Self.totalByteCount {
      Self.keptByteCount.subtract(byteCount, ordering: .relaxed)
      return nil
    }
    let spare = Self.spare.withLock { spare -> UnsafeMutableRawBufferPointer? in
      guard spare.memory?.count == byteCount else { return nil }
      return spare.memory.take()
    }
    memory = spare ?? .allocate(byteCount: byteCount, alignment: 16)
  }

  deinit {
    Self.keptByteCount.subtract(memory.count, ordering: .relaxed)
    guard (Self.leastSpareByteCount...Self.greatestSpareByteCount + 16).contains(memory.count)
    else { return memory.deallocate() }
    let freed = Self.spare.withLock { spare -> UnsafeMutableRawBufferPointer? in
      defer { spare.memory = memory }
      return spare.memory
    }
    freed?.deallocate()
  }
}

/// Verified ciphertext and its place in the blob's.
struct KeptCiphertext: Sendable {
  private let ciphertext: VerifiedCiphertext
  /// Of the block before the ciphertext.
  private let offset: Int
  /// Positions in the blob's ciphertext.
  let range: Range<Int64>

  init(_ ciphertext: VerifiedCiphertext, offset: Int, range: Range<Int64>) {
    precondition(offset + 16 + range.count <= ciphertext.memory.count)
    self.ciphertext = ciphertext
    self.offset = offset
    self.range = range
  }

  /// Fills `target` with plaintext from `position` on, both inside of what is kept.
  func read(
    at position: Int64, into target: UnsafeMutableRawBufferPointer, _ reader: LeafReader
  ) throws(StorageError) {
    try reader.decrypt(
      UnsafeRawBufferPointer(
        rebasing: ciphertext.memory[offset..<(offset + 16 + range.count)]),
      skipping: Int(position - range.lowerBound), into: target)
  }
}
