import Platform
import SecuredData

/// Chunks of several leaves: a leaf counts if it is one of those that make its chunk's tag.
extension Blob {
  typealias OpenedChunk = (tags: [GMAC.Tag], kept: KeptCiphertext?)

  /// The tags of a chunk's leaves, verified, and its ciphertext while it is in memory. It is kept
  /// for who reads one chunk after the other; who jumps about would only pay for the memory.
  func openedChunk(
    _ number: Int, _ verified: Verified
  ) throws(StorageError) -> OpenedChunk {
    let (known, isInOrder): (OpenedChunk?, Bool) = verified.chunks.withLock(
      when: { !$0.opening.contains(number) },
      { chunks in
        if let tags = chunks.leafTags[number] { return ((tags, chunks.kept(number)), false) }
        chunks.opening.insert(number)
        return (nil, number == 0 || chunks.leafTags[number - 1] != nil)
      })
    if let known { return known }
    do throws(StorageError) {
      let opened = try verifyChunk(number, verified, keeping: isInOrder)
      verified.chunks.withLock { chunks in
        chunks.opening.remove(number)
        chunks.leafTags[number] = opened.tags
        if let kept = opened.kept {
          if chunks.kept.count == Chunks.keptLimit { chunks.kept.removeFirst() }
          chunks.kept.append((number, kept))
        }
      }
      return opened
    } catch {
      verified.chunks.withLock { _ = $0.opening.remove(number) }
      throw error
    }
  }

  /// Takes the tags of a chunk's leaves from beside the index, or computes them, and compares them
  /// with the chunk's own.
  private func verifyChunk(
    _ number: Int, _ verified: Verified, keeping: Bool
  ) throws(StorageError) -> OpenedChunk {
    let leafSize = Int64(ChunkLayout.leafByteCount)
    let first = number << verified.level
    let start = Int64(first) * leafSize
    let end = min(start + leafSize << verified.level, ciphertextSize)
    func isChunk(of tags: [GMAC.Tag]) throws(StorageError) -> Bool {
      try ChunkIndex.chunkTag(
        level: verified.level, number: number, leaves: tags[...], keys: keys, header: header
      ).matches(verified.chunkTags[number])
    }
    let leafCount = ChunkLayout.leafCount(ciphertextSize: end - start)
    if let tags = StoredLeafTags.load(first..<(first + leafCount), from: descriptor),
      try isChunk(of: tags)
    {
      return (tags, nil)
    }
    let authenticator = try ChunkAuthenticator(keys: keys, header: header)
    let memory = keeping ? VerifiedCiphertext(byteCount: 16 + Int(end - start)) : nil
    let buffer = memory?.memory ?? BlobBuffer.take()
    defer { if memory == nil { BlobBuffer.giveBack(buffer) } }
    var tags: [GMAC.Tag] = []
    tags.reserveCapacity(1 << verified.level)
    for position in stride(from: start, to: end, by: Int(leafSize)) {
      let count = Int(min(leafSize, end - position))
      // Each leaf with the block before it: where all are kept, the end of the one before.
      let place = memory == nil ? 0 : Int(position - start)
      let bytes = UnsafeMutableRawBufferPointer(
        rebasing: buffer[place..<(place + 16 + count)])
      let isAlone = place == 0
      let missing = UnsafeMutableRawBufferPointer(rebasing: bytes[(isAlone ? 0 : 16)...])
      do throws(Errno) {
        let place = Int64(header.byteCount) + position - (isAlone ? 16 : 0)
        guard try Syscalls.read(descriptor, into: missing, at: place) == missing.count else {
          throw Errno.inputOutput
        }
      } catch { throw .system(error) }
      tags.append(
        try authenticator.tag(leaf: first + tags.count, UnsafeRawBufferPointer(bytes)))
    }
    guard try isChunk(of: tags) else { throw .blob(.notAuthenticated) }
    return (tags, memory.map { KeptCiphertext($0, offset: 0, range: start..<end) })
  }
}
