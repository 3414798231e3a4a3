import Glibc
package import Platform
import SecuredData
import Synchronization

/// A finished blob that has no name yet, and the file it is in.
package final class WrittenBlob: Sendable {
  package let blob: Blob
  let file: TemporaryFile
  private let state = Atomic<State>(.written)

  private enum State: UInt8, AtomicRepresentable {
    case written
    case onDisk
    /// A disk tells once that it did not take a file: the next fsync(2) says that all is well.
    case refused
  }

  init(blob: Blob, file: TemporaryFile) {
    self.blob = blob
    self.file = file
  }

  /// For owner, mode, times and extended attributes before it is published.
  package var descriptor: CInt { file.descriptor }

  /// Of the plaintext.
  package var size: Int64 { blob.plaintextSizeIfVerified() ?? 0 }

  /// The disk failed to take the blob. It can be read, as far as it verifies, and written anew from
  /// that, but not get a name.
  package var isRefused: Bool { state.load(ordering: .acquiring) == .refused }

  /// On return the blob's bytes are on the disk. Costs nothing the second time.
  package func synchronize() throws(StorageError) {
    switch state.load(ordering: .acquiring) {
    case .onDisk: return
    case .refused: throw .system(.inputOutput)
    case .written: break
    }
    do { try Syscalls.synchronizeData(descriptor) } catch {
      state.store(.refused, ordering: .releasing)
      throw .system(error)
    }
    state.store(.onDisk, ordering: .releasing)
  }

  /// Lets the disk begin with a photo's bytes and waits for nothing. A disk below writes a name
  /// within seconds but may take half a minute for the bytes behind it; after a power cut in
  /// between, a new photo would be there and damaged.
  func startWriteback() { Syscalls.startWriteback(descriptor, 0..<Self.startedByteCount) }

  /// More than this at once would wait for the disk's queue.
  private static let startedByteCount: Int64 = 16 << 20
}

/// The only code that commits: a name holds the whole old blob or the whole new one, whatever
/// happens in between.
package enum AtomicReplace {
  package struct Target: Sendable {
    package let directory: VaultDirectory
    package let stored: StoredName
    /// For the companion of a long name.
    package let name: FileName

    package init(directory: VaultDirectory, stored: StoredName, name: FileName) {
      self.directory = directory
      self.stored = stored
      self.name = name
    }
  }

  /// Puts `blob` under every one of `targets`, the names of one file.
  ///
  /// With `replacing`, the names hold an older version: the new blob is on the disk before the
  /// first rename, and afterwards all names are links of the new one. (On a disk elsewhere it is
  /// there first in any case, for that may have failed to take it.) On failure each name holds what
  /// it held, except that of several hard links the first few may be new already. The directories
  /// are the caller's to synchronize.
  /// Throws `.system(EEXIST)` without `replacing` when a name is taken.
  package static func publish(
    _ written: WrittenBlob, as targets: [Target], replacing: Bool
  ) throws(StorageError) {
    try seal(written, for: targets)
    if replacing || targets.contains(where: { $0.directory.context.isFar }) {
      try written.synchronize()
    } else {
      written.startWriteback()
    }
    for target in targets {
      try target.directory.prepareForEntries()
      try target.directory.prepareCompanion(target.stored, for: target.name)
      guard replacing else {
        try written.file.publish(as: target.stored.entry, in: target.directory)
        continue
      }
      let temporary = try target.directory.temporaryName()
      try written.file.publish(as: temporary, in: target.directory)
      let directory = target.directory.fd.rawValue
      do throws(Errno) {
        try Syscalls.rename(temporary, in: directory, to: target.stored.entry, in: directory)
      } catch {
        try? Syscalls.unlink(temporary, in: directory)
        throw .system(error)
      }
    }
  }

  private static func seal(_ written: WrittenBlob, for targets: [Target]) throws(StorageError) {
    guard let target = targets.first, targets.count == 1 else {
      try? BlobAttribute.remove(PlaceSeal.attribute, from: written.descriptor)
      return
    }
    let status = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.status(written.descriptor)
    }
    try PlaceSeal(
      written.blob.header, PlaceSeal.Told(size: written.size, status), of: target.name,
      in: target.directory
    ).put(on: written.descriptor)
  }

  /// Copies what a replaced file keeps: owner, mode and extended attributes (but the vault's own).
  /// The owner is kept as far as this process may give files away.
  package static func copyAttributes(
    from old: CInt, to new: CInt
  ) throws(StorageError) {
    do throws(Errno) {
      let status = try Syscalls.status(old)
      let names: [FileName]
      do throws(Errno) { names = try Syscalls.extendedAttributeNames(old) } catch {
        guard error == .notSupported else { throw error }
        names = []
      }
      for name in names where name.hasPrefix("user.") && !BlobAttribute.isOwn(name) {
        try Syscalls.setExtendedAttribute(
          new, name, try OwnerRights.extendedAttribute(old, name))
      }
      let mine = try Syscalls.status(new)
      if mine.st_uid != status.st_uid || mine.st_gid != status.st_gid {
        do throws(Errno) { try Syscalls.setOwner(new, status.st_uid, status.st_gid) } catch {
          guard error == .notPermitted else { throw error }
        }
      }
      try Syscalls.setMode(new, status.st_mode & 0o7777)
    } catch { throw .system(error) }
  }
}
