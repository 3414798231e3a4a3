package import Glibc
package import Platform
package import SecuredData
import Synchronization

/// What tells one version of a stored file from another.
package struct BlobIdentity: Hashable, Sendable {
  package let device: UInt64
  package let inode: UInt64
  package let size: Int64
  private let modifiedSeconds: Int
  private let modifiedNanoseconds: Int
  private let changedSeconds: Int
  private let changedNanoseconds: Int

  package init(_ status: stat) {
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int64(status.st_size)
    modifiedSeconds = status.st_mtim.tv_sec
    modifiedNanoseconds = status.st_mtim.tv_nsec
    changedSeconds = status.st_ctim.tv_sec
    changedNanoseconds = status.st_ctim.tv_nsec
  }
}

/// One version of one file: an open blob. Nothing of it is released before it was verified.
package final class Blob: Sendable {
  package let header: Header
  package let ciphertextSize: Int64
  private let keys: VaultKeys
  private let messageKeys: MessageKeys
  private let file: SharedDescriptor
  private let reader: LeafReader
  private let isWritable: Bool
  /// The size of a blob of our own making.
  private let writtenSize: Int64?
  private let state: ConditionLock<State>

  private enum State {
    case unverified
    case verifying
    case verified(Verified)
    case damaged(SecuredDataError)
  }

  /// What is trusted: the plaintext's size and the tags.
  private final class Verified: Sendable {
    let plaintextSize: Int64
    let level: Int
    let chunkTags: [GMAC.Tag]
    /// The leaves' tags of each chunk looked into; nil where level is 0 and they are the chunks'.
    let leaves = Mutex<[Int: [GMAC.Tag]]>([:])

    init(plaintextSize: Int64, level: Int, chunkTags: [GMAC.Tag]) {
      self.plaintextSize = plaintextSize
      self.level = level
      self.chunkTags = chunkTags
    }
  }

  /// Opens a stored file: its header must be a message's and fit its size. What can be verified
  /// cheaply (a small blob, or one with an index) is verified here, the rest at the first read.
  package init(
    descriptor: consuming FileDescriptor, keys: VaultKeys, isWritable: Bool
  ) throws(StorageError) {
    let size: Int64
    var start = [UInt8](repeating: 0, count: Format.passwordHeaderByteCount)
    do throws(Errno) {
      size = Int64(try Syscalls.status(descriptor.rawValue).st_size)
      let count = try Self.read(descriptor.rawValue, into: &start, at: 0)
      start.removeLast(start.count - count)
    } catch { throw .system(error) }
    let header: Header
    do throws(SecuredDataError) {
      header = try start.withBytes { bytes throws(SecuredDataError) in
        try Header.parse(bytes, messageSize: size)
      }
    } catch { throw .blob(error) }
    let messageKeys = try keys.keys(for: header)
    file = SharedDescriptor(descriptor)
    writtenSize = nil
    self.header = header
    self.keys = keys
    self.messageKeys = messageKeys
    self.isWritable = isWritable
    ciphertextSize = size - Int64(header.byteCount + Format.hmacByteCount)
    reader = LeafReader(keys: keys, messageKeys: messageKeys, header: header)
    state = ConditionLock(.unverified)
    _ = try verify(cheaply: true)
  }

  package var descriptor: CInt { file.rawValue }

  /// A blob that was just written to `file`. The leaves' tags may be left out where there is but
  /// one leaf.
  init(
    written file: SharedDescriptor, header: Header, plaintextSize: Int64,
    leafTags: [GMAC.Tag], keys: VaultKeys, reader: LeafReader
  ) {
    self.file = file
    writtenSize = plaintextSize
    self.header = header
    self.keys = keys
    messageKeys = keys.messageKeys
    isWritable = true
    ciphertextSize = Format.ciphertextSize(plaintextSize: plaintextSize)
    self.reader = reader
    state = ConditionLock(
      leafTags.isEmpty
        ? .unverified
        : .verified(Verified(plaintextSize: plaintextSize, level: 0, chunkTags: leafTags)))
  }

  /// Verifies as much as it takes to know. Throws `.blob` for a damaged blob.
  package func plaintextSize() throws(StorageError) -> Int64 {
    try verify(cheaply: false)?.plaintextSize ?? 0
  }

  /// The size if it is known without a pass over the whole blob.
  package func plaintextSizeIfVerified() -> Int64? {
    state.withLock { state in
      if case .verified(let verified) = state { verified.plaintextSize } else { writtenSize }
    }
  }

  /// Fills `target` with verified plaintext from `offset`; fewer bytes at the end of the file.
  package func read(
    into target: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(StorageError) -> Int {
    guard let verified = try verify(cheaply: false) else { return 0 }
    guard offset >= 0, offset < verified.plaintextSize else { return 0 }
    let count = Int(min(Int64(target.count), verified.plaintextSize - offset))
    let leafSize = Int64(ChunkLayout.leafByteCount)
    var done = 0
    while done < count {
      let position = offset + Int64(done)
      let firstLeaf = Int(position / leafSize)
      let end = min(
        offset + Int64(count), Int64(firstLeaf + LeafReader.leafLimit) * leafSize)
      let lastLeaf = Int((end - 1) / leafSize)
      let tags = try leafTags(firstLeaf...lastLeaf, verified)
      try reader.read(
        descriptor, ciphertextSize: ciphertextSize, tags: tags[...], at: position,
        into: UnsafeMutableRawBufferPointer(
          rebasing: target[done..<(done + Int(end - position))]))
      done += Int(end - position)
    }
    return count
  }

  // MARK: Verification

  /// Runs once however many ask. With `cheaply`, nil when only a whole pass would tell.
  private func verify(cheaply: Bool) throws(StorageError) -> Verified? {
    let known: Result<Verified, StorageError>? = state.withLock(
      when: { if case .verifying = $0 { false } else { true } },
      { state in
        switch state {
        case .verified(let verified): return .success(verified)
        case .damaged(let error): return .failure(.blob(error))
        case .unverified, .verifying:
          state = .verifying
          return nil
        }
      })
    if let known { return try known.get() }
    do throws(StorageError) {
      let found: Verified? =
        if let indexed = try verifyByIndex() {
          indexed
        } else if cheaply, ciphertextSize > Int64(ChunkLayout.leafByteCount) {
          nil
        } else {
          try verifyWhole()
        }
      state.withLock { state in
        if let found { state = .verified(found) } else { state = .unverified }
      }
      return found
    } catch {
      state.withLock { state in
        // What the disk failed to give may be there the next time.
        if case .blob(let reason) = error { state = .damaged(reason) } else { state = .unverified }
      }
      throw error
    }
  }

  private func verifyByIndex() throws(StorageError) -> Verified? {
    guard ciphertextSize > Int64(ChunkLayout.leafByteCount) else { return nil }
    let bytes: [UInt8]
    do throws(Errno) {
      bytes = try Syscalls.extendedAttribute(descriptor, ChunkIndex.attribute)
    } catch { return nil }
    guard
      let index = try ChunkIndex.decode(
        bytes, keys: keys, header: header,
        hmac: try BlobPass.storedHMAC(
          descriptor, header: header, ciphertextSize: ciphertextSize),
        ciphertextSize: ciphertextSize)
    else { return nil }
    return Verified(
      plaintextSize: index.plaintextSize, level: index.level, chunkTags: index.tags)
  }

  private func verifyWhole() throws(StorageError) -> Verified {
    let pass = try BlobPass(
      of: descriptor, header: header, ciphertextSize: ciphertextSize, messageKeys: messageKeys,
      keys: keys)
    try storeIndex(pass.leafTags, plaintextSize: pass.plaintextSize, hmac: pass.hmac)
    return Verified(plaintextSize: pass.plaintextSize, level: 0, chunkTags: pass.leafTags)
  }

  /// Gives the blob the index that it lacked, where the disk can hold it.
  private func storeIndex(
    _ leafTags: [GMAC.Tag], plaintextSize: Int64, hmac: [UInt8]
  ) throws(StorageError) {
    guard isWritable, leafTags.count > 1 else { return }
    let index = try ChunkIndex(
      plaintextSize: plaintextSize, leafTags: leafTags, keys: keys, header: header)
    let bytes = try index.encoded(keys: keys, header: header, hmac: hmac)
    // No room, no xattrs, or no right to write this file: the index is only an accelerator.
    try? Syscalls.setExtendedAttribute(descriptor, ChunkIndex.attribute, bytes)
  }

  /// How many of the last block's bytes are padding. `blocks`: the last block and the one before
  /// (or the IV). Bad padding is told like a bad HMAC.
  static func paddingByteCount(
    _ blocks: [UInt8], _ messageKeys: MessageKeys, _ keys: VaultKeys
  ) throws(StorageError) -> Int {
    var last = [UInt8](repeating: 0, count: Format.blockByteCount)
    defer { last.withMutableBytes { SecretBytes.wipe($0) } }
    do throws(CryptoFailure) {
      try blocks.withBytes { blocks throws(CryptoFailure) in
        let iv = UnsafeRawBufferPointer(rebasing: blocks[..<Format.ivByteCount])
        // Kept for the vault's own keys; foreign blobs are few.
        let known = messageKeys === keys.messageKeys ? keys.paddingContexts.take() : nil
        let cbc: CBC
        if let known {
          cbc = known
          try cbc.restart(iv: iv)
        } else {
          cbc = try messageKeys.withEncryptionKey { key throws(CryptoFailure) in
            try CBC(.decrypt, key: key, iv: iv)
          }
        }
        try last.withMutableBytes { target throws(CryptoFailure) in
          try cbc.update(
            UnsafeRawBufferPointer(rebasing: blocks[Format.ivByteCount...]), into: target)
        }
        if messageKeys === keys.messageKeys { keys.paddingContexts.giveBack(cbc) }
      }
    } catch { throw .crypto(error) }
    let padding = Int(last[15])
    guard (1...16).contains(padding), last.suffix(padding).allSatisfy({ $0 == last[15] }) else {
      throw .blob(.notAuthenticated)
    }
    return padding
  }

  // MARK: Tags of leaves

  private func leafTags(
    _ range: ClosedRange<Int>, _ verified: Verified
  ) throws(StorageError) -> [GMAC.Tag] {
    if verified.level == 0 { return Array(verified.chunkTags[range]) }
    var tags: [GMAC.Tag] = []
    for leaf in range {
      let chunk = leaf >> verified.level
      let known = verified.leaves.withLock { $0[chunk] }
      let leaves: [GMAC.Tag]
      if let known { leaves = known } else { leaves = try openChunk(chunk, verified) }
      tags.append(leaves[leaf - chunk << verified.level])
    }
    return tags
  }

  /// Computes the tags of a chunk's leaves and compares them with the chunk's own.
  private func openChunk(
    _ chunk: Int, _ verified: Verified
  ) throws(StorageError) -> [GMAC.Tag] {
    let leafSize = Int64(ChunkLayout.leafByteCount)
    let first = chunk << verified.level
    let leafCount = ChunkLayout.leafCount(ciphertextSize: ciphertextSize)
    let last = min(first + (1 << verified.level), leafCount)
    let authenticator = try ChunkAuthenticator(keys: keys, header: header)
    let buffer = BlobBuffer.take()
    defer { BlobBuffer.giveBack(buffer) }
    var tags: [GMAC.Tag] = []
    for leaf in first..<last {
      let start = Int64(leaf) * leafSize
      let count = Int(min(leafSize, ciphertextSize - start))
      let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(16 + count)])
      do throws(Errno) {
        let position = Int64(header.byteCount) - 16 + start
        guard try Syscalls.read(descriptor, into: bytes, at: position) == bytes.count
        else { throw Errno.inputOutput }
      } catch { throw .system(error) }
      tags.append(try authenticator.tag(leaf: leaf, UnsafeRawBufferPointer(bytes)))
    }
    let tag = try ChunkIndex.chunkTag(
      level: verified.level, number: chunk, leaves: tags[...], keys: keys, header: header)
    guard tag.matches(verified.chunkTags[chunk]) else { throw .blob(.notAuthenticated) }
    verified.leaves.withLock { $0[chunk] = tags }
    return tags
  }

  private static func read(
    _ descriptor: CInt, into bytes: inout [UInt8], at offset: Int64
  ) throws(Errno) -> Int {
    try bytes.withMutableBytes { buffer throws(Errno) in
      try Syscalls.read(descriptor, into: buffer, at: offset)
    }
  }
}
