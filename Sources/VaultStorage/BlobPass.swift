import Platform
import SecuredData

/// One pass over a whole blob that was as its writer left it: the HMAC, and on the same bytes the
/// tags of the leaves. In constant memory but for 16 bytes per 64 KiB.
struct BlobPass {
  let plaintextSize: Int64
  let hmac: [UInt8]
  /// Empty where they were not asked for.
  let leafTags: [GMAC.Tag]

  /// `pieceRead` is told how many bytes more were read, and may throw to end the pass. Throws
  /// `.blob(.notAuthenticated)` for altered bytes.
  init(
    of descriptor: CInt, header: Header, ciphertextSize: Int64, messageKeys: MessageKeys,
    keys: VaultKeys, withTags: Bool = true,
    pieceRead: (Int) throws(StorageError) -> Void = { _ in }
  ) throws(StorageError) {
    let expected = try Self.storedHMAC(
      descriptor, header: header, ciphertextSize: ciphertextSize)
    let isOwn = messageKeys === keys.messageKeys
    let mac = try Self.verifier(messageKeys, keys)
    if header.version > 1 {
      try StorageError.inCrypto { () throws(CryptoFailure) in
        try header.bytes.withBytes { bytes throws(CryptoFailure) in try mac.update(bytes) }
      }
    }
    let authenticator = withTags ? try ChunkAuthenticator(keys: keys, header: header) : nil
    let buffer = BlobBuffer.take()
    defer { BlobBuffer.giveBack(buffer) }
    var leafTags: [GMAC.Tag] = []
    leafTags.reserveCapacity(ChunkLayout.leafCount(ciphertextSize: ciphertextSize))
    var lastBlocks: [UInt8] = []
    var position: Int64 = 0
    while position < ciphertextSize {
      let count = Int(min(ciphertextSize - position, Int64(BlobBuffer.ciphertextByteCount)))
      let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<(16 + count)])
      try Self.fill(bytes, from: descriptor, at: Int64(header.byteCount) - 16 + position)
      try StorageError.inCrypto { () throws(CryptoFailure) in
        try mac.update(UnsafeRawBufferPointer(rebasing: bytes[16...]))
      }
      if let authenticator {
        for low in stride(from: 0, to: count, by: ChunkLayout.leafByteCount) {
          let high = min(low + ChunkLayout.leafByteCount, count)
          leafTags.append(
            try authenticator.tag(
              leaf: leafTags.count, UnsafeRawBufferPointer(rebasing: bytes[low..<(16 + high)])))
        }
      }
      position += Int64(count)
      if position == ciphertextSize { lastBlocks = Array(bytes.suffix(32)) }
      try pieceRead(count)
    }
    let computed = try StorageError.inCrypto { () throws(CryptoFailure) in try mac.finish() }
    if isOwn { keys.verifiers.giveBack(mac) }
    guard constantTimeEqual(computed, expected) else { throw .blob(.notAuthenticated) }
    let padding = try Blob.paddingByteCount(lastBlocks, messageKeys, keys)
    plaintextSize = ciphertextSize - Int64(padding)
    hmac = expected
    self.leafTags = leafTags
  }

  static func storedHMAC(
    _ descriptor: CInt, header: Header, ciphertextSize: Int64
  ) throws(StorageError) -> [UInt8] {
    var hmac = [UInt8](repeating: 0, count: Format.hmacByteCount)
    try hmac.withMutableBytes { hmac throws(StorageError) in
      try fill(hmac, from: descriptor, at: Int64(header.byteCount) + ciphertextSize)
    }
    return hmac
  }

  private static func verifier(
    _ messageKeys: MessageKeys, _ keys: VaultKeys
  ) throws(StorageError) -> HMACSHA256 {
    try StorageError.inCrypto { () throws(CryptoFailure) in
      if messageKeys === keys.messageKeys, let known = keys.verifiers.take() {
        try known.restart()
        return known
      }
      return try messageKeys.withHMACKey { key throws(CryptoFailure) in try HMACSHA256(key: key) }
    }
  }

  private static func fill(
    _ target: UnsafeMutableRawBufferPointer, from descriptor: CInt, at position: Int64
  ) throws(StorageError) {
    try StorageError.onDisk { () throws(Errno) in
      guard try Syscalls.read(descriptor, into: target, at: position) == target.count else {
        throw Errno.inputOutput
      }
    }
  }
}
