import Glibc

/// An entry as the disk lists it.
package struct RawEntry: Sendable {
  package let name: FileName
  /// DT_*, never DT_UNKNOWN.
  package let type: UInt8
  package let inode: UInt64

  package init(name: FileName, type: UInt8, inode: UInt64) {
    self.name = name
    self.type = type
    self.inode = inode
  }

  package var isRegular: Bool { type == UInt8(DT_REG) }
}

/// Reads whole directories by getdents64(2).
package enum DirectoryEntries {
  private static let bufferByteCount = 65536

  /// All entries but `.` and `..`; none for a directory that was removed meanwhile.
  package static func read(_ directory: CInt) throws(Errno) -> [RawEntry] {
    let fresh: FileDescriptor
    do throws(Errno) {
      fresh = try Syscalls.open(dot, in: directory, flags: O_RDONLY | O_DIRECTORY)
    } catch {
      if error == .noSuchEntry { return [] }
      guard error == .permissionDenied else { throw error }
      // One that may be read, not searched: not even for itself.
      fresh = try Syscalls.open(
        FileName("/proc/self/fd/\(directory)"), flags: O_RDONLY | O_DIRECTORY)
    }
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: bufferByteCount, alignment: MemoryLayout<UInt64>.alignment)
    defer { buffer.deallocate() }
    var entries: [RawEntry] = []
    while true {
      let count: Int
      do throws(Errno) {
        count = try Syscalls.directoryEntries(fresh.rawValue, into: buffer)
      } catch {
        if error == .noSuchEntry { return [] }
        throw error
      }
      if count == 0 { break }
      append(UnsafeRawBufferPointer(rebasing: buffer[..<count]), to: &entries)
    }
    try resolveTypes(&entries, in: directory)
    return entries
  }

  private static let dot = FileName(".")

  /// Source: getdents64(2): d_ino 8 bytes, d_off 8, d_reclen 2, d_type 1, then the name and a NUL.
  private static func append(_ buffer: UnsafeRawBufferPointer, to entries: inout [RawEntry]) {
    let nameOffset = 19
    var start = 0
    while start + nameOffset < buffer.count {
      let length = Int(buffer.loadUnaligned(fromByteOffset: start + 16, as: UInt16.self))
      guard length > nameOffset, start + length <= buffer.count else { return }
      let tail = UnsafeRawBufferPointer(
        rebasing: buffer[(start + nameOffset)..<(start + length)])
      let name = UnsafeRawBufferPointer(rebasing: tail[..<(tail.firstIndex(of: 0) ?? tail.count)])
      let isDots =
        name.count <= 2 && name.allSatisfy { $0 == UInt8(ascii: ".") }
      if !isDots {
        entries.append(
          RawEntry(
            name: FileName(name), type: buffer[start + 18],
            inode: buffer.loadUnaligned(fromByteOffset: start, as: UInt64.self)))
      }
      start += length
    }
  }

  /// Some file systems leave the type out of the listing.
  private static func resolveTypes(
    _ entries: inout [RawEntry], in directory: CInt
  ) throws(Errno) {
    guard entries.contains(where: { $0.type == UInt8(DT_UNKNOWN) }) else { return }
    var known: [RawEntry] = []
    known.reserveCapacity(entries.count)
    for entry in entries {
      if entry.type != UInt8(DT_UNKNOWN) {
        known.append(entry)
        continue
      }
      do throws(Errno) {
        let status = try Syscalls.status(of: entry.name, in: directory)
        // IFTODT of dirent.h.
        let type = UInt8(truncatingIfNeeded: (status.st_mode & mode_t(Glibc.S_IFMT)) >> 12)
        known.append(RawEntry(name: entry.name, type: type, inode: entry.inode))
      } catch { if error != .noSuchEntry { throw error } }
    }
    entries = known
  }
}
