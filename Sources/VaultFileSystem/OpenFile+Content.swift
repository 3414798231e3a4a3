import Glibc
import Platform
import Synchronization
import VaultStorage

/// Reading and changing the content; nothing here touches names.
extension OpenFile {
  // MARK: Read

  func read(
    into target: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) -> Int {
    let result: Int? = try content.withShared { content throws(FileSystemError) in
      // A writer's tail is no matter for several threads.
      if content.writer != nil { return nil }
      return try Self.read(content, into: target, at: offset)
    }
    if let result { return result }
    return try content.withExclusive { content throws(FileSystemError) in
      try Self.read(content, into: target, at: offset)
    }
  }

  /// What `content` has from `offset` on, up to its size.
  static func read(
    _ content: borrowing Content, into target: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) -> Int {
    if let failure = content.failure { throw failure }
    if let writer = content.writer {
      return try storing { () throws(StorageError) in try writer.read(into: target, at: offset) }
    }
    guard offset < content.size else { return 0 }
    let count = Int(min(Int64(target.count), content.size - offset))
    let target = UnsafeMutableRawBufferPointer(rebasing: target[..<count])
    guard let scratch = content.scratch, !scratch.isEmpty else {
      try readBase(content, into: target, at: offset)
      return count
    }
    let blockSize = Int64(Scratch.blockByteCount)
    var done = 0
    while done < count {
      let position = offset + Int64(done)
      let block = position / blockSize
      if scratch.contains(block: block) {
        let skipped = Int(position % blockSize)
        let part = min(count - done, Scratch.blockByteCount - skipped)
        try scratch.read(
          block: block, at: skipped,
          into: UnsafeMutableRawBufferPointer(rebasing: target[done..<(done + part)]))
        done += part
      } else {
        var next = block + 1
        while next * blockSize < offset + Int64(count), !scratch.contains(block: next) {
          next += 1
        }
        let part = Int(min(Int64(count - done), next * blockSize - position))
        try readBase(
          content, into: UnsafeMutableRawBufferPointer(rebasing: target[done..<(done + part)]),
          at: position)
        done += part
      }
    }
    return count
  }

  /// Base below its limit, zeros behind.
  private static func readBase(
    _ content: borrowing Content, into target: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(FileSystemError) {
    var done = 0
    if let base = content.base, offset < content.baseLimit {
      let count = Int(min(Int64(target.count), content.baseLimit - offset))
      done = try storing { () throws(StorageError) in
        try base.read(
          into: UnsafeMutableRawBufferPointer(rebasing: target[..<count]), at: offset)
      }
      // The size was told before the blob was verified and may have been a few bytes off.
      if done < count { throw .system(.inputOutput) }
    }
    UnsafeMutableRawBufferPointer(rebasing: target[done...])
      .initializeMemory(as: UInt8.self, repeating: 0)
  }

  // MARK: Change

  /// Writes all of `source`, or throws and has changed nothing that counts.
  func write(
    _ source: UnsafeRawBufferPointer, at offset: Int64, in directory: VaultDirectory,
    keys: VaultKeys
  ) throws(FileSystemError) {
    guard offset >= 0, offset <= Int64.max - Int64(source.count) else {
      throw .system(.fileTooLarge)
    }
    try content.withExclusive { content throws(FileSystemError) in
      if let failure = content.failure { throw failure }
      if source.isEmpty { return }
      do throws(FileSystemError) {
        try change(&content, source, at: offset, in: directory, keys)
      } catch {
        // A new version that lacks these bytes must never take the place of the old one. An edit
        // goes on without them, as on any disk.
        if content.isAnew { fail(&content, error) }
        throw error
      }
      content.unpublished = nil
      content.size = max(content.size, offset + Int64(source.count))
      noteChange(content.size, isOnlyEmptied: false)
    }
  }

  private func change(
    _ content: inout Content, _ source: UnsafeRawBufferPointer, at offset: Int64,
    in directory: VaultDirectory, _ keys: VaultKeys
  ) throws(FileSystemError) {
    if content.writer == nil, content.size == 0, offset == 0 {
      let writer = try storing { () throws(StorageError) in
        try BlobWriter(in: directory, keys: keys)
      }
      content = Content(writer: writer)
    }
    guard let writer = content.writer, writer.plaintextSize == offset else {
      return try edit(&content, source, at: offset, in: directory)
    }
    try storing { () throws(StorageError) in try writer.append(source) }
  }

  /// Grows with zeros or shrinks.
  func truncate(
    to size: Int64, in directory: VaultDirectory
  ) throws(FileSystemError) {
    try content.withExclusive { content throws(FileSystemError) in
      if size == 0 {
        content = Content(writer: nil)
        noteChange(0, isOnlyEmptied: true)
        return
      }
      if let failure = content.failure { throw failure }
      content.unpublished = nil
      if size != content.size {
        try seal(&content)
        if size < content.size {
          content.baseLimit = min(content.baseLimit, size)
          try content.scratch?.truncate(to: size)
        } else {
          try Self.checkSpace(size - content.size, in: directory)
        }
        content.size = size
      }
      noteChange(size, isOnlyEmptied: false)
    }
  }

  /// Makes `range` zeros without changing the size; what lies behind the end is left out.
  func zero(
    _ range: Range<Int64>, in directory: VaultDirectory
  ) throws(FileSystemError) {
    try content.withExclusive { content throws(FileSystemError) in
      if let failure = content.failure { throw failure }
      let end = min(range.upperBound, content.size)
      guard range.lowerBound < end else { return }
      content.unpublished = nil
      try seal(&content)
      let zeros = [UInt8](repeating: 0, count: Scratch.blockByteCount)
      var position = range.lowerBound
      while position < end {
        let count = Int(min(Int64(zeros.count), end - position))
        try zeros.withBytes { zeros throws(FileSystemError) in
          try edit(
            &content, UnsafeRawBufferPointer(rebasing: zeros[..<count]), at: position,
            in: directory)
        }
        position += Int64(count)
      }
      noteChange(content.size, isOnlyEmptied: false)
    }
  }

  /// A sparse size is honest only while the disk could hold it: the format stores the zeros.
  /// Throws ENOSPC, and EFBIG for what wouldn't fit on the empty disk.
  static func checkSpace(_ growth: Int64, in directory: VaultDirectory) throws(FileSystemError) {
    let status = try calling { () throws(Errno) in
      try Syscalls.fileSystemStatus(directory.fd.rawValue)
    }
    let unit = UInt64(max(1, status.f_frsize))
    let needed = UInt64(max(0, growth)) / unit
    if needed > UInt64(status.f_blocks) { throw .system(.fileTooLarge) }
    if needed > UInt64(status.f_bavail) { throw .system(.noSpace) }
  }

  /// Forgets written bytes that the disk won't take.
  private func fail(_ content: inout Content, _ error: FileSystemError) {
    content.writer = nil
    content.scratch = nil
    content.base = nil
    content.failure = error
  }

  /// Ends a stream where writes stop being one behind the other: what was streamed becomes a blob
  /// to read from, and the IV is not used for anything else.
  private func seal(_ content: inout Content) throws(FileSystemError) {
    guard let writer = content.writer else { return }
    do throws(StorageError) {
      content.base = try writer.finish().blob
      content.baseLimit = writer.plaintextSize
      content.writer = nil
    } catch {
      fail(&content, .storage(error))
      throw .storage(error)
    }
  }

  private func edit(
    _ content: inout Content, _ source: UnsafeRawBufferPointer, at offset: Int64,
    in directory: VaultDirectory
  ) throws(FileSystemError) {
    let end = offset + Int64(source.count)
    if offset > content.size { try Self.checkSpace(end - content.size, in: directory) }
    try seal(&content)
    let scratch = content.scratch ?? Scratch(in: directory)
    content.scratch = scratch
    let blockSize = Int64(Scratch.blockByteCount)
    var done = 0
    while done < source.count {
      let position = offset + Int64(done)
      let skipped = Int(position % blockSize)
      let count = min(source.count - done, Scratch.blockByteCount - skipped)
      let block = position / blockSize
      let part = UnsafeRawBufferPointer(rebasing: source[done..<(done + count)])
      let below = content
      try scratch.write(block: block, at: skipped, part) { target throws(FileSystemError) in
        let start = block * blockSize
        let present = Int(max(0, min(blockSize, below.size - start)))
        try Self.readBase(
          below, into: UnsafeMutableRawBufferPointer(rebasing: target[..<present]), at: start)
      }
      done += count
    }
  }

  private func noteChange(_ size: Int64, isOnlyEmptied: Bool) {
    let now = timespec.now
    meta.withLock { meta in
      meta.size = size
      meta.isDirty = true
      meta.isOnlyEmptied = isOnlyEmptied
      meta.modified = now
      meta.pending?.modified = now
      meta.pending?.changed = now
    }
  }
}
