import CFUSE
import Glibc
import Platform
import VaultFileSystem

/// How long the kernel may answer without asking, in seconds.
///
/// The vault is changed through the kernel alone, except by a synchronising program that puts new
/// blobs beneath it: its changes show after a second, as on a network file system.
enum Validity {
  static let attributes = 1.0
  static let entries = 1.0
  /// A name that isn't there is looked up again each time: ENOENT is answered, never cached.
}

/// The kernel's own limit is 1,024 bytes (FUSE_NAME_MAX) or more.
private let greatestNameSize = 255  // NAME_MAX, limits.h

extension FileName {
  /// A name as the kernel passes it. Throws ENAMETOOLONG.
  init(component pointer: UnsafePointer<CChar>?) throws(FileSystemError) {
    self.init(pointer)
    if count > greatestNameSize { throw FileSystemError(.nameTooLong) }
  }

  init(_ pointer: UnsafePointer<CChar>?) {
    if let pointer { self.init(cString: pointer) } else { self.init([UInt8]()) }
  }
}

extension fuse_entry_param {
  init(_ entry: Entry) {
    self.init()
    ino = entry.nodeID
    generation = entry.generation
    attr = entry.attributes
    attr_timeout = Validity.attributes
    entry_timeout = Validity.entries
  }

  /// What the kernel reads of an entry that comes without attributes, such as "..".
  init(inode: UInt64, type: mode_t) {
    self.init()
    attr.st_ino = ino_t(inode)
    attr.st_mode = type
  }
}

extension fuse_file_info {
  mutating func take(_ opened: Opened) {
    fh = opened.handle
    keep_cache = opened.keepsCache ? 1 : 0
    noflush = opened.skipsFlush ? 1 : 0
    direct_io = opened.bypassesCache ? 1 : 0
  }
}

extension AttributeChanges {
  /// What `mask` (FUSE_SET_ATTR_...) names of `attributes`. A change time can't be chosen.
  init(_ attributes: stat, mask: CInt) {
    self.init()
    if mask & FUSE_SET_ATTR_MODE != 0 { mode = attributes.st_mode }
    if mask & FUSE_SET_ATTR_UID != 0 { user = attributes.st_uid }
    if mask & FUSE_SET_ATTR_GID != 0 { group = attributes.st_gid }
    if mask & FUSE_SET_ATTR_SIZE != 0 { size = Int64(attributes.st_size) }
    if mask & FUSE_SET_ATTR_ATIME_NOW != 0 {
      accessTime = .now
    } else if mask & FUSE_SET_ATTR_ATIME != 0 {
      accessTime = attributes.st_atim
    }
    if mask & FUSE_SET_ATTR_MTIME_NOW != 0 {
      modificationTime = .now
    } else if mask & FUSE_SET_ATTR_MTIME != 0 {
      modificationTime = attributes.st_mtim
    }
  }
}

extension timespec {
  static var now: timespec {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time
  }
}

/// Extended attributes that are answered without touching the disk: the kernel and `ls` ask for
/// them at every turn, and this file system never has one.
enum AttributeClass {
  /// `user.*`: the file system's own business.
  case stored
  /// `security.*`, `trusted.*`, `system.*`, which holds the access lists, and whatever else there
  /// may be. EOPNOTSUPP, not ENODATA: from that `ls -l` learns not to ask for each file.
  case unsupported

  init(_ name: FileName) {
    self = name.hasPrefix("user.") ? .stored : .unsupported
  }

  func checkStored() throws(FileSystemError) {
    if self != .stored { throw FileSystemError(.notSupported) }
  }
}
