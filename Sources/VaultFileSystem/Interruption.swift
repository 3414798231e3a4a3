import Glibc
import Platform
import Synchronization
import VaultStorage

/// Files that a program was still writing from their start on when the folder was locked.
extension FileSystem {
  /// Keeps the part that was written as `NAME (interrupted YYYY-MM-DD hh.mm.ss).EXT`, and under its
  /// own name what is stored there. False, and nothing done, for a file that is no such part.
  func keepInterrupted(_ file: OpenFile) throws(FileSystemError) -> Bool {
    let inode = file.inode
    // Whoever closes a file when the folder is closed has heard of an error.
    guard hasWriters(file) || phase.load(ordering: .relaxed) == .closed,
      let link = inode.state.withLock({ $0.links.first })
    else { return false }
    return try file.content.withExclusive { content throws(FileSystemError) in
      guard content.isAnew, file.meta.withLock({ $0.isDirty }) else { return false }
      let (node, directory) = try opened(link.parent)
      if !file.meta.withLock({ $0.isOnlyEmptied }) {
        let written = try encode(&content, file)
        try withExclusive([link.parent]) { () throws(FileSystemError) in
          let name = try freeName(link.name, note: "interrupted", node, directory)
          try put(written, as: name, link, file)
        }
        Log.warning("'\(inode.displayPath)' was interrupted; what was written of it is kept")
      }
      // From here on it can only be closed.
      content = Content(writer: nil)
      content.failure = .system(.inputOutput)
      file.meta.withLock { $0.isDirty = false }
      try withExclusive([link.parent]) { () throws(FileSystemError) in
        if node.pending.withLock({ $0[link.name] }) === inode {
          dropPending(inode, link.name, link.parent, node)
        }
      }
      return true
    }
  }

  /// A commit when no more writes can come: a part of a new version gets a name of its own.
  func commitAtEnd(_ file: OpenFile) throws(FileSystemError) {
    if try !keepInterrupted(file) { try commit(file, durable: false) }
  }

  /// What the last writer's close left to do. The kernel tells of it while the file may be opened
  /// anew already: who writes then commits, and what he writes is no part that was interrupted.
  func commitAtLastClose(_ file: OpenFile) throws(FileSystemError) {
    if phase.load(ordering: .relaxed) == .closed { return try commitAtEnd(file) }
    try commit(file, durable: false, unlessWritten: true)
  }

  private func put(
    _ written: WrittenBlob, as name: FileName, _ link: Link, _ file: OpenFile
  ) throws(FileSystemError) {
    let directory = try opened(link.parent).1
    if let pending = file.meta.withLock({ $0.pending }) {
      try apply(pending, modified: nil, to: written)
    } else {
      let old = try openStored(link.stored.entry, in: directory)
      try storing { () throws(StorageError) in
        try AtomicReplace.copyAttributes(from: old.rawValue, to: written.descriptor)
      }
    }
    try storing { () throws(StorageError) in
      let stored = try directory.storedName(name, kind: .blob)
      let target = AtomicReplace.Target(directory: directory, stored: stored, name: name)
      try AtomicReplace.publish(written, as: [target], replacing: false)
    }
  }

  /// A free name in the directory, which is locked: `NAME (NOTE YYYY-MM-DD hh.mm.ss).EXT`.
  func freeName(
    _ name: FileName, note word: String, _ node: DirectoryNode, _ directory: VaultDirectory
  ) throws(FileSystemError) -> FileName {
    var now = time(nil)
    var parts = tm()
    localtime_r(&now, &parts)
    var buffer = [CChar](repeating: 0, count: 32)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%d %H.%M.%S", &parts)
    let date = buffer[..<count].map { UInt8(bitPattern: $0) }
    let dot = name.bytes.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil }
    let stem = name.bytes[..<(dot ?? name.count)]
    let suffix = name.bytes[(dot ?? name.count)...]
    for attempt in 1...99 {
      let number = attempt == 1 ? [] : Array(" \(attempt)".utf8)
      let note = Array(" (\(word) ".utf8) + date + number + Array(")".utf8)
      let room = max(0, Self.nameLimit - note.count - suffix.count)
      let free = FileName(Array((stem.prefix(room) + note + suffix).prefix(Self.nameLimit)))
      if case .nobody = try occupant(of: free, node, directory) { return free }
    }
    throw .system(.exists)
  }
}
