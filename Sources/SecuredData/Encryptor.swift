import Platform

/// Makes one v3 message piece by piece, in constant memory. Not for two threads at once.
public final class Encryptor {
  public let header: Header

  private let cipher: CBC
  private let authenticator: HMACSHA256
  /// Plaintext that waits for its block to be full.
  private let block: UnsafeMutableRawBufferPointer
  private var blockCount = 0
  private var stage = Stage.new

  private enum Stage {
    case new, begun, finished
  }

  /// A fresh random IV for every message. `keys` must be those of `mode`'s salts.
  public convenience init(keys: MessageKeys, mode: Header.Mode) throws(SecuredDataError) {
    do throws(CryptoFailure) {
      let iv = try Random.bytes(Format.ivByteCount)
      try self.init(keys: keys, checked: Header(mode: mode, iv: iv))
    } catch { throw .crypto(error) }
  }

  /// With a given IV, which must never have been used under these keys.
  package convenience init(keys: MessageKeys, header: Header) throws(SecuredDataError) {
    do throws(CryptoFailure) {
      try self.init(keys: keys, checked: header)
    } catch { throw .crypto(error) }
  }

  private init(keys: MessageKeys, checked header: Header) throws(CryptoFailure) {
    precondition(header.version == Format.currentVersion, "only v3 is written")
    self.header = header
    cipher = try keys.withEncryptionKey { key throws(CryptoFailure) in
      try header.iv.withRawBytes { iv throws(CryptoFailure) in
        try CBC(.encrypt, key: key, iv: iv)
      }
    }
    authenticator = try keys.withHMACKey { key throws(CryptoFailure) in
      try HMACSHA256(key: key)
    }
    block = .allocate(byteCount: Format.blockByteCount, alignment: Format.blockByteCount)
  }

  deinit {
    SecretBytes.wipe(block)
    block.deallocate()
  }

  /// Appends the ciphertext of every block that is full, and the header before the first.
  /// After a failure the message can't go on.
  public func update(
    _ plaintext: UnsafeRawBufferPointer, appendingTo output: inout [UInt8]
  ) throws(SecuredDataError) {
    do throws(CryptoFailure) {
      try begin(&output)
      var rest = plaintext[...]
      if blockCount > 0 {
        let taken = min(Format.blockByteCount - blockCount, rest.count)
        keep(rest.prefix(taken))
        rest = rest.dropFirst(taken)
        guard blockCount == Format.blockByteCount else { return }
        try append(UnsafeRawBufferPointer(block), to: &output)
        blockCount = 0
      }
      while rest.count >= Format.blockByteCount {
        let whole = min(Self.pieceByteCount, rest.count / 16 * 16)
        try append(UnsafeRawBufferPointer(rebasing: rest.prefix(whole)), to: &output)
        rest = rest.dropFirst(whole)
      }
      keep(rest)
    } catch { throw .crypto(error) }
  }

  /// Appends the last block with its padding, and the HMAC. The encryptor takes no more.
  public func finish(appendingTo output: inout [UInt8]) throws(SecuredDataError) {
    do throws(CryptoFailure) {
      try begin(&output)
      stage = .finished
      Padding.fill(block, after: blockCount)
      try append(UnsafeRawBufferPointer(block), to: &output)
      SecretBytes.wipe(block)
      output += try authenticator.finish()
    } catch { throw .crypto(error) }
  }

  private func begin(_ output: inout [UInt8]) throws(CryptoFailure) {
    precondition(stage != .finished, "the message is finished")
    guard stage == .new else { return }
    stage = .begun
    let bytes = header.bytes
    output += bytes
    try bytes.withRawBytes { bytes throws(CryptoFailure) in try authenticator.update(bytes) }
  }

  /// Keeps the start of a block for later.
  private func keep(_ bytes: Slice<UnsafeRawBufferPointer>) {
    UnsafeMutableRawBufferPointer(rebasing: block[blockCount...]).copyBytes(from: bytes)
    blockCount += bytes.count
  }

  /// Bytes encrypted and then authenticated at once: they fit the CPU's cache between the two.
  private static let pieceByteCount = 64 << 10
  private static let zeros = [UInt8](repeating: 0, count: pieceByteCount)

  private func append(
    _ blocks: UnsafeRawBufferPointer, to output: inout [UInt8]
  ) throws(CryptoFailure) {
    let start = output.count
    output += Self.zeros[..<blocks.count]
    try output.withMutableRawBytes { output throws(CryptoFailure) in
      let ciphertext = UnsafeMutableRawBufferPointer(rebasing: output[start...])
      try cipher.update(blocks, into: ciphertext)
      try authenticator.update(UnsafeRawBufferPointer(ciphertext))
    }
  }
}
