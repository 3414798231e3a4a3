package import Platform
package import SecuredData

/// How a blob's ciphertext is cut for verification.
package enum ChunkLayout {
  /// Ciphertext bytes of a leaf, the least that is verified to read one byte. A leaf's MAC costs
  /// 16 microseconds, less than the read itself; FUSE asks for 128 KiB at a time.
  package static let leafByteCount = 65536
  /// Tags that an index holds: 76 + 186 * 16 bytes stay under 3 KiB, and ext4 holds 4 KiB of
  /// extended attributes.
  package static let tagLimit = 186

  package static func leafCount(ciphertextSize: Int64) -> Int {
    Int((ciphertextSize + Int64(leafByteCount) - 1) / Int64(leafByteCount))
  }

  /// The least level at which chunks of `1 << level` leaves need no more than `tagLimit` tags.
  package static func level(leafCount: Int) -> Int {
    var level = 0
    while (leafCount + (1 << level) - 1) >> level > tagLimit { level += 1 }
    return level
  }
}

/// Makes the MACs of one blob's leaves and chunks. Not for two threads at once.
///
/// A leaf's tag is GMAC under a key of this blob alone (derived from its header, whose IV is never
/// used twice), with the leaf's number as nonce, over the ciphertext block before it and its own
/// ciphertext: what decrypts a leaf is verified, and a leaf is good in its place only.
package final class ChunkAuthenticator: @unchecked Sendable {
  private let gmac: GMAC

  package init(keys: VaultKeys, header: Header) throws(StorageError) {
    do throws(CryptoFailure) {
      var leafKey = try keys.chunks.withUnsafeBytes { key throws(CryptoFailure) in
        try (Array("leaf".utf8) + header.bytes).withBytes { input throws(CryptoFailure) in
          try HMACSHA256.authenticate(input, key: key)
        }
      }
      defer { leafKey.withUnsafeMutableBytes { SecretBytes.wipe($0) } }
      gmac = try leafKey.withBytes { key throws(CryptoFailure) in try GMAC(key: key) }
    } catch { throw .crypto(error) }
  }

  /// `bytes`: the 16 bytes before the leaf (for the first one the IV), then its ciphertext.
  package func tag(
    leaf: Int, _ bytes: UnsafeRawBufferPointer
  ) throws(StorageError) -> GMAC.Tag {
    do throws(CryptoFailure) {
      try gmac.start(nonce: UInt64(leaf))
      try gmac.update(bytes)
      return try gmac.finish()
    } catch { throw .crypto(error) }
  }
}

/// The index of a blob's chunks as it stands in `user.photovault.chunks`: an accelerator, trusted
/// only after its own MAC, and only for exactly the blob that it names. Source: FORMAT.md.
///
/// | bytes | field |
/// |---|---|
/// | 0 | format = 1 |
/// | 1 | level: a chunk is `1 << level` leaves of 64 KiB |
/// | 2-3 | zero |
/// | 4-11 | plaintext size, little-endian |
/// | 12-27 | the blob's IV |
/// | 28-59 | the blob's HMAC |
/// | then | 16 bytes a chunk |
/// | last 16 | HMAC-SHA256, cut, over "index", the blob's header and all before it |
package struct ChunkIndex: Sendable {
  package static let attribute = FileName("user.photovault.chunks")

  package let plaintextSize: Int64
  package let level: Int
  package let tags: [GMAC.Tag]

  private static let fixedByteCount = 60
  private static let macByteCount = 16

  package init(plaintextSize: Int64, level: Int, tags: [GMAC.Tag]) {
    self.plaintextSize = plaintextSize
    self.level = level
    self.tags = tags
  }

  /// From the tags of all leaves of a blob.
  package init(
    plaintextSize: Int64, leafTags: [GMAC.Tag], keys: VaultKeys, header: Header
  ) throws(StorageError) {
    let level = ChunkLayout.level(leafCount: leafTags.count)
    var tags: [GMAC.Tag] = []
    for first in stride(from: 0, to: leafTags.count, by: 1 << level) {
      let leaves = leafTags[first..<min(first + (1 << level), leafTags.count)]
      tags.append(
        try Self.chunkTag(
          level: level, number: first >> level, leaves: leaves, keys: keys, header: header))
    }
    self.init(plaintextSize: plaintextSize, level: level, tags: tags)
  }

  /// A chunk of one leaf has the leaf's tag; a bigger one the HMAC of its leaves' tags.
  package static func chunkTag(
    level: Int, number: Int, leaves: ArraySlice<GMAC.Tag>, keys: VaultKeys, header: Header
  ) throws(StorageError) -> GMAC.Tag {
    if level == 0, let only = leaves.first { return only }
    var input = Array("chunk".utf8) + header.bytes + [UInt8(level)]
    input.append(littleEndian: UInt64(number))
    for leaf in leaves { input.append(leaf) }
    return GMAC.Tag(try mac(input, keys))
  }

  package func encoded(
    keys: VaultKeys, header: Header, hmac: [UInt8]
  ) throws(StorageError) -> [UInt8] {
    var bytes: [UInt8] = [1, UInt8(level), 0, 0]
    bytes.append(littleEndian: UInt64(bitPattern: plaintextSize))
    bytes += header.iv
    bytes += hmac
    for tag in tags { bytes.append(tag) }
    return bytes
      + (try Self.mac(Array("index".utf8) + header.bytes + bytes, keys))[..<Self.macByteCount]
  }

  /// Gives a blob its index, and what else the disk holds of its leaves' tags; false where it has no
  /// room, no xattrs or no right to write: the index is only an accelerator.
  @discardableResult
  static func store(
    _ leafTags: [GMAC.Tag], plaintextSize: Int64, keys: VaultKeys, header: Header, hmac: [UInt8],
    on file: CInt
  ) throws(StorageError) -> Bool {
    let index = try ChunkIndex(
      plaintextSize: plaintextSize, leafTags: leafTags, keys: keys, header: header)
    let bytes = try index.encoded(keys: keys, header: header, hmac: hmac)
    do throws(Errno) { try BlobAttribute.set(attribute, bytes, on: file) } catch { return false }
    StoredLeafTags.store(leafTags, on: file)
    return true
  }

  /// nil when `bytes` are not the index of the blob with this header, HMAC and ciphertext size.
  package static func decode(
    _ bytes: [UInt8], keys: VaultKeys, header: Header, hmac: [UInt8], ciphertextSize: Int64
  ) throws(StorageError) -> ChunkIndex? {
    guard bytes.count >= fixedByteCount + macByteCount, bytes[0] == 1,
      (bytes.count - fixedByteCount - macByteCount) % 16 == 0
    else { return nil }
    let body = bytes[..<(bytes.count - macByteCount)]
    let expected = try mac(Array("index".utf8) + header.bytes + body, keys)
    guard constantTimeEqual(Array(expected[..<macByteCount]), Array(bytes.suffix(macByteCount)))
    else { return nil }
    let size = Int64(bitPattern: body.littleEndian(at: 4))
    let level = Int(body[1])
    guard Array(body[12..<28]) == header.iv, Array(body[28..<60]) == hmac, size >= 0,
      Format.ciphertextSize(plaintextSize: size) == ciphertextSize
    else { return nil }
    let leafCount = ChunkLayout.leafCount(ciphertextSize: ciphertextSize)
    guard level == ChunkLayout.level(leafCount: leafCount) else { return nil }
    let tagCount = (body.count - fixedByteCount) / 16
    guard tagCount == (leafCount + (1 << level) - 1) >> level else { return nil }
    let tags = (0..<tagCount).map { number in
      GMAC.Tag(body[(fixedByteCount + 16 * number)...])
    }
    return ChunkIndex(plaintextSize: size, level: level, tags: tags)
  }

  /// Whether `bytes` were made as the index of some blob of this vault, with this header's salts or
  /// the vault's own. Which blob, only the IV and the HMAC in them say: no index knows a name.
  static func isGenuine(
    _ bytes: [UInt8], keys: VaultKeys, like header: Header
  ) throws(StorageError) -> Bool {
    guard bytes.count >= fixedByteCount + macByteCount, bytes[0] == 1 else { return false }
    let body = bytes[..<(bytes.count - macByteCount)]
    let iv = Array(body[12..<28])
    for known in [
      Header(mode: .password(keys.salts), iv: iv),
      Header(version: header.version, mode: header.mode, iv: iv),
    ] {
      let expected = try mac(Array("index".utf8) + known.bytes + body, keys)
      if constantTimeEqual(Array(expected[..<macByteCount]), Array(bytes.suffix(macByteCount))) {
        return true
      }
    }
    return false
  }

  private static func mac(_ input: [UInt8], _ keys: VaultKeys) throws(StorageError) -> [UInt8] {
    do throws(CryptoFailure) {
      return try keys.chunks.withUnsafeBytes { key throws(CryptoFailure) in
        try input.withBytes { input throws(CryptoFailure) in
          try HMACSHA256.authenticate(input, key: key)
        }
      }
    } catch { throw .crypto(error) }
  }
}

extension [UInt8] {
  fileprivate mutating func append(littleEndian number: UInt64) {
    for shift in 0..<8 { append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(shift)))) }
  }
}

extension ArraySlice<UInt8> {
  fileprivate func littleEndian(at offset: Int) -> UInt64 {
    (0..<8).reduce(0) { $0 | UInt64(self[startIndex + offset + $1]) << (8 * UInt64($1)) }
  }
}
