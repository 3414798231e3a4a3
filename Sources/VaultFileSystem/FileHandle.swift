import Glibc
import Platform
import Synchronization
import VaultStorage

/// One open(2) of a file.
final class FileHandle: Sendable {
  let file: OpenFile
  let isWriter: Bool
  let bypassesCache: Bool

  init(_ file: OpenFile, isWriter: Bool, bypassesCache: Bool) {
    self.file = file
    self.isWriter = isWriter
    self.bypassesCache = bypassesCache
  }
}

/// Open files: from open to release.
extension FileSystem {
  func fileHandle(_ handle: UInt64) throws(FileSystemError) -> FileHandle {
    try checkNotClosed()
    guard let found = handles.withLock({ $0.files[handle] }) else { throw .system(.badDescriptor) }
    return found
  }

  func makeHandle(_ file: OpenFile, flags: CInt, bypassesCache: Bool = false) -> UInt64 {
    let isWriter = flags & O_ACCMODE != O_RDONLY
    return handles.withLock { handles in
      let number = handles.next
      handles.next += 1
      handles.files[number] = FileHandle(
        file, isWriter: isWriter, bypassesCache: bypassesCache)
      return number
    }
  }

  /// One log line for a photo that can't be read, and why.
  func report(_ error: StorageError, _ inode: Inode) {
    guard case .blob(let reason) = error else { return }
    let stored = inode.state.withLock { $0.links.first?.stored.entry }
    Log.error(
      "photo '\(inode.displayPath)' can't be read, its stored file "
        + "'\(stored?.description ?? "(removed)")' is damaged: \(reason)")
  }

  // MARK: Read, write

  package func read(
    _ handle: UInt64, into buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) -> Int {
    let handle = try fileHandle(handle)
    noteUse()
    do throws(FileSystemError) {
      return try handle.file.read(into: buffer, at: offset)
    } catch {
      if case .storage(let reason) = error { report(reason, handle.file.inode) }
      throw error
    }
  }

  /// All of `bytes`.
  package func write(
    _ handle: UInt64, _ bytes: UnsafeRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) -> Int {
    let handle = try fileHandle(handle)
    noteUse()
    let file = handle.file
    do throws(FileSystemError) {
      try file.write(bytes, at: offset, in: try home(of: file.inode), keys: vault.keys)
    } catch {
      if case .storage(let reason) = error { report(reason, file.inode) }
      throw error
    }
    return bytes.count
  }

  func truncate(_ inode: Inode, to size: Int64) throws(FileSystemError) {
    let file = try hold(inode, isEmptied: size == 0)
    do throws(FileSystemError) {
      try file.truncate(to: size, in: try home(of: inode))
      // Nobody will flush it. Asked behind the change: a writer that closes meanwhile sees it.
      if !hasWriters(file) { try commit(file, durable: false) }
    } catch {
      drop(file)
      throw error
    }
    drop(file)
  }

  package func allocate(
    _ handle: UInt64, mode: CInt, offset: Int64, length: Int64
  ) throws(FileSystemError) {
    let handle = try fileHandle(handle)
    noteUse()
    guard handle.isWriter else { throw .system(.badDescriptor) }
    guard offset >= 0, length > 0 else { throw .system(.invalidArgument) }
    let (end, overflow) = offset.addingReportingOverflow(length)
    if overflow { throw .system(.fileTooLarge) }
    let file = handle.file
    let directory = try home(of: file.inode)
    // Source: fallocate(2), linux/falloc.h.
    let keepsSize = mode & 0x01 != 0
    let zeroes = mode & 0x02 != 0 || mode & 0x10 != 0
    guard mode & ~0x13 == 0, mode & 0x02 == 0 || keepsSize else { throw .system(.notSupported) }
    let size = file.meta.withLock { $0.size }
    if end > size { try OpenFile.checkSpace(end - size, in: directory) }
    if zeroes { try file.zero(offset..<end, in: directory) }
    if !keepsSize, end > size { try file.truncate(to: end, in: directory) }
  }

  /// SEEK_DATA and SEEK_HOLE: the format stores zeros, so a file is all data.
  package func seek(
    _ handle: UInt64, offset: Int64, whence: CInt
  ) throws(FileSystemError) -> Int64 {
    let size = try fileHandle(handle).file.meta.withLock { $0.size }
    guard offset >= 0, offset < size else { throw .system(.noSeekTarget) }
    switch whence {
    case 3: return offset  // SEEK_DATA
    case 4: return size  // SEEK_HOLE
    default: throw .system(.invalidArgument)
    }
  }

  // MARK: Close

  /// Every close of a descriptor. Commits what was written, but not a file that was only emptied
  /// so far: its writer may not have begun.
  package func flush(_ handle: UInt64) throws(FileSystemError) {
    let handle = try fileHandle(handle)
    let (isDirty, isOnlyEmptied) = handle.file.meta.withLock { ($0.isDirty, $0.isOnlyEmptied) }
    guard isDirty, !isOnlyEmptied else { return }
    try commit(handle.file, durable: false)
    // A page that was read during the last write may be what it was before.
    let inode = handle.file.inode
    if handle.bypassesCache, inode.state.withLock({ $0.handleCount > 1 }) {
      invalidatePages(of: inode)
    }
  }

  /// "fsync", "fdatasync": on return the photo and its name are on the disk.
  package func synchronize(_ handle: UInt64, dataOnly: Bool) throws(FileSystemError) {
    try synchronize(handle, dataOnly: dataOnly, durable: true)
  }

  func synchronize(
    _ handle: UInt64, dataOnly: Bool, durable: Bool
  ) throws(FileSystemError) {
    try commit(try fileHandle(handle).file, durable: durable)
  }

  /// The last close. What is dirty yet (pages of a mapping, a file that was only emptied) is
  /// committed; failures have nobody left to hear them but the log.
  package func release(_ handle: UInt64) {
    guard let found = handles.withLock({ $0.files.removeValue(forKey: handle) }) else { return }
    let file = found.file
    // A file may be made by an open for reading only.
    if file.meta.withLock({ $0.isDirty }), !hasWriters(file) {
      do throws(FileSystemError) { try commitAtLastClose(file) } catch {
        Log.error(
          "'\(file.inode.displayPath)' was not stored: \(error.errno); "
            + "the version before, if any, is unchanged")
        discard(file)
      }
    }
    drop(file)
  }

  func hasWriters(_ file: OpenFile) -> Bool {
    handles.withLock { $0.files.values.contains { $0.file === file && $0.isWriter } }
  }

  /// One handle less; at none the inode is as the disk has it.
  func drop(_ file: OpenFile) {
    let inode = file.inode
    let isLast = inode.state.withLock { state in
      state.handleCount -= 1
      guard state.handleCount == 0 else { return false }
      state.file = nil
      return true
    }
    if isLast { table.dropIfUnused(inode) }
  }

  /// What the disk has of a file; every use of it fails where that can't be read.
  private func storedContent(of inode: Inode) -> Content {
    do throws(FileSystemError) {
      return try content(of: inode, try openStored(inode)).0
    } catch {
      var content = Content(writer: nil)
      content.failure = error
      return content
    }
  }

  /// Gives up what could not be stored: a new file goes, an old one is again what it was.
  private func discard(_ file: OpenFile) {
    let inode = file.inode
    file.content.withExclusive { content in
      content = storedContent(of: inode)
      file.meta.withLock { meta in
        meta.isDirty = false
        meta.modified = nil
        meta.size = content.size
      }
    }
    if let link = inode.state.withLock({ $0.links.first }), let node = link.parent.directory {
      node.lock.withExclusive {
        if node.pending.withLock({ $0[link.name] }) === inode {
          dropPending(inode, link.name, link.parent, node)
        }
      }
    }
    inode.state.withLock { state in
      state.cached = nil
      state.size = nil
    }
    invalidatePages(of: inode)
  }
}
