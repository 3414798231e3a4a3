import Platform

/// MACs of pieces under a random key that lives as long as this does.
final class PieceAuthenticator {
  private let gmac: GMAC
  private var tags: [GMAC.Tag] = []

  init() throws(CryptoFailure) {
    var key = [UInt8](repeating: 0, count: 32)
    gmac = try key.withMutableRawBytes { key throws(CryptoFailure) in
      defer { SecretBytes.wipe(key) }
      try Random.fill(key)
      return try GMAC(key: UnsafeRawBufferPointer(key))
    }
  }

  func remember(_ bytes: UnsafeRawBufferPointer, piece: Int) throws(CryptoFailure) {
    precondition(piece == tags.count)
    tags.append(try tag(bytes, piece: piece))
  }

  func knows(_ bytes: UnsafeRawBufferPointer, piece: Int) throws(CryptoFailure) -> Bool {
    try tag(bytes, piece: piece).matches(tags[piece])
  }

  private func tag(
    _ bytes: UnsafeRawBufferPointer, piece: Int
  ) throws(CryptoFailure) -> GMAC.Tag {
    try gmac.start(nonce: UInt64(piece))
    try gmac.update(bytes)
    return try gmac.finish()
  }
}

/// Memory for one piece, wiped when it goes away: it has held plaintext.
final class PieceBuffer {
  private let bytes: UnsafeMutableRawBufferPointer

  init(byteCount: Int) {
    bytes = .allocate(byteCount: byteCount, alignment: Format.blockByteCount)
  }

  deinit {
    SecretBytes.wipe(bytes)
    bytes.deallocate()
  }

  func prefix(_ count: Int) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
  }
}
