import Platform
import SecuredData
import Synchronization

/// Reads, verifies and decrypts leaves of one blob: every byte is decrypted from the very buffer
/// whose tag was right.
final class LeafReader: Sendable {
  private let keys: VaultKeys
  private let messageKeys: MessageKeys
  private let header: Header
  private let authenticators = ContextPool<ChunkAuthenticator>()
  private let foreignDecryptors = ContextPool<CBC>()

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
    try withAuthenticator { authenticator throws(StorageError) in
      for (number, tag) in tags.enumerated() {
        let low = number * Int(leafSize)
        let high = min(16 + low + Int(leafSize), bytes.count)
        let leaf = UnsafeRawBufferPointer(rebasing: bytes[low..<high])
        guard try authenticator.tag(leaf: firstLeaf + number, leaf).matches(tag) else {
          throw .blob(.notAuthenticated)
        }
      }
    }
    try decrypt(UnsafeRawBufferPointer(bytes), skipping: Int(offset - start), into: target)
  }

  /// Plaintext of verified ciphertext. `bytes`: one block, then ciphertext; `skipping` bytes of
  /// plaintext are left out.
  func decrypt(
    _ bytes: UnsafeRawBufferPointer, skipping: Int, into target: UnsafeMutableRawBufferPointer
  ) throws(StorageError) {
    let pool = messageKeys === keys.messageKeys ? keys.decryptors : foreignDecryptors
    let block = Format.blockByteCount
    let first = skipping / block * block
    do throws(CryptoFailure) {
      let iv = UnsafeRawBufferPointer(rebasing: bytes[first..<(first + block)])
      let cbc = try pool.decryptor(messageKeys, iv: iv)
      defer { pool.giveBack(cbc) }
      var source = UnsafeRawBufferPointer(rebasing: bytes[(first + block)...])
      var done = 0
      if skipping > first {
        done = min(first + block - skipping, target.count)
        try Self.decryptBlock(source, skipping - first, cbc, into: target[..<done])
        source = UnsafeRawBufferPointer(rebasing: source[block...])
      }
      let whole = (target.count - done) / block * block
      try cbc.update(
        UnsafeRawBufferPointer(rebasing: source[..<whole]),
        into: UnsafeMutableRawBufferPointer(rebasing: target[done..<(done + whole)]))
      done += whole
      guard done < target.count else { return }
      source = UnsafeRawBufferPointer(rebasing: source[whole...])
      try Self.decryptBlock(source, 0, cbc, into: target[done...])
    } catch { throw .crypto(error) }
  }

  /// The first block of `source`, of which `target` takes the bytes from `skipping` on.
  private static func decryptBlock(
    _ source: UnsafeRawBufferPointer, _ skipping: Int, _ cbc: CBC,
    into target: Slice<UnsafeMutableRawBufferPointer>
  ) throws(CryptoFailure) {
    let result: Result<Void, CryptoFailure> = withUnsafeTemporaryAllocation(
      byteCount: Format.blockByteCount, alignment: 16
    ) { block in
      do throws(CryptoFailure) {
        try cbc.update(
          UnsafeRawBufferPointer(rebasing: source[..<Format.blockByteCount]), into: block)
      } catch { return .failure(error) }
      UnsafeMutableRawBufferPointer(rebasing: target)
        .copyBytes(from: block[skipping..<(skipping + target.count)])
      SecretBytes.wipe(block)
      return .success(())
    }
    try result.get()
  }

  private func withAuthenticator<Result>(
    _ body: (ChunkAuthenticator) throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    let authenticator: ChunkAuthenticator
    if let known = authenticators.take() {
      authenticator = known
    } else {
      authenticator = try ChunkAuthenticator(keys: keys, header: header)
    }
    defer { authenticators.giveBack(authenticator) }
    return try body(authenticator)
  }
}
