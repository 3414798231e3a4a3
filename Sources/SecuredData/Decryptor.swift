/// Opens messages of version 1 to 3 and releases nothing that isn't verified.
public enum Decryptor {
  /// Decrypts `messageSize` bytes that `read` gives, in two passes and constant memory: the first
  /// verifies the HMAC and the padding, the second decrypts. No byte reaches `sink` unless the
  /// whole message is what its writer made; a source that changes between the passes ends in
  /// `.notAuthenticated` before a changed byte is released.
  ///
  /// - Parameters:
  ///   - failure: makes the caller's kind of error of ours.
  ///   - keys: those of the header's salts and version, or `.wrongMode` in the caller's kind.
  ///   - read: fills the buffer from an offset; returns how many bytes, 0 at the end.
  ///   - sink: takes the plaintext piece by piece; the bytes are wiped when it returns.
  public static func decrypt<Failure: Error>(
    messageSize: Int64,
    failure: (SecuredDataError) -> Failure,
    keys: (Header) throws(Failure) -> MessageKeys,
    read: (Int64, UnsafeMutableRawBufferPointer) throws(Failure) -> Int,
    sink: (UnsafeRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    func wrapping<Result>(
      _ body: () throws(SecuredDataError) -> Result
    ) throws(Failure) -> Result {
      do throws(SecuredDataError) { return try body() } catch { throw failure(error) }
    }
    /// Fills the buffer or fails: the message was longer when its size was asked.
    func fill(_ buffer: UnsafeMutableRawBufferPointer, from offset: Int64) throws(Failure) {
      var done = 0
      while done < buffer.count {
        let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[done...])
        let count = try read(offset + Int64(done), rest)
        guard count > 0 else { throw failure(.notAuthenticated) }
        done += count
      }
    }

    var start = [UInt8](
      repeating: 0, count: Int(min(Int64(Format.passwordHeaderByteCount), max(0, messageSize))))
    try start.withMutableRawBytes { start throws(Failure) in try fill(start, from: 0) }
    let header = try wrapping { () throws(SecuredDataError) in
      try start.withRawBytes { start throws(SecuredDataError) in
        try Header.parse(start, messageSize: messageSize)
      }
    }
    let messageKeys = try keys(header)
    let verifier = try wrapping { () throws(SecuredDataError) in
      try MessageVerifier(header: header, messageSize: messageSize, keys: messageKeys)
    }
    let buffer = PieceBuffer(byteCount: verifier.pieceByteCount)

    for piece in 0..<verifier.pieceCount {
      let range = verifier.range(ofPiece: piece)
      let bytes = buffer.prefix(range.count)
      try fill(bytes, from: range.lowerBound)
      try wrapping { () throws(SecuredDataError) in
        try verifier.inspect(UnsafeRawBufferPointer(bytes), piece: piece)
      }
    }
    var hmac = [UInt8](repeating: 0, count: Format.hmacByteCount)
    try hmac.withMutableRawBytes { hmac throws(Failure) in
      try fill(hmac, from: messageSize - Int64(Format.hmacByteCount))
    }
    let opener = try wrapping { () throws(SecuredDataError) in try verifier.verify(hmac) }

    for piece in 0..<verifier.pieceCount {
      let range = verifier.range(ofPiece: piece)
      let bytes = buffer.prefix(range.count)
      // A message of one piece is still here as it was verified.
      if verifier.pieceCount > 1 { try fill(bytes, from: range.lowerBound) }
      let count = try wrapping { () throws(SecuredDataError) in
        try opener.open(bytes, piece: piece)
      }
      if count > 0 { try sink(UnsafeRawBufferPointer(rebasing: bytes[..<count])) }
    }
  }

  /// As above, for closures that fail in no other way than a message does.
  public static func decrypt(
    messageSize: Int64,
    keys: (Header) throws(SecuredDataError) -> MessageKeys,
    read: (Int64, UnsafeMutableRawBufferPointer) throws(SecuredDataError) -> Int,
    sink: (UnsafeRawBufferPointer) throws(SecuredDataError) -> Void
  ) throws(SecuredDataError) {
    try decrypt(
      messageSize: messageSize, failure: { $0 }, keys: keys, read: read, sink: sink)
  }
}
