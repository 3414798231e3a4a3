import Glibc
import Platform

/// The vault's own extended attributes of blobs, which programs don't see: each belongs to one
/// version of one file and goes with it.
enum BlobAttribute {
  static func isOwn(_ name: FileName) -> Bool {
    name == ChunkIndex.attribute || name == PlaceSeal.attribute
      || name.hasPrefix(StoredLeafTags.prefix)
  }

  static func set(_ name: FileName, _ value: [UInt8], on file: CInt) throws(Errno) {
    try changing(file) { () throws(Errno) in
      try Syscalls.setExtendedAttribute(file, name, value)
    }
  }

  /// Does nothing where there is none.
  static func remove(_ name: FileName, from file: CInt) throws(Errno) {
    try changing(file) { () throws(Errno) in
      do throws(Errno) { try Syscalls.removeExtendedAttribute(file, name) } catch {
        if error != .noAttribute { throw error }
      }
    }
  }

  /// Attributes of a photo that is read-only can't be set: for that moment it is not.
  private static func changing(
    _ file: CInt, _ change: () throws(Errno) -> Void
  ) throws(Errno) {
    do throws(Errno) { try change() } catch {
      guard error == .permissionDenied else { throw error }
      let mode = try Syscalls.status(file).st_mode & 0o7777
      try Syscalls.setMode(file, mode | 0o200)
      defer { try? Syscalls.setMode(file, mode) }
      try change()
    }
  }
}
