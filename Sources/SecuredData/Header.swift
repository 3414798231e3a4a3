/// What stands before the ciphertext.
public struct Header: Hashable, Sendable {
  public enum Mode: Hashable, Sendable {
    case password(Salts)
    case keys
  }

  public let version: UInt8
  public let mode: Mode
  /// 16 bytes.
  public let iv: [UInt8]

  public init(version: UInt8 = Format.currentVersion, mode: Mode, iv: [UInt8]) {
    precondition(iv.count == Format.ivByteCount)
    self.version = version
    self.mode = mode
    self.iv = iv
  }

  public var byteCount: Int {
    switch mode {
    case .password: Format.passwordHeaderByteCount
    case .keys: Format.keyHeaderByteCount
    }
  }

  public var bytes: [UInt8] {
    switch mode {
    case .password(let salts):
      [version, 1] + salts.encryptionSalt + salts.hmacSalt + iv
    case .keys:
      [version, 0] + iv
    }
  }

  /// Reads a header from a message's first bytes (34, or all of a shorter message).
  /// `messageSize` is that of the whole message: a size that no message has is refused here.
  public static func parse(
    _ start: UnsafeRawBufferPointer, messageSize: Int64
  ) throws(SecuredDataError) -> Header {
    let isMessage = start.count >= 2 && (1...3).contains(start[0]) && start[1] <= 1
    if !isMessage, let foreign = ForeignData.recognise(start) { throw foreign }
    guard start.count >= 2, messageSize >= Int64(Format.leastByteCount) else {
      throw .wrongSize(messageSize)
    }
    let version = start[0]
    let options = start[1]
    guard (1...3).contains(version) else { throw .unknownVersion(version) }
    guard options <= 1 else { throw .unknownOptions(options) }
    let headerByteCount =
      options == 1 ? Format.passwordHeaderByteCount : Format.keyHeaderByteCount
    let ciphertextSize = messageSize - Int64(headerByteCount + Format.hmacByteCount)
    guard ciphertextSize >= Int64(Format.blockByteCount),
      ciphertextSize % Int64(Format.blockByteCount) == 0, start.count >= headerByteCount
    else { throw .wrongSize(messageSize) }
    if options == 0 { return Header(version: version, mode: .keys, iv: Array(start[2..<18])) }
    let salts = Salts(
      encryptionSalt: Array(start[2..<10]), hmacSalt: Array(start[10..<18]))
    return Header(version: version, mode: .password(salts), iv: Array(start[18..<34]))
  }
}
