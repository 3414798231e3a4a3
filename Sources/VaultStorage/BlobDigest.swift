import Glibc
import Platform
import SecuredData

/// What a stored file holds, without holding it: one pass in constant memory.
package struct BlobDigest: Sendable {
  package let plaintextSize: Int64
  /// SHA-256 of the plaintext.
  package let digest: [UInt8]

  /// Reads all of an open blob, compares its HMAC and hashes what it decrypts to. Throws
  /// `.blob(.notAuthenticated)` for altered bytes. What `pieceRead` throws ends the pass.
  package init(
    of descriptor: CInt, keys: VaultKeys,
    pieceRead: () throws(StorageError) -> Void = {}
  ) throws(StorageError) {
    let (header, ciphertextSize) = try Blob.header(of: descriptor)
    let expected = try BlobPass.storedHMAC(
      descriptor, header: header, ciphertextSize: ciphertextSize)
    let messageKeys = try keys.keys(for: header)
    let (mac, cbc, hash) = try StorageError.inCrypto { () throws(CryptoFailure) in
      let mac = try messageKeys.withHMACKey { key throws(CryptoFailure) in
        try HMACSHA256(key: key)
      }
      // v1's HMAC leaves the header out.
      if header.version > 1 {
        try header.bytes.withBytes { bytes throws(CryptoFailure) in try mac.update(bytes) }
      }
      let cbc = try messageKeys.withEncryptionKey { key throws(CryptoFailure) in
        try header.iv.withBytes { iv throws(CryptoFailure) in
          try CBC(.decrypt, key: key, iv: iv)
        }
      }
      return (mac, cbc, try Digest())
    }
    let buffer = BlobBuffer.take()
    defer { BlobBuffer.giveBack(buffer) }
    var position: Int64 = 0
    var padding = 0
    while position < ciphertextSize {
      let count = Int(min(ciphertextSize - position, Int64(BlobBuffer.ciphertextByteCount)))
      let bytes = UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
      // The buffer is for ciphertext only, so it is wiped.
      defer { SecretBytes.wipe(bytes) }
      try StorageError.onDisk { () throws(Errno) in
        let read = try Syscalls.read(
          descriptor, into: bytes, at: Int64(header.byteCount) + position)
        guard read == count else { throw Errno.inputOutput }
      }
      position += Int64(count)
      try StorageError.inCrypto { () throws(CryptoFailure) in
        try mac.update(UnsafeRawBufferPointer(bytes))
        try cbc.update(UnsafeRawBufferPointer(bytes), into: bytes)
        if position == ciphertextSize {
          padding = Self.paddingByteCount(UnsafeRawBufferPointer(bytes))
        }
        try hash.update(UnsafeRawBufferPointer(rebasing: bytes[..<(count - padding)]))
      }
      try pieceRead()
    }
    let (computed, digest) = try StorageError.inCrypto { () throws(CryptoFailure) in
      (try mac.finish(), try hash.finish())
    }
    // Bad padding is told like a bad HMAC.
    guard constantTimeEqual(computed, expected), padding > 0 else {
      throw .blob(.notAuthenticated)
    }
    plaintextSize = ciphertextSize - Int64(padding)
    self.digest = digest
  }

  /// 0 where it is no padding.
  private static func paddingByteCount(_ end: UnsafeRawBufferPointer) -> Int {
    let count = Int(end[end.count - 1])
    guard (1...Format.blockByteCount).contains(count) else { return 0 }
    return end.suffix(count).allSatisfy { Int($0) == count } ? count : 0
  }
}

extension BlobDigest {
  /// Of what the disk has, which on return is all of the blob. A disk that fails to take a file
  /// tells once, and when asked again that all is well; so what it has is read, not what is in
  /// memory.
  package init(onDisk descriptor: CInt, keys: VaultKeys) throws(StorageError) {
    try StorageError.onDisk { () throws(Errno) in try Syscalls.synchronizeData(descriptor) }
    Syscalls.dropPages(of: descriptor)
    try self.init(of: descriptor, keys: keys)
  }
}

extension WrittenBlob {
  /// Reads the blob back from the disk, not from memory that was just written, and says what it
  /// holds. On return its bytes are on the disk.
  package func readBack(keys: VaultKeys) throws(StorageError) -> BlobDigest {
    try synchronize()
    Syscalls.dropPages(of: descriptor)
    return try BlobDigest(of: descriptor, keys: keys)
  }
}
