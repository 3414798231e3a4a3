import Platform
import SecuredData

/// What the names in one directory are bound to: the 16 random bytes of its `directory.id`.
package struct DirectoryID: Hashable, Sendable {
  package static let byteCount = 16
  /// Where a vault keeps names plain, directories have no id of their own.
  package static let plain = DirectoryID([UInt8](repeating: 0, count: byteCount))
  static let fileName = FileName("directory.id")

  package let bytes: [UInt8]

  init(_ bytes: [UInt8]) {
    precondition(bytes.count == Self.byteCount)
    self.bytes = bytes
  }

  static func random() throws(StorageError) -> DirectoryID {
    DirectoryID(
      try StorageError.inCrypto { () throws(CryptoFailure) in try Random.bytes(byteCount) })
  }

  /// nil when the file is missing or has another size.
  static func read(in directory: CInt) throws(Errno) -> DirectoryID? {
    guard let bytes = try SmallFile.read(fileName, in: directory, atMost: byteCount),
      bytes.count == byteCount
    else { return nil }
    return DirectoryID(bytes)
  }
}
