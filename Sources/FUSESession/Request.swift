import CFUSE
import Glibc
import Platform
import VaultFileSystem

/// One question of the kernel. Every reply consumes it, so a second one does not compile; one that
/// is forgotten answers EIO.
///
/// A reply may be the last use the kernel makes of a node: nothing is touched behind it except to
/// give back what an undelivered reply handed out (the caller was interrupted, or is gone).
struct Request: ~Copyable {
  private let raw: fuse_req_t

  /// Takes over `raw`, which libfuse passes to every operation but `init`.
  init(_ raw: fuse_req_t?) {
    guard let raw else { preconditionFailure("libfuse passes a request") }
    self.raw = raw
  }

  deinit { fuse_reply_err(raw, EIO) }

  var fileSystem: FileSystem {
    guard let userdata = fuse_req_userdata(raw) else {
      preconditionFailure("the session was made with a file system")
    }
    return Unmanaged<FileSystem>.fromOpaque(userdata).takeUnretainedValue()
  }

  var caller: Caller {
    guard let context = fuse_req_ctx(raw)?.pointee else {
      return Caller(user: 0, group: 0, umask: 0)
    }
    return Caller(user: context.uid, group: context.gid, umask: context.umask)
  }

  consuming func reply(_ error: FileSystemError) { reply(error.errno) }

  consuming func reply(_ error: Errno) {
    let raw = release()
    fuse_reply_err(raw, error.rawValue)
  }

  /// For what returns nothing but success.
  consuming func reply() {
    let raw = release()
    fuse_reply_err(raw, 0)
  }

  /// For forget, which the kernel doesn't wait for.
  consuming func finish() {
    let raw = release()
    fuse_reply_none(raw)
  }

  consuming func reply(_ entry: Entry) {
    let fileSystem = fileSystem
    let raw = release()
    var parameters = fuse_entry_param(entry)
    if fuse_reply_entry(raw, &parameters) != 0 { fileSystem.forget(entry.nodeID, count: 1) }
  }

  consuming func reply(_ entry: Entry, _ opened: Opened, _ info: inout fuse_file_info) {
    let fileSystem = fileSystem
    let raw = release()
    var parameters = fuse_entry_param(entry)
    info.take(opened)
    guard fuse_reply_create(raw, &parameters, &info) != 0 else { return }
    fileSystem.release(opened.handle)
    fileSystem.forget(entry.nodeID, count: 1)
  }

  consuming func reply(_ opened: Opened, _ info: inout fuse_file_info) {
    let fileSystem = fileSystem
    let raw = release()
    info.take(opened)
    if fuse_reply_open(raw, &info) != 0 { fileSystem.release(opened.handle) }
  }

  /// `opened` is a directory, whose listing the kernel may keep.
  consuming func reply(directory opened: Opened, _ info: inout fuse_file_info) {
    let fileSystem = fileSystem
    let raw = release()
    info.take(opened)
    info.cache_readdir = 1
    if fuse_reply_open(raw, &info) != 0 { fileSystem.releaseDirectory(opened.handle) }
  }

  consuming func reply(attributes: stat) {
    let raw = release()
    var attributes = attributes
    fuse_reply_attr(raw, &attributes, Validity.attributes)
  }

  consuming func reply(linkTarget: FileName) {
    let raw = release()
    _ = linkTarget.withCString { fuse_reply_readlink(raw, $0) }
  }

  consuming func reply(written count: Int) {
    let raw = release()
    fuse_reply_write(raw, count)
  }

  consuming func reply(status: statvfs) {
    let raw = release()
    var status = status
    fuse_reply_statfs(raw, &status)
  }

  consuming func reply(offset: Int64) {
    let raw = release()
    fuse_reply_lseek(raw, off_t(offset))
  }

  consuming func reply(bytes: UnsafeRawBufferPointer) {
    let raw = release()
    fuse_reply_buf(raw, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), bytes.count)
  }

  /// A value, or its size where the caller only asked for that (`capacity` 0).
  consuming func reply(value: [UInt8], capacity: Int) {
    if capacity == 0 {
      let raw = release()
      fuse_reply_xattr(raw, value.count)
    } else if value.count > capacity {
      reply(.range)
    } else {
      let raw = release()
      _ = value.withUnsafeBytes {
        fuse_reply_buf(raw, $0.baseAddress?.assumingMemoryBound(to: CChar.self), value.count)
      }
    }
  }

  /// Ends a `DirectoryListing`; if the kernel did not get it, its lookups are given back.
  consuming func reply(_ listing: borrowing DirectoryListing) {
    let fileSystem = fileSystem
    let raw = release()
    let text = listing.bytes.baseAddress?.assumingMemoryBound(to: CChar.self)
    guard fuse_reply_buf(raw, text, listing.bytes.count) != 0 else { return }
    for node in listing.nodes { fileSystem.forget(node, count: 1) }
  }

  /// "fuse_add_direntry_plus": the bytes the entry takes, even if they are more than `buffer` has.
  func add(
    _ name: FileName, _ entry: inout fuse_entry_param, nextOffset: Int64,
    to buffer: UnsafeMutableRawBufferPointer
  ) -> Int {
    name.withCString { name in
      fuse_add_direntry_plus(
        raw, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count, name, &entry,
        off_t(nextOffset))
    }
  }

  private consuming func release() -> fuse_req_t {
    let raw = raw
    discard self
    return raw
  }
}
