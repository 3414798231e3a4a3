import Platform
import SecuredData

/// Streams one new blob into a temporary file, in memory that doesn't grow with it: the caller's
/// thread encrypts, the pool's threads hash, make the leaves' tags and write.
///
/// Not for two threads at once. An IV is used for one content: once finished, a writer takes no
/// more.
package final class BlobWriter: @unchecked Sendable {
  package private(set) var plaintextSize: Int64 = 0

  private let keys: VaultKeys
  private let header: Header
  private let contexts: WriterContexts
  private let pipeline: Pipeline
  private let reader: LeafReader
  /// The piece being filled: room in front, then `filled` bytes of ciphertext.
  private var piece: UnsafeMutableRawBufferPointer
  private var filled = 0
  /// Ciphertext handed to the pipeline so far.
  private var submitted: Int64 = 0
  /// Plaintext that is no whole block yet.
  private var rest: SecretBlock = SecretBlock()

  /// One block of plaintext on its way, wiped with its writer.
  private struct SecretBlock {
    var bytes: (UInt64, UInt64) = (0, 0)
    var count = 0
  }

  package init(in directory: VaultDirectory, keys: VaultKeys) throws(StorageError) {
    self.keys = keys
    do throws(CryptoFailure) {
      header = Header(
        mode: .password(keys.salts), iv: try Random.bytes(Format.ivByteCount))
      contexts = try WriterContexts.ready(keys, iv: header.iv)
    } catch { throw .crypto(error) }
    reader = LeafReader(keys: keys, messageKeys: keys.messageKeys, header: header)
    pipeline = try Pipeline(
      file: try TemporaryFile(in: directory), keys: keys, header: header, hmac: contexts.hmac)
    piece = BlobBuffer.take()
    piece.copyBytes(from: header.bytes)
  }

  deinit {
    pipeline.wait()
    keys.writerContexts.giveBack(contexts)
    BlobBuffer.giveBack(piece)
    withUnsafeMutableBytes(of: &rest.bytes) { SecretBytes.wipe($0) }
  }

  /// The temporary file, for its inode number.
  package var descriptor: CInt { pipeline.file.descriptor }

  /// Throws what went wrong with earlier bytes, too: ENOSPC and EIO of the disk below.
  package func append(_ plaintext: UnsafeRawBufferPointer) throws(StorageError) {
    var source = plaintext
    let block = Format.blockByteCount
    if rest.count > 0 {
      let taken = min(block - rest.count, source.count)
      appendToRest(UnsafeRawBufferPointer(rebasing: source[..<taken]))
      source = UnsafeRawBufferPointer(rebasing: source[taken...])
      if rest.count == block {
        try withBytes(of: rest.bytes) { bytes throws(StorageError) in
          try encrypt(bytes)
        }
        rest.count = 0
      }
    }
    let whole = source.count / block * block
    if whole > 0 { try encrypt(UnsafeRawBufferPointer(rebasing: source[..<whole])) }
    appendToRest(UnsafeRawBufferPointer(rebasing: source[whole...]))
    plaintextSize += Int64(plaintext.count)
  }

  /// Pads, authenticates and writes the end. The blob is complete and has no name.
  package func finish() throws(StorageError) -> WrittenBlob {
    let present = rest.count
    let padding = Format.blockByteCount - present
    withUnsafeMutableBytes(of: &rest.bytes) { bytes in
      for index in present..<Format.blockByteCount { bytes[index] = UInt8(padding) }
    }
    try withBytes(of: rest.bytes) { bytes throws(StorageError) in try encrypt(bytes) }
    pipeline.wait()
    let hmac = try pipeline.finish(piece, filled)
    let tags = pipeline.leafTags
    if tags.count > 1 {
      // Where the disk holds no xattrs the first read makes the tags anew.
      try ChunkIndex.store(
        tags, plaintextSize: plaintextSize, keys: keys, header: header, hmac: hmac,
        on: pipeline.file.descriptor)
    }
    let blob = Blob(
      written: pipeline.file.opened, header: header, plaintextSize: plaintextSize,
      leafTags: tags, keys: keys, reader: reader)
    return WrittenBlob(blob: blob, file: pipeline.file)
  }

  /// Reads back what was appended so far; fewer bytes at its end.
  package func read(
    into target: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(StorageError) -> Int {
    guard offset >= 0, offset < plaintextSize else { return 0 }
    pipeline.wait()
    try pipeline.throwFailure()
    let count = Int(min(Int64(target.count), plaintextSize - offset))
    var done = 0
    while done < count {
      let position = offset + Int64(done)
      let part: Int
      let target = UnsafeMutableRawBufferPointer(rebasing: target[done..<count])
      if position < submitted {
        let leafSize = Int64(ChunkLayout.leafByteCount)
        let first = Int(position / leafSize)
        let end = min(
          submitted, position + Int64(target.count),
          Int64(first + LeafReader.leafLimit) * leafSize)
        part = Int(end - position)
        try reader.read(
          pipeline.file.descriptor, ciphertextSize: submitted,
          tags: pipeline.leafTags[first...Int((end - 1) / leafSize)], at: position,
          into: UnsafeMutableRawBufferPointer(rebasing: target[..<part]))
      } else if position < submitted + Int64(filled) {
        part = min(target.count, Int(submitted + Int64(filled) - position))
        let start = BlobBuffer.frontByteCount - 16
        try reader.decrypt(
          UnsafeRawBufferPointer(rebasing: piece[start..<(start + 16 + filled)]),
          skipping: Int(position - submitted),
          into: UnsafeMutableRawBufferPointer(rebasing: target[..<part]))
      } else {
        let skipped = Int(position - submitted - Int64(filled))
        part = target.count
        withUnsafeBytes(of: rest.bytes) { bytes in
          target.copyBytes(from: bytes[skipped..<(skipped + part)])
        }
      }
      done += part
    }
    return count
  }

  private func appendToRest(_ bytes: UnsafeRawBufferPointer) {
    let start = rest.count
    withUnsafeMutableBytes(of: &rest.bytes) { target in
      for index in 0..<bytes.count { target[start + index] = bytes[index] }
    }
    rest.count += bytes.count
  }

  /// Whole blocks only.
  private func encrypt(_ blocks: UnsafeRawBufferPointer) throws(StorageError) {
    var source = blocks
    while !source.isEmpty {
      if filled == BlobBuffer.ciphertextByteCount { try submit() }
      let count = min(source.count, BlobBuffer.ciphertextByteCount - filled)
      let start = BlobBuffer.frontByteCount + filled
      do throws(CryptoFailure) {
        try contexts.cbc.update(
          UnsafeRawBufferPointer(rebasing: source[..<count]),
          into: UnsafeMutableRawBufferPointer(rebasing: piece[start..<(start + count)]))
      } catch { throw .crypto(error) }
      filled += count
      source = UnsafeRawBufferPointer(rebasing: source[count...])
    }
  }

  private func submit() throws(StorageError) {
    let next = BlobBuffer.take()
    let end = BlobBuffer.frontByteCount + filled
    next[..<BlobBuffer.frontByteCount].copyBytes(
      from: piece[(end - BlobBuffer.frontByteCount)..<end])
    let full = piece
    piece = next
    submitted += Int64(filled)
    let count = filled
    filled = 0
    try pipeline.submit(full, count)
  }
}
