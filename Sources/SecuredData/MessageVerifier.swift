import Platform

/// The first pass over a message: its HMAC, and a MAC of each piece so that the second pass knows
/// the bytes again. Not for two threads at once.
final class MessageVerifier {
  let pieceByteCount: Int
  let pieceCount: Int

  private let header: Header
  private let ciphertext: Range<Int64>
  private let keys: MessageKeys
  private let authenticator: HMACSHA256
  /// nil for a message of one piece, which isn't read twice.
  private let pieces: PieceAuthenticator?
  /// The last two blocks seen, which tell the padding; at first the IV.
  private var tail: [UInt8]

  /// `header` was parsed with the same `messageSize`.
  init(header: Header, messageSize: Int64, keys: MessageKeys) throws(SecuredDataError) {
    self.header = header
    self.keys = keys
    ciphertext = Int64(header.byteCount)..<(messageSize - Int64(Format.hmacByteCount))
    pieceByteCount = Self.pieceByteCount(ciphertextSize: Int64(ciphertext.count))
    let pieceCount = (ciphertext.count + pieceByteCount - 1) / pieceByteCount
    self.pieceCount = pieceCount
    tail = [UInt8](repeating: 0, count: Format.blockByteCount) + header.iv
    let (authenticator, pieces) = try SecuredDataError.wrapping { () throws(CryptoFailure) in
      let authenticator = try keys.withHMACKey { key throws(CryptoFailure) in
        try HMACSHA256(key: key)
      }
      // v1's HMAC leaves the header out, which is why there is a v2.
      if header.version > 1 {
        try header.bytes.withRawBytes { bytes throws(CryptoFailure) in
          try authenticator.update(bytes)
        }
      }
      return (authenticator, pieceCount > 1 ? try PieceAuthenticator() : nil)
    }
    self.authenticator = authenticator
    self.pieces = pieces
  }

  /// Where a piece is in the message.
  func range(ofPiece piece: Int) -> Range<Int64> {
    let start = ciphertext.lowerBound + Int64(piece) * Int64(pieceByteCount)
    return start..<min(start + Int64(pieceByteCount), ciphertext.upperBound)
  }

  /// Takes the pieces in their order.
  func inspect(_ bytes: UnsafeRawBufferPointer, piece: Int) throws(SecuredDataError) {
    try SecuredDataError.wrapping { () throws(CryptoFailure) in
      try authenticator.update(bytes)
      try pieces?.remember(bytes, piece: piece)
    }
    let end = min(bytes.count, tail.count)
    tail.removeFirst(end)
    tail += UnsafeRawBufferPointer(rebasing: bytes[(bytes.count - end)...])
  }

  /// What opens the pieces, if the message is whole. Bad padding is `.notAuthenticated`, too.
  func verify(_ hmac: [UInt8]) throws(SecuredDataError) -> PieceOpener {
    let isAuthentic = try SecuredDataError.wrapping { () throws(CryptoFailure) in
      constantTimeEqual(try authenticator.finish(), hmac)
    }
    guard isAuthentic else { throw .notAuthenticated }
    guard let paddingByteCount = try paddingByteCount() else { throw .notAuthenticated }
    let cipher = try decryptor(iv: header.iv)
    return PieceOpener(
      cipher: cipher, pieces: pieces, lastPiece: pieceCount - 1,
      paddingByteCount: paddingByteCount)
  }

  private func paddingByteCount() throws(SecuredDataError) -> Int? {
    let cipher = try decryptor(iv: Array(tail.prefix(Format.blockByteCount)))
    return try SecuredDataError.wrapping { () throws(CryptoFailure) in
      try tail.withMutableRawBytes { tail throws(CryptoFailure) in
        let last = UnsafeMutableRawBufferPointer(rebasing: tail.suffix(Format.blockByteCount))
        defer { SecretBytes.wipe(last) }
        try cipher.update(UnsafeRawBufferPointer(last), into: last)
        return Padding.byteCount(inLastBlock: UnsafeRawBufferPointer(last))
      }
    }
  }

  private func decryptor(iv: [UInt8]) throws(SecuredDataError) -> CBC {
    try SecuredDataError.wrapping { () throws(CryptoFailure) in
      try keys.withEncryptionKey { key throws(CryptoFailure) in
        try iv.withRawBytes { iv throws(CryptoFailure) in try CBC(.decrypt, key: key, iv: iv) }
      }
    }
  }

  /// Pieces grow with the square root of the message, so that a piece and the MACs of all pieces
  /// need about as much memory: 64 KiB each for 256 MB, 4 MiB each for a terabyte.
  private static func pieceByteCount(ciphertextSize: Int64) -> Int {
    let least = 64 << 10
    let most = 16 << 20
    var size = least
    while size < most, Int64(size) * Int64(size) / 16 < ciphertextSize { size *= 2 }
    return size
  }
}
