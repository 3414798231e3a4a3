/// The second pass: knows the verified pieces again and decrypts them in place.
final class PieceOpener {
  private let cipher: CBC
  private let pieces: PieceAuthenticator?
  private let lastPiece: Int
  private let paddingByteCount: Int

  init(cipher: CBC, pieces: PieceAuthenticator?, lastPiece: Int, paddingByteCount: Int) {
    self.cipher = cipher
    self.pieces = pieces
    self.lastPiece = lastPiece
    self.paddingByteCount = paddingByteCount
  }

  /// Takes the pieces in their order. Returns how many of the bytes are plaintext to release.
  func open(_ bytes: UnsafeMutableRawBufferPointer, piece: Int) throws(SecuredDataError) -> Int {
    let isKnown = try SecuredDataError.wrapping { () throws(CryptoFailure) in
      guard try pieces?.knows(UnsafeRawBufferPointer(bytes), piece: piece) ?? true else {
        return false
      }
      try cipher.update(UnsafeRawBufferPointer(bytes), into: bytes)
      return true
    }
    guard isKnown else { throw .notAuthenticated }
    return piece == lastPiece ? bytes.count - paddingByteCount : bytes.count
  }
}
