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
    try OwnerRights.granted(S_IWUSR, on: file) { () throws(Errno) in
      try Syscalls.setExtendedAttribute(file, name, value)
    }
  }

  /// Does nothing where there is none.
  static func remove(_ name: FileName, from file: CInt) throws(Errno) {
    try OwnerRights.granted(S_IWUSR, on: file) { () throws(Errno) in
      do throws(Errno) { try Syscalls.removeExtendedAttribute(file, name) } catch {
        if error != .noAttribute { throw error }
      }
    }
  }
}
