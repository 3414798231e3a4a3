import Glibc
import Platform
import SecuredData

/// What a look at one stored file, all of it, has found.
struct BlobInspection: Sendable {
  /// nil for a good blob.
  var damage: (kind: VaultFinding.Kind, reason: String)?
  var index = Index.good
  /// Of a good blob.
  var header: Header?
  var plaintextSize: Int64 = 0
  var seal = PlaceSeal.Standing.right
  /// Stored names of attributes that can't be decoded.
  var attributes: [FileName] = []

  enum Index: Sendable {
    case good
    case missing
    case wrong(VaultFinding.Kind, String)
  }

  var isClean: Bool {
    if case .wrong = index { return false }
    if case .wrong = seal { return false }
    return damage == nil && attributes.isEmpty
  }

  /// Reads all of an open file. What `pieceRead` throws is thrown on; all else is a result.
  init(
    of descriptor: CInt, keys: VaultKeys,
    pieceRead: (Int) throws(StorageError) -> Void
  ) throws(StorageError) {
    do throws(StorageError) {
      let known = try Self.attribute(ChunkIndex.attribute, of: descriptor)
      let blob = try Whole(descriptor, keys, withTags: known != nil, pieceRead)
      index = try Self.compare(known, with: blob, descriptor, keys)
      header = blob.header
      plaintextSize = blob.plaintextSize
    } catch {
      switch error {
      case .blob(let reason): damage = (.blob, Self.sentence(reason))
      case .system(let reason) where reason != .interrupted:
        damage = (.unreadable, "\(reason)".lowercasedFirst)
      default: throw error
      }
    }
    attributes = try Self.damagedAttributes(of: descriptor, keys)
  }

  /// A blob that was verified, and the index that it should have.
  struct Whole {
    let header: Header
    let leafTags: [GMAC.Tag]
    /// nil where one leaf is all there is.
    let index: [UInt8]?
    let needsIndex: Bool
    var plaintextSize: Int64 { pass.plaintextSize }
    private let pass: BlobPass
    private let keys: VaultKeys

    init(
      _ descriptor: CInt, _ keys: VaultKeys, withTags: Bool,
      _ pieceRead: (Int) throws(StorageError) -> Void
    ) throws(StorageError) {
      let ciphertextSize: Int64
      (header, ciphertextSize) = try Blob.header(of: descriptor)
      needsIndex = ciphertextSize > Int64(ChunkLayout.leafByteCount)
      pass = try BlobPass(
        of: descriptor, header: header, ciphertextSize: ciphertextSize,
        messageKeys: try keys.keys(for: header), keys: keys, withTags: withTags && needsIndex,
        pieceRead: pieceRead)
      leafTags = pass.leafTags
      self.keys = keys
      index =
        leafTags.count > 1
        ? try ChunkIndex(
          plaintextSize: pass.plaintextSize, leafTags: leafTags, keys: keys, header: header
        ).encoded(keys: keys, header: header, hmac: pass.hmac) : nil
    }

    /// False where the disk refuses.
    func storeIndex(on file: CInt) throws(StorageError) -> Bool {
      try StorageError.onDisk { () throws(Errno) in
        try BlobAttribute.remove(ChunkIndex.attribute, from: file)
        try StoredLeafTags.remove(from: file)
      }
      if index == nil { return true }
      return try ChunkIndex.store(
        leafTags, plaintextSize: pass.plaintextSize, keys: keys, header: header, hmac: pass.hmac,
        on: file)
    }
  }

  private static func compare(
    _ known: [UInt8]?, with blob: Whole, _ descriptor: CInt, _ keys: VaultKeys
  ) throws(StorageError) -> Index {
    guard let known else { return blob.needsIndex ? .missing : .good }
    if known == blob.index, StoredLeafTags.agree(with: blob.leafTags, on: descriptor) {
      return .good
    }
    if known != blob.index, try ChunkIndex.isGenuine(known, keys: keys, like: blob.header) {
      return .wrong(
        .replaced,
        "a good photo in the place of another photo or version, put there by another program")
    }
    return .wrong(.index, "its chunk index was altered; the photo itself is good")
  }

  static func attribute(
    _ name: FileName, of descriptor: CInt
  ) throws(StorageError) -> [UInt8]? {
    do throws(Errno) { return try Syscalls.extendedAttribute(descriptor, name) } catch {
      if error == .noAttribute || error == .notSupported { return nil }
      throw .system(error)
    }
  }

  /// Also of a directory. What the disk doesn't tell counts as undamaged: it is read again when
  /// a program asks for it.
  static func damagedAttributes(
    of descriptor: CInt, _ keys: VaultKeys
  ) throws(StorageError) -> [FileName] {
    guard let names = try? Syscalls.extendedAttributeNames(descriptor) else { return [] }
    let codec = ExtendedAttributes(keys: keys)
    var damaged: [FileName] = []
    for stored in names where ExtendedAttributes.isOurs(stored: stored) {
      guard let value = try? attribute(stored, of: descriptor) else { continue }
      guard let name = try codec.name(stored: stored) else {
        damaged.append(stored)
        continue
      }
      do throws(StorageError) { _ = try codec.decode(stored: value, name: name) } catch {
        guard case .damagedMetadata = error else { throw error }
        damaged.append(stored)
      }
    }
    return damaged
  }

  private static func sentence(_ error: SecuredDataError) -> String {
    switch error {
    case .notAuthenticated: "its bytes are not those that were written"
    case .wrongMode: "it was made with keys, not with the vault's password"
    default: error.description
    }
  }
}

extension String {
  var lowercasedFirst: String { prefix(1).lowercased() + dropFirst() }
}

extension Blob {
  /// Of a stored file, and how much ciphertext is behind it. Throws what no message's is.
  static func header(
    of descriptor: CInt
  ) throws(StorageError) -> (header: Header, ciphertextSize: Int64) {
    var start = [UInt8](repeating: 0, count: Format.passwordHeaderByteCount)
    let (size, count) = try StorageError.onDisk { () throws(Errno) in
      let size = Int64(try Syscalls.status(descriptor).st_size)
      let count = try start.withMutableBytes { buffer throws(Errno) in
        try Syscalls.read(descriptor, into: buffer, at: 0)
      }
      return (size, count)
    }
    do throws(SecuredDataError) {
      let header = try start.withBytes { bytes throws(SecuredDataError) in
        try Header.parse(UnsafeRawBufferPointer(rebasing: bytes[..<count]), messageSize: size)
      }
      return (header, size - Int64(header.byteCount + Format.hmacByteCount))
    } catch { throw .blob(error) }
  }
}
