package import Glibc
package import Platform
package import SecuredData
import Synchronization

/// What tells one version of a stored file from another: a hash, keyed by the process, of the
/// file's number, size and times. Small, since each file that is known has up to three.
package struct BlobIdentity: Hashable, Sendable {
  private let digest: Int

  package init(_ status: stat) {
    var hasher = Hasher()
    hasher.combine(status.st_dev)
    hasher.combine(status.st_ino)
    hasher.combine(status.st_size)
    for time in [status.st_mtim, status.st_ctim] {
      hasher.combine(time.tv_sec)
      hasher.combine(time.tv_nsec)
    }
    digest = hasher.finalize()
  }
}

/// One version of one file: an open blob. Nothing of it is released before it was verified.
package final class Blob: Sendable {
  package let header: Header
  package let ciphertextSize: Int64
  let keys: VaultKeys
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

  /// What is trusted: the plaintext's size, the tags and what is kept in memory.
  final class Verified: Sendable {
    let plaintextSize: Int64
    let level: Int
    let chunkTags: [GMAC.Tag]
    /// A blob of one leaf, where all of it is kept; it has no tags then.
    let whole: KeptCiphertext?
    /// Of chunks of several leaves.
    let chunks = ConditionLock(Chunks())

    init(
      plaintextSize: Int64, level: Int, chunkTags: [GMAC.Tag], whole: KeptCiphertext? = nil
    ) {
      self.plaintextSize = plaintextSize
      self.level = level
      self.chunkTags = chunkTags
      self.whole = whole
    }
  }

  struct Chunks {
    /// Of each chunk looked into.
    var leafTags: [Int: [GMAC.Tag]] = [:]
    /// Being verified by some thread; whoever else wants one waits.
    var opening: Set<Int> = []
    /// Ciphertext of the last ones, the newest last.
    var kept: [(chunk: Int, ciphertext: KeptCiphertext)] = []

    /// The one being read and the one before it, which other readers may not be done with.
    static let keptLimit = 2

    func kept(_ chunk: Int) -> KeptCiphertext? {
      kept.first { $0.chunk == chunk }?.ciphertext
    }
  }

  /// Opens a stored file: its header must be a message's and fit its size. What can be verified
  /// cheaply (a small blob, or one with an index) is verified here, the rest at the first read.
  package init(
    descriptor: consuming FileDescriptor, keys: VaultKeys, isWritable: Bool
  ) throws(StorageError) {
    let size: Int64
    var start = [UInt8](repeating: 0, count: Format.passwordHeaderByteCount)
    var message: VerifiedCiphertext?
    do throws(Errno) {
      let status = try Syscalls.status(descriptor.rawValue)
      // Something else that took the file's place between its status and its opening.
      guard status.st_mode & S_IFMT == mode_t(Glibc.S_IFREG) else { throw Errno.stale }
      size = Int64(status.st_size)
      message = try Self.small(descriptor.rawValue, size: size)
      if let message {
        start = Array(message.memory.prefix(start.count))
      } else {
        let count = try Self.read(descriptor.rawValue, into: &start, at: 0)
        start.removeLast(start.count - count)
      }
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
    if let message, ciphertextSize <= Int64(ChunkLayout.leafByteCount) {
      let verified = try verify(small: message)
      state.withLock { $0 = .verified(verified) }
    } else {
      _ = try verify(cheaply: true)
    }
  }

  /// The whole message of a small blob; nil for others, or where no more is kept in memory.
  private static func small(
    _ descriptor: CInt, size: Int64
  ) throws(Errno) -> VerifiedCiphertext? {
    let most =
      Format.passwordHeaderByteCount + ChunkLayout.leafByteCount + Format.hmacByteCount
    guard size >= Int64(Format.leastByteCount), size <= Int64(most),
      let message = VerifiedCiphertext(byteCount: Int(size))
    else { return nil }
    guard try Syscalls.read(descriptor, into: message.memory, at: 0) == Int(size) else {
      throw .inputOutput
    }
    return message
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
    let target = UnsafeMutableRawBufferPointer(rebasing: target[..<count])
    if let whole = verified.whole {
      try whole.read(at: offset, into: target, reader)
      return count
    }
    var done = 0
    while done < count {
      done += try readPart(
        into: UnsafeMutableRawBufferPointer(rebasing: target[done...]),
        at: offset + Int64(done), verified)
    }
    return count
  }

  /// Fills the beginning of `target`, which lies inside the file; returns how much of it.
  private func readPart(
    into target: UnsafeMutableRawBufferPointer, at position: Int64, _ verified: Verified
  ) throws(StorageError) -> Int {
    let leafSize = Int64(ChunkLayout.leafByteCount)
    let firstLeaf = Int(position / leafSize)
    let goal = position + Int64(target.count)
    var end = min(goal, Int64(firstLeaf + LeafReader.leafLimit) * leafSize)
    let tags: [GMAC.Tag]
    // The leaf that `tags` begins with.
    var base = 0
    if verified.level == 0 {
      tags = verified.chunkTags
    } else {
      let number = firstLeaf >> verified.level
      let chunk = try openedChunk(number, verified)
      if let kept = chunk.kept {
        let count = Int(min(goal, kept.range.upperBound) - position)
        try kept.read(
          at: position, into: UnsafeMutableRawBufferPointer(rebasing: target[..<count]), reader)
        return count
      }
      tags = chunk.tags
      base = number << verified.level
      end = min(end, Int64(base + tags.count) * leafSize)
    }
    let lastLeaf = Int((end - 1) / leafSize)
    let count = Int(end - position)
    try reader.read(
      descriptor, ciphertextSize: ciphertextSize,
      tags: tags[(firstLeaf - base)...(lastLeaf - base)], at: position,
      into: UnsafeMutableRawBufferPointer(rebasing: target[..<count]))
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
        if let small = try verifySmall() {
          small
        } else if let indexed = try verifyByIndex() {
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

  /// nil for what is bigger than a leaf, or can't be kept.
  private func verifySmall() throws(StorageError) -> Verified? {
    let size = Int64(header.byteCount + Format.hmacByteCount) + ciphertextSize
    guard ciphertextSize <= Int64(ChunkLayout.leafByteCount) else { return nil }
    let message: VerifiedCiphertext?
    do throws(Errno) { message = try Self.small(descriptor, size: size) } catch {
      throw .system(error)
    }
    guard let message else { return nil }
    return try verify(small: message)
  }

  /// `message` is the whole blob, of one leaf at most.
  private func verify(small message: VerifiedCiphertext) throws(StorageError) -> Verified {
    let bytes = UnsafeRawBufferPointer(message.memory)
    let end = header.byteCount + Int(ciphertextSize)
    let isGenuine: Bool
    do throws(CryptoFailure) {
      let mac: HMACSHA256
      let isOwn = messageKeys === keys.messageKeys
      mac = try (isOwn ? keys.verifiers : ContextPool()).verifier(messageKeys)
      try mac.update(
        UnsafeRawBufferPointer(rebasing: bytes[(header.version > 1 ? 0 : header.byteCount)..<end]))
      isGenuine = constantTimeEqual(try mac.finish(), Array(bytes[end...]))
      if isOwn { keys.verifiers.giveBack(mac) }
    } catch { throw .crypto(error) }
    guard isGenuine else { throw .blob(.notAuthenticated) }
    let padding = try Self.paddingByteCount(Array(bytes[(end - 32)..<end]), messageKeys, keys)
    return Verified(
      plaintextSize: ciphertextSize - Int64(padding), level: 0, chunkTags: [],
      whole: KeptCiphertext(
        message, offset: header.byteCount - Format.blockByteCount, range: 0..<ciphertextSize))
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
    if isWritable, pass.leafTags.count > 1 {
      try ChunkIndex.store(
        pass.leafTags, plaintextSize: pass.plaintextSize, keys: keys, header: header,
        hmac: pass.hmac, on: descriptor)
    }
    return Verified(plaintextSize: pass.plaintextSize, level: 0, chunkTags: pass.leafTags)
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
        let isOwn = messageKeys === keys.messageKeys
        let cbc = try (isOwn ? keys.decryptors : ContextPool()).decryptor(messageKeys, iv: iv)
        try last.withMutableBytes { target throws(CryptoFailure) in
          try cbc.update(
            UnsafeRawBufferPointer(rebasing: blocks[Format.ivByteCount...]), into: target)
        }
        if isOwn { keys.decryptors.giveBack(cbc) }
      }
    } catch { throw .crypto(error) }
    let padding = Int(last[15])
    guard (1...16).contains(padding), last.suffix(padding).allSatisfy({ $0 == last[15] }) else {
      throw .blob(.notAuthenticated)
    }
    return padding
  }

  private static func read(
    _ descriptor: CInt, into bytes: inout [UInt8], at offset: Int64
  ) throws(Errno) -> Int {
    try bytes.withMutableBytes { buffer throws(Errno) in
      try Syscalls.read(descriptor, into: buffer, at: offset)
    }
  }
}
