import Platform
import SecuredData
import Synchronization

/// Reads, verifies and decrypts leaves of one blob: every byte is decrypted from the very buffer
/// whose tag was right.
final class LeafReader: Sendable {
  private let keys: VaultKeys
  private let messageKeys: MessageKeys
  private let header: Header
  private let idle = Mutex<[Contexts]>([])

  private final class Contexts: @unchecked Sendable {
    let authenticator: ChunkAuthenticator
    let cbc: CBC

    init(_ reader: LeafReader) throws(StorageError) {
      authenticator = try ChunkAuthenticator(keys: reader.keys, header: reader.header)
      let iv = reader.header.iv
      do throws(CryptoFailure) {
        cbc = try reader.messageKeys.withEncryptionKey { key throws(CryptoFailure) in
          try iv.withBytes { iv throws(CryptoFailure) in
            try CBC(.decrypt, key: key, iv: iv)
          }
        }
      } catch { throw .crypto(error) }
    }
  }

  init(keys: VaultKeys, messageKeys: MessageKeys, header: Header) {
    self.keys = keys
    self.messageKeys = messageKeys
    self.header = header
  }

  /// Leaves that one call of `read` may span.
  static let leafLimit = BlobBuffer.ciphertextByteCount / ChunkLayout.leafByteCount

  /// Fills `target` with plaintext from `offset`, all of it inside the blob and within `leafLimit`
  /// leaves whose tags are `tags`. `source` has a ciphertext of `ciphertextSize` bytes.
  /// Throws `.blob(.notAuthenticated)`, and then nothing of `target` is to be used.
  func read(
    _ source: CInt, ciphertextSize: Int64, tags: ArraySlice<GMAC.Tag>, at offset: Int64,
    into target: UnsafeMutableRawBufferPointer
  ) throws(StorageError) {
    let leafSize = Int64(ChunkLayout.leafByteCount)
    let firstLeaf = Int(offset / leafSize)
    let start = Int64(firstLeaf) * leafSize
    let end = min(ciphertextSize, start + Int64(tags.count) * leafSize)
    let buffer = BlobBuffer.take()
    defer { BlobBuffer.giveBack(buffer) }
    // The block before the ciphertext comes along: it is the IV of what follows.
    let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(16 + Int(end - start))])
    do throws(Errno) {
      let position = Int64(header.byteCount) - 16 + start
      guard try Syscalls.read(source, into: bytes, at: position) == bytes.count else {
        throw Errno.inputOutput
      }
    } catch { throw .system(error) }
    try withContexts { contexts throws(StorageError) in
      for (number, tag) in tags.enumerated() {
        let low = number * Int(leafSize)
        let high = min(16 + low + Int(leafSize), bytes.count)
        let leaf = UnsafeRawBufferPointer(rebasing: bytes[low..<high])
        guard try contexts.authenticator.tag(leaf: firstLeaf + number, leaf).matches(tag) else {
          throw .blob(.notAuthenticated)
        }
      }
      try Self.decrypt(bytes, skipping: Int(offset - start), contexts.cbc, into: target)
    }
  }

  /// Plaintext of ciphertext that is in memory and never left it.
  func decrypt(
    _ bytes: UnsafeMutableRawBufferPointer, skipping: Int,
    into target: UnsafeMutableRawBufferPointer
  ) throws(StorageError) {
    try withContexts { contexts throws(StorageError) in
      try Self.decrypt(bytes, skipping: skipping, contexts.cbc, into: target)
    }
  }

  /// `bytes`: one block, then ciphertext; `skipping` bytes of plaintext are left out.
  private static func decrypt(
    _ bytes: UnsafeMutableRawBufferPointer, skipping: Int, _ cbc: CBC,
    into target: UnsafeMutableRawBufferPointer
  ) throws(StorageError) {
    do throws(CryptoFailure) {
      let block = Format.blockByteCount
      let first = skipping / block * block
      try cbc.restart(
        iv: UnsafeRawBufferPointer(rebasing: bytes[first..<(first + block)]))
      let ciphertext = bytes[(first + block)...]
      if skipping == first {
        let whole = target.count / block * block
        try cbc.update(
          UnsafeRawBufferPointer(rebasing: ciphertext.prefix(whole)),
          into: UnsafeMutableRawBufferPointer(rebasing: target[..<whole]))
        if whole == target.count { return }
        let rest = target.count - whole
        try withUnsafeTemporaryBlock { last throws(CryptoFailure) in
          try cbc.update(
            UnsafeRawBufferPointer(rebasing: ciphertext.dropFirst(whole).prefix(block)),
            into: last)
          target[whole...].copyBytes(from: last[..<rest])
          SecretBytes.wipe(last)
        }
      } else {
        // In place: the buffer is a private copy. Wiped, since buffers are used again.
        let needed = (skipping - first + target.count + block - 1) / block * block
        let part = UnsafeMutableRawBufferPointer(rebasing: ciphertext.prefix(needed))
        try cbc.update(UnsafeRawBufferPointer(part), into: part)
        target.copyBytes(from: part[(skipping - first)..<(skipping - first + target.count)])
        SecretBytes.wipe(part)
      }
    } catch { throw .crypto(error) }
  }

  private static func withUnsafeTemporaryBlock<Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    let result: Result<Void, Failure> = withUnsafeTemporaryAllocation(
      byteCount: Format.blockByteCount, alignment: 16
    ) { buffer in
      do throws(Failure) { return .success(try body(buffer)) } catch { return .failure(error) }
    }
    try result.get()
  }

  private func withContexts<Result>(
    _ body: (Contexts) throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    let contexts: Contexts
    if let known = idle.withLock({ $0.popLast() }) {
      contexts = known
    } else {
      contexts = try Contexts(self)
    }
    defer { idle.withLock { if $0.count < 4 { $0.append(contexts) } } }
    return try body(contexts)
  }
}
