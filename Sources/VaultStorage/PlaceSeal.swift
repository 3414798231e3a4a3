import Glibc
package import Platform
import SecuredData

/// Says where a stored photo belongs: the xattr `user.photovault.place` of a blob.
///
/// Its first 16 bytes are those of HMAC-SHA256, under the vault's chunk key, over "place", the blob's
/// header, the id of its directory and its name. Who has no key can put a good blob under another
/// name, into another folder or in another one's place, but can't seal it there, and `check` tells.
/// With plain names directories have no id, so the seal knows the name only.
///
/// Behind them is the size of the plaintext, little-endian, for listings: it is where the disk keeps
/// the status, and the padding, which tells it too, is at the end of the file. Like that one it is
/// no more than a hint.
///
/// Photos open without a seal and with a wrong one. A file of several names has none, nor has one
/// that came without its attributes.
struct PlaceSeal: Equatable {
  static let attribute = FileName("user.photovault.place")
  private static let macByteCount = 16
  private static let byteCount = macByteCount + 8

  enum Standing: Sendable {
    case right
    /// It isn't there or tells no size.
    case missing
    case wrong
  }

  private let bytes: [UInt8]

  /// `size`: nil if it isn't known.
  init(
    _ header: Header, size: Int64?, of name: FileName, in directory: VaultDirectory
  ) throws(StorageError) {
    let input = Array("place".utf8) + header.bytes + directory.id.bytes + name.bytes
    let mac = try StorageError.inCrypto { () throws(CryptoFailure) in
      try directory.context.keys.chunks.withUnsafeBytes { key throws(CryptoFailure) in
        try input.withBytes { input throws(CryptoFailure) in
          try HMACSHA256.authenticate(input, key: key)
        }
      }
    }
    let told = size.map { withUnsafeBytes(of: $0.littleEndian, Array.init) } ?? []
    bytes = mac.prefix(Self.macByteCount) + told
  }

  /// What the seal of a stored file says of its plaintext's size, if that fits its own size.
  static func plaintextSize(
    of stored: FileName, in directory: CInt, storedSize: Int64
  ) -> Int64? {
    withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 8) { buffer in
      let count = try? Syscalls.extendedAttribute(
        of: stored, in: directory, attribute, into: buffer)
      return plaintextSize(
        in: UnsafeRawBufferPointer(rebasing: buffer[..<(count ?? 0)]), storedSize: storedSize)
    }
  }

  fileprivate static func plaintextSize(
    in seal: UnsafeRawBufferPointer, storedSize: Int64
  ) -> Int64? {
    guard seal.count == byteCount else { return nil }
    let size = Int64(
      littleEndian: seal.loadUnaligned(fromByteOffset: macByteCount, as: Int64.self))
    return Format.fits(plaintextSize: size, messageSize: storedSize) ? size : nil
  }

  /// Where the disk holds no attributes the photo stays without one.
  func put(on file: CInt) { try? BlobAttribute.set(Self.attribute, self.bytes, on: file) }

  func standing(on file: CInt) throws(StorageError) -> Standing {
    guard let known = try BlobInspection.attribute(Self.attribute, of: file) else {
      return .missing
    }
    if known == bytes { return .right }
    return matches(known) ? .missing : .wrong
  }

  /// Whether `known` belongs to this place, whatever size it tells.
  fileprivate func matches(_ known: [UInt8]) -> Bool {
    constantTimeEqual(Array(known.prefix(Self.macByteCount)), Array(bytes.prefix(Self.macByteCount)))
  }
}

/// The seal of a photo between two places: taken off before it moves and put on again after, so
/// that one that is cut short leaves no wrong seal.
package struct LiftedSeal: ~Copyable {
  private let file: FileDescriptor
  private let header: Header
  private let size: Int64?

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
    let storedSize = try StorageError.onDisk { () throws(Errno) in
      Int64(try Syscalls.status(number).st_size)
    }
    let size = known.withUnsafeBytes {
      PlaceSeal.plaintextSize(in: $0, storedSize: storedSize)
    }
    guard try PlaceSeal(header, size: size, of: name, in: directory).matches(known) else {
      return nil
    }
    try StorageError.onDisk { () throws(Errno) in
      try BlobAttribute.remove(PlaceSeal.attribute, from: number)
    }
    self.file = file
    self.header = header
    self.size = size
  }

  package func put(named name: FileName, in directory: VaultDirectory) {
    (try? PlaceSeal(header, size: size, of: name, in: directory))?.put(on: file.rawValue)
  }
}
