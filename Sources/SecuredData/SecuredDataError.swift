/// Why a message can't be opened. What is not RNCryptor says what it is instead.
public enum SecuredDataError: Error, Hashable, Sendable {
  /// Fewer bytes than the least message, or not a whole number of blocks.
  case wrongSize(Int64)
  /// The v4 draft (`RNC\4`), which was never finished.
  case version4Draft
  /// A message in base64 text: decode it first.
  case base64Text
  /// A picture or film that was never encrypted; its kind, such as "JPEG".
  case plainPicture(String)
  case unknownVersion(UInt8)
  /// Bits that the version doesn't define.
  case unknownOptions(UInt8)
  /// The message needs a password and keys were given, or the other way round.
  case wrongMode
  /// A wrong password or altered bytes: v3 can't tell which. Padding errors are this one, too.
  case notAuthenticated
  case crypto(CryptoFailure)
  case outOfMemory
}

extension SecuredDataError: CustomStringConvertible {
  /// For whoever reads the log: what it is, never a byte of the message.
  public var description: String {
    switch self {
    case .wrongSize(let size): "\(size) bytes: no encrypted message has this size"
    case .version4Draft: "a message of the RNCryptor v4 draft, which was never finished"
    case .base64Text: "a message in base64 text, not decoded"
    case .plainPicture(let kind): "a picture that was never encrypted (\(kind))"
    case .unknownVersion(let version): "not an RNCryptor message of version 1 to 3 (\(version))"
    case .unknownOptions(let options): "unknown options in the header (\(options))"
    case .wrongMode: "made with keys where a password was given, or the other way round"
    case .notAuthenticated: "wrong password or damaged"
    case .crypto(let failure): failure.description
    case .outOfMemory: "out of memory"
    }
  }
}
