import Platform
import SecuredData
import Synchronization

/// What happens to a blob's pieces after they were encrypted, in their order: HMAC, leaf tags,
/// write. One piece at a time is in work, on whatever thread of the pool is free.
final class Pipeline: @unchecked Sendable {
  let file: TemporaryFile

  private let header: Header
  private let hmac: HMACSHA256
  private let keys: VaultKeys
  private var authenticator: ChunkAuthenticator?
  /// Touched by the one job that runs, or by the writer while none does.
  private var position: Int64 = 0
  private(set) var leafTags: [GMAC.Tag] = []
  private let queue = ConditionLock(Queue())

  /// Pieces of one file on their way: 1 MiB.
  private static let pieceLimit = 4
  /// Pieces of all files on their way: 8 MiB.
  private static let totalPieceLimit = 32
  private static let total = ConditionLock(0)

  private struct Queue {
    var pieces: [Piece] = []
    var isRunning = false
    var failure: StorageError?
  }

  private struct Piece: @unchecked Sendable {
    let buffer: UnsafeMutableRawBufferPointer
    let count: Int
  }

  /// `hmac` has seen nothing yet.
  init(
    file: TemporaryFile, keys: VaultKeys, header: Header, hmac: HMACSHA256
  ) throws(StorageError) {
    self.file = file
    self.keys = keys
    self.header = header
    self.hmac = hmac
    do throws(CryptoFailure) {
      try header.bytes.withBytes { bytes throws(CryptoFailure) in try hmac.update(bytes) }
    } catch { throw .crypto(error) }
  }

  /// Takes `buffer` over, which has `count` bytes of ciphertext behind its front. Waits while too
  /// much is on its way. Throws the first failure of any piece before.
  func submit(_ buffer: UnsafeMutableRawBufferPointer, _ count: Int) throws(StorageError) {
    Self.total.withLock(when: { $0 < Self.totalPieceLimit }, { $0 += 1 })
    let piece = Piece(buffer: buffer, count: count)
    let (starts, failure): (Bool, StorageError?) = queue.withLock(
      when: { $0.pieces.count < Self.pieceLimit || $0.failure != nil },
      { queue in
        if let failure = queue.failure { return (false, failure) }
        queue.pieces.append(piece)
        if queue.isRunning { return (false, nil) }
        queue.isRunning = true
        return (true, nil)
      })
    if let failure {
      discard(piece)
      throw failure
    }
    if starts { WorkPool.shared.run { self.drain() } }
  }

  /// Waits until nothing is on its way.
  func wait() { queue.withLock(when: { !$0.isRunning }, { _ in }) }

  func throwFailure() throws(StorageError) {
    if let failure = queue.withLock({ $0.failure }) { throw failure }
  }

  /// The last piece, in the caller's thread, with the HMAC behind it, which is returned. A blob of
  /// one leaf gets no tags: it is verified whole.
  func finish(
    _ buffer: UnsafeMutableRawBufferPointer, _ count: Int
  ) throws(StorageError) -> [UInt8] {
    try throwFailure()
    try authenticate(
      buffer, count, withTags: position > 0 || count > ChunkLayout.leafByteCount)
    let result: [UInt8]
    do throws(CryptoFailure) { result = try hmac.finish() } catch { throw .crypto(error) }
    let end = BlobBuffer.frontByteCount + count
    buffer[end...].copyBytes(from: result)
    try write(buffer, count + result.count)
    return result
  }

  private func drain() {
    while true {
      let next: Piece? = queue.withLock { queue in
        guard let piece = queue.pieces.first else {
          queue.isRunning = false
          return nil
        }
        return piece
      }
      guard let next else { return }
      var failure = queue.withLock { $0.failure }
      if failure == nil {
        do throws(StorageError) {
          try authenticate(next.buffer, next.count, withTags: true)
          try write(next.buffer, next.count)
        } catch { failure = error }
      }
      discard(next)
      queue.withLock { queue in
        queue.pieces.removeFirst()
        if queue.failure == nil { queue.failure = failure }
      }
    }
  }

  private func discard(_ piece: Piece) {
    BlobBuffer.giveBack(piece.buffer)
    Self.total.withLock { $0 -= 1 }
  }

  private func authenticate(
    _ buffer: UnsafeMutableRawBufferPointer, _ count: Int, withTags: Bool
  ) throws(StorageError) {
    let front = BlobBuffer.frontByteCount
    do throws(CryptoFailure) {
      try hmac.update(UnsafeRawBufferPointer(rebasing: buffer[front..<(front + count)]))
    } catch { throw .crypto(error) }
    guard withTags else { return }
    let authenticator: ChunkAuthenticator
    if let known = self.authenticator {
      authenticator = known
    } else {
      authenticator = try ChunkAuthenticator(keys: keys, header: header)
      self.authenticator = authenticator
    }
    for low in stride(from: 0, to: count, by: ChunkLayout.leafByteCount) {
      let high = min(low + ChunkLayout.leafByteCount, count)
      leafTags.append(
        try authenticator.tag(
          leaf: leafTags.count,
          UnsafeRawBufferPointer(rebasing: buffer[(front - 16 + low)..<(front + high)])))
    }
  }

  /// The first piece goes with the header before it.
  private func write(
    _ buffer: UnsafeMutableRawBufferPointer, _ count: Int
  ) throws(StorageError) {
    let front = BlobBuffer.frontByteCount
    let start = position == 0 ? front - header.byteCount : front
    let bytes = UnsafeRawBufferPointer(rebasing: buffer[start..<(front + count)])
    do throws(Errno) {
      try Syscalls.write(file.descriptor, bytes, at: position)
    } catch { throw .system(error) }
    WriteProgress.pieceCount.add(1, ordering: .relaxed)
    position += Int64(bytes.count)
  }
}
