import Synchronization

/// Buffers of the read and write paths, used again rather than freed: a photo of 5 MB needs twenty.
/// They hold ciphertext only.
enum BlobBuffer {
  /// Ciphertext that one buffer takes: four leaves.
  static let ciphertextByteCount = 4 * ChunkLayout.leafByteCount
  /// Room before the ciphertext: the header of a message, of which the last 16 bytes are the block
  /// before the ciphertext.
  static let frontByteCount = 34
  /// Room behind it: the HMAC.
  static let backByteCount = 32

  private static let keptCount = 24

  private struct Free: @unchecked Sendable {
    var pointers: [UnsafeMutableRawPointer] = []
  }
  private static let free = Mutex(Free())

  static func take() -> UnsafeMutableRawBufferPointer {
    let count = frontByteCount + ciphertextByteCount + backByteCount
    let pointer =
      free.withLock { $0.pointers.popLast() }
      ?? UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 64)
    return UnsafeMutableRawBufferPointer(start: pointer, count: count)
  }

  static func giveBack(_ buffer: UnsafeMutableRawBufferPointer) {
    guard let pointer = buffer.baseAddress else { return }
    let isKept = free.withLock { free in
      guard free.pointers.count < keptCount else { return false }
      free.pointers.append(pointer)
      return true
    }
    if !isKept { pointer.deallocate() }
  }
}
