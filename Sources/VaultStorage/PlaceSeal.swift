import Glibc
package import Platform
import SecuredData

/// Says where a stored photo belongs: the xattr `user.photovault.place` of a blob.
///
/// It is the first 16 bytes of HMAC-SHA256, under the vault's chunk key, over "place", the blob's
/// header, the id of its directory and its name. Who has no key can put a good blob under another
/// name, into another folder or in another one's place, but can't seal it there, and `check` tells.
/// With plain names directories have no id, so the seal knows the name only.
///
/// Photos open without a seal and with a wrong one. A file of several names has none, nor has one
/// that came without its attributes.
struct PlaceSeal: Equatable {
  static let attribute = FileName("user.photovault.place")
  private static let byteCount = 16

  enum Standing: Sendable {
    case right
    case missing
    case wrong
  }

  private let bytes: [UInt8]

  init(
    _ header: Header, of name: FileName, in directory: VaultDirectory
  ) throws(StorageError) {
    let input = Array("place".utf8) + header.bytes + directory.id.bytes + name.bytes
    let mac = try StorageError.inCrypto { () throws(CryptoFailure) in
      try directory.context.keys.chunks.withUnsafeBytes { key throws(CryptoFailure) in
        try input.withBytes { input throws(CryptoFailure) in
          try HMACSHA256.authenticate(input, key: key)
        }
      }
    }
    bytes = Array(mac.prefix(Self.byteCount))
  }

  /// Where the disk holds no attributes the photo stays without one.
  func put(on file: CInt) { try? BlobAttribute.set(Self.attribute, self.bytes, on: file) }

  func standing(on file: CInt) throws(StorageError) -> Standing {
    guard let known = try BlobInspection.attribute(Self.attribute, of: file) else {
      return .missing
    }
    return matches(known) ? .right : .wrong
  }

  fileprivate func matches(_ known: [UInt8]) -> Bool { constantTimeEqual(known, bytes) }
}

/// The seal of a photo between two places: taken off before it moves and put on again after, so
/// that one that is cut short leaves no wrong seal.
package struct LiftedSeal: ~Copyable {
  private let file: FileDescriptor
  private let header: Header

  /// nil for a photo without a seal, and for one whose seal is wrong: that stays, to be told.
  package init?(
    of stored: StoredName, named name: FileName, in directory: VaultDirectory
  ) throws(StorageError) {
    let file: FileDescriptor
    do throws(Errno) { file = try BlobSize.open(stored.entry, in: directory.fd.rawValue) } catch {
      // Of a photo that not even its owner may read.
      if error == .permissionDenied { return nil }
      throw .system(error)
    }
    let number = file.rawValue
    guard let known = try BlobInspection.attribute(PlaceSeal.attribute, of: number) else {
      return nil
    }
    let header: Header
    do throws(StorageError) { header = try Blob.header(of: number).header } catch {
      if case .blob = error { return nil }
      throw error
    }
    guard try PlaceSeal(header, of: name, in: directory).matches(known) else { return nil }
    try StorageError.onDisk { () throws(Errno) in
      try BlobAttribute.remove(PlaceSeal.attribute, from: number)
    }
    self.file = file
    self.header = header
  }

  package func put(named name: FileName, in directory: VaultDirectory) {
    (try? PlaceSeal(header, of: name, in: directory))?.put(on: file.rawValue)
  }
}
