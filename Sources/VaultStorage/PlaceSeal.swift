package import Glibc
package import Platform
import SecuredData

/// Says where a stored photo belongs: the xattr `user.photovault.place` of a blob.
///
/// Its first 16 bytes are those of HMAC-SHA256, under the vault's chunk key, over "place", the blob's
/// header, the id of its directory and its name. Who has no key can put a good blob under another
/// name, into another folder or in another one's place, but can't seal it there, and `check` tells.
/// With plain names directories have no id, so the seal knows the name only.
///
/// Behind them are the size of the plaintext and the time of its last change, for listings: they are
/// where the disk keeps the status, and the padding, which tells the size too, is at the end of the
/// file. Like that one the size is no more than a hint, and none where the time is another one: then
/// a program wrote another version into the file.
///
/// Photos open without a seal and with a wrong one. A file of several names has none, nor has one
/// that came without its attributes.
package struct PlaceSeal {
  static let attribute = FileName("user.photovault.place")
  private static let macByteCount = 16
  private static let byteCount = macByteCount + Told.byteCount

  /// Of the version that was sealed: 16 bytes, little-endian.
  struct Told: Equatable {
    static let byteCount = 16

    let size: Int64
    /// In nanoseconds since 1970.
    let modified: Int64

    init(size: Int64, _ status: stat) {
      self.size = size
      modified = Self.nanoseconds(status.st_mtim)
    }

    /// nil if it isn't that of the file with this status.
    fileprivate init?(in seal: UnsafeRawBufferPointer, of status: stat) {
      guard seal.count == PlaceSeal.byteCount else { return nil }
      func number(_ index: Int) -> Int64 {
        Int64(littleEndian: seal.loadUnaligned(fromByteOffset: index, as: Int64.self))
      }
      size = number(PlaceSeal.macByteCount)
      modified = number(PlaceSeal.macByteCount + 8)
      guard modified == Self.nanoseconds(status.st_mtim),
        Format.fits(plaintextSize: size, messageSize: Int64(status.st_size))
      else { return nil }
    }

    fileprivate var bytes: [UInt8] {
      [size, modified].flatMap { withUnsafeBytes(of: $0.littleEndian, Array.init) }
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
      Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
  }

  enum Standing: Sendable {
    case right
    /// It isn't there, or it tells no size or not the right one.
    case missing
    case wrong
  }

  private let bytes: [UInt8]

  /// `told`: nil if it isn't known.
  init(
    _ header: Header, _ told: Told?, of name: FileName, in directory: VaultDirectory
  ) throws(StorageError) {
    let input = Array("place".utf8) + header.bytes + directory.id.bytes + name.bytes
    let mac = try StorageError.inCrypto { () throws(CryptoFailure) in
      try directory.context.keys.chunks.withUnsafeBytes { key throws(CryptoFailure) in
        try input.withBytes { input throws(CryptoFailure) in
          try HMACSHA256.authenticate(input, key: key)
        }
      }
    }
    bytes = mac.prefix(Self.macByteCount) + (told?.bytes ?? [])
  }

  /// What the seal of a stored file says of its plaintext's size.
  static func plaintextSize(
    of stored: FileName, in directory: CInt, _ status: stat
  ) -> Int64? {
    withUnsafeTemporaryAllocation(byteCount: byteCount, alignment: 8) { buffer in
      do throws(Errno) {
        let count = try Syscalls.extendedAttribute(
          of: stored, in: directory, attribute, into: buffer)
        return Told(in: UnsafeRawBufferPointer(rebasing: buffer[..<count]), of: status)?.size
      } catch {
        // ENOSYS, or what a sandbox says of a call that it doesn't know.
        if error == .noAttribute { return nil }
        guard let file = try? BlobSize.open(stored, in: directory),
          let seal = try? Syscalls.extendedAttribute(file.rawValue, attribute)
        else { return nil }
        return seal.withUnsafeBytes { Told(in: $0, of: status)?.size }
      }
    }
  }

  /// Whose time was changed by its owner: the seal goes on telling the size. Where the disk refuses
  /// that, the padding does.
  package static func follow(_ stored: FileName, in directory: CInt, from before: stat) {
    guard before.st_nlink == 1, let file = try? BlobSize.open(stored, in: directory),
      var seal = try? Syscalls.extendedAttribute(file.rawValue, attribute),
      let old = seal.withUnsafeBytes({ Told(in: $0, of: before) }),
      let after = try? Syscalls.status(file.rawValue)
    else { return }
    let new = Told(size: old.size, after)
    guard new != old else { return }
    seal.replaceSubrange(macByteCount..., with: new.bytes)
    try? BlobAttribute.set(attribute, seal, on: file.rawValue)
  }

  /// Where the disk holds no attributes the photo stays without one.
  func put(on file: CInt) { try? BlobAttribute.set(Self.attribute, self.bytes, on: file) }

  /// The time doesn't count: it is changed by many, and costs nothing but the padding's reading.
  func standing(on file: CInt) throws(StorageError) -> Standing {
    guard let known = try BlobInspection.attribute(Self.attribute, of: file) else {
      return .missing
    }
    guard matches(known) else { return .wrong }
    let sized = Self.macByteCount..<(Self.macByteCount + 8)
    let isSame =
      known.count == Self.byteCount && bytes.count == Self.byteCount
      && known[sized] == bytes[sized]
    return isSame ? .right : .missing
  }

  /// Whether `known` belongs to this place, whatever it tells.
  fileprivate func matches(_ known: [UInt8]) -> Bool {
    let count = Self.macByteCount
    return constantTimeEqual(Array(known.prefix(count)), Array(bytes.prefix(count)))
  }
}

/// The seal of a photo between two places: taken off before it moves and put on again after, so
/// that one that is cut short leaves no wrong seal.
package struct LiftedSeal: ~Copyable {
  private let file: FileDescriptor
  private let header: Header
  private let told: PlaceSeal.Told?

  /// nil for a photo without a seal, and for one whose seal is wrong: that stays, to be told.
  package init?(
    of stored: StoredName, named name: FileName, in directory: VaultDirectory
  ) throws(StorageError) {
    let file = try StorageError.onDisk { () throws(Errno) in
      do throws(Errno) {
        return try BlobSize.open(stored.entry, in: directory.fd.rawValue)
      } catch {
        guard error == .permissionDenied else { throw error }
        return try OwnerRights.open(stored.entry, in: directory.fd.rawValue)
      }
    }
    let number = file.rawValue
    let known: [UInt8]
    do throws(Errno) {
      known = try OwnerRights.extendedAttribute(number, PlaceSeal.attribute)
    } catch {
      if error == .noAttribute || error == .notSupported { return nil }
      throw .system(error)
    }
    let header: Header
    do throws(StorageError) { header = try Blob.header(of: number).header } catch {
      if case .blob = error { return nil }
      throw error
    }
    let status = try StorageError.onDisk { () throws(Errno) in try Syscalls.status(number) }
    let told = known.withUnsafeBytes { PlaceSeal.Told(in: $0, of: status) }
    guard try PlaceSeal(header, told, of: name, in: directory).matches(known) else { return nil }
    try StorageError.onDisk { () throws(Errno) in
      try BlobAttribute.remove(PlaceSeal.attribute, from: number)
    }
    self.file = file
    self.header = header
    self.told = told
  }

  package func put(named name: FileName, in directory: VaultDirectory) {
    (try? PlaceSeal(header, told, of: name, in: directory))?.put(on: file.rawValue)
  }
}
