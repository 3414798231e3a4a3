import Glibc
import Platform
import Synchronization
import VaultStorage

/// The content of an open file, one for all its handles: what is stored, and what was written on
/// top and isn't committed yet.
///
/// | state | base | writer | scratch |
/// |---|---|---|---|
/// | clean | the stored blob | - | - |
/// | streaming: written from its start on | - | the new blob | - |
/// | edited: written elsewhere | a blob, below `baseLimit` | - | what was written |
/// | failed: the disk refused what can't be asked again | - | - | - |
///
/// Locks: `content`, then the directory's; `meta` is innermost and held for no I/O.
final class OpenFile: Sendable {
  let inode: Inode
  let content: ContentLock
  let meta: Mutex<Meta>

  /// What can be told while the content is being written.
  struct Meta {
    /// The plaintext's size as programs see it.
    var size: Int64
    /// Something was written, or the size changed, since the last commit.
    var isDirty = false
    /// Nothing was written since the file was emptied: the version on the disk stays until the
    /// writer has finished, since shells close a duplicate before the first byte.
    var isOnlyEmptied = false
    /// Set by a write, a truncation or utimens; what the next commit stores.
    var modified: timespec?
    var accessed: timespec?
    /// Attributes of a file that isn't on the disk yet; nil for all others.
    var pending: Pending?
    /// What is stored of the file, as far as it is this mount's doing.
    var stored: Stored?
  }

  struct Pending {
    var mode: mode_t
    var user: uid_t
    var group: gid_t
    var accessed: timespec
    var modified: timespec
    var changed: timespec
    var extendedAttributes: [FileName: [UInt8]] = [:]
    /// It was renamed over a name that the disk has, which the first commit replaces.
    var hasShadow = false
    /// What the name held then, if that was a photo.
    var shadowed: BlobVersion?
  }

  /// The version that the file was opened with or last committed, and whose place the next commit
  /// takes. Another one under the file's name is somebody else's: a sync program's.
  struct Stored {
    var version: BlobVersion
    /// As last seen under its name.
    var status: stat
    /// Keeps the stored file, so that the disk gives its number to no other one.
    let file: StoredFile
  }

  init(inode: Inode, content: consuming Content, meta: Meta) {
    self.inode = inode
    self.content = ContentLock(content)
    self.meta = Mutex(meta)
  }
}

/// An open stored file that is replaced soon.
final class StoredFile: Sendable {
  private let descriptor: FileDescriptor?
  private let blob: Blob?

  init(_ descriptor: consuming FileDescriptor) {
    self.descriptor = consume descriptor
    blob = nil
  }

  init(_ blob: Blob) {
    descriptor = nil
    self.blob = blob
  }
}

/// What the content lock protects.
struct Content {
  var base: Blob?
  /// Bytes of `base` that still count; behind them are zeros, where scratch has nothing.
  var baseLimit: Int64
  var writer: BlobWriter?
  var scratch: Scratch?
  /// What lost written bytes for good; every use says so until the file is emptied or closed.
  var failure: FileSystemError?
  /// The whole content as a finished blob that could not be given its name yet.
  var unpublished: WrittenBlob?
  /// Nothing of the last committed version is part of it: the file is new or was emptied.
  var isAnew = false
  var size: Int64

  /// A file as it is stored.
  init(base: Blob, size: Int64) {
    self.base = base
    self.size = size
    baseLimit = size
  }

  /// An empty file.
  init(writer: BlobWriter?) {
    self.writer = writer
    size = 0
    baseLimit = 0
    isAnew = true
  }
}

/// Readers beside each other, a writer or commit alone.
final class ContentLock: @unchecked Sendable {
  private let lock = ReadWriteLock()
  private var content: Content

  init(_ content: consuming Content) { self.content = content }

  func withShared<Result, Failure: Error>(
    _ body: (borrowing Content) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try lock.withShared { () throws(Failure) in try body(content) }
  }

  func withExclusive<Result, Failure: Error>(
    _ body: (inout Content) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try lock.withExclusive { () throws(Failure) in try body(&content) }
  }
}

extension timespec {
  static var now: timespec {
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    return time
  }

  static func < (left: timespec, right: timespec) -> Bool {
    (left.tv_sec, left.tv_nsec) < (right.tv_sec, right.tv_nsec)
  }
}
