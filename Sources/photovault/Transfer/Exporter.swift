import Glibc
import Platform
import SecuredData
import Synchronization
import VaultStorage

/// What an export did, for its last lines.
struct ExportTally: Sendable {
  var files = 0
  var bytes: Int64 = 0
  var folders = 0
  var links = 0
  /// There under the same name with the same contents.
  var present = 0
  /// Under the name of another file, which stays.
  var skipped = 0
  var renamed = 0
  var failed = 0
  var damaged = 0
  /// Files and folders whose mode, times or attributes the disk doesn't take.
  var incomplete = 0

  var isComplete: Bool { skipped + failed + damaged == 0 }
}

/// Copies files out of a vault, which may be mounted. Each is verified while it is read, read back
/// from the disk, compared, and only then gets its name.
final class Exporter: Sendable {
  let run: TransferRun
  let tally = Mutex(ExportTally())

  private let vault: Vault
  private let tree: ExportTree
  private let policy: ConflictPolicy
  private let attributes: ExtendedAttributes
  private let next = Atomic(0)
  /// What those files that have further names are called, by their index.
  private let written = Mutex<[Int: FileName]>([:])

  init(_ tree: ExportTree, of vault: Vault, policy: ConflictPolicy) {
    self.tree = tree
    self.vault = vault
    self.policy = policy
    attributes = ExtendedAttributes(keys: vault.keys)
    run = TransferRun(files: tree.fileCount, bytes: tree.byteCount)
  }

  /// On each thread.
  func work() {
    let batch = ExportBatch(self)
    var last: ExportTarget.OpenDirectory?
    while !run.isStopping {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      guard index < tree.files.count else { break }
      let file = tree.files[index]
      // Kept open: mostly the next file goes there, too.
      if let directory = try? file.directory.target.open() { last = directory }
      export(file, index, batch)
      if batch.isFull { batch.finish() }
    }
    batch.finish()
    withExtendedLifetime(last) {}
  }

  /// `index`: among the tree's files, if it is one of them.
  private func export(_ file: ExportedFile, _ index: Int?, _ batch: ExportBatch) {
    do throws(TransferFailure) {
      let directory = try TransferFailure.onOutside { () throws(Errno) in
        try file.directory.target.open()
      }
      switch file.kind {
      case .symbolicLink: try exportLink(file, to: directory.fd)
      case .file: if try exportContents(file, index, to: directory, batch) { return }
      }
    } catch { fail(file.path, error) }
    run.count(files: 1)
  }

  func note(_ index: Int?, writtenAs name: FileName) {
    if let index { written.withLock { $0[index] = name } }
  }

  func fail(_ path: FileName, _ failure: TransferFailure) {
    if case .vault(let error) = failure {
      switch error {
      case .blob, .damagedMetadata, .damagedDirectory:
        return damaged(path, failure.sentence)
      default: break
      }
    }
    run.say("failed: \(path): \(failure.sentence)")
    tally.withLock { $0.failed += 1 }
    guard failure.isFinal else { return }
    run.fail(
      CommandError(
        .failed, "stopped: \(failure.sentence)",
        hint: "what was exported is complete; make room and run the same command again"))
  }

  func damaged(_ path: FileName, _ reason: String) {
    run.say("damaged: \(path): \(reason)")
    tally.withLock { $0.damaged += 1 }
  }

  func notExported(_ path: FileName) {
    run.say("skipped: \(path): neither file, folder nor link")
    tally.withLock { $0.failed += 1 }
  }

  // MARK: Names

  enum Choice {
    case free(FileName)
    case replace(FileName)
    case present(FileName)
    case skip
  }

  func choose(
    _ file: ExportedFile, in directory: CInt, from number: Int,
    isSame: (stat, FileName) throws(TransferFailure) -> Bool
  ) throws(TransferFailure) -> (choice: Choice, number: Int) {
    let split = SplitName(file.entry.name)
    var number = number
    while true {
      let name = split.numbered(number)
      let status: stat
      do throws(Errno) { status = try Syscalls.status(of: name, in: directory) } catch {
        guard error == .noSuchEntry else { throw .outside(error) }
        return (.free(name), number)
      }
      if try isSame(status, name) { return (.present(name), number) }
      switch policy {
      case .rename: number += 1
      case .skip:
        run.say("skipped: \(file.path): another file has its name in \(file.directory.target.path)")
        tally.withLock { $0.skipped += 1 }
        return (.skip, number)
      case .replace:
        guard status.st_mode & S_IFMT != mode_t(Glibc.S_IFDIR) else {
          throw .other("a folder has its name")
        }
        return (.replace(name), number)
      }
    }
  }

  func count(_ file: ExportedFile, _ number: Int, bytes: Int64?) {
    tally.withLock { tally in
      if let bytes {
        tally.files += 1
        tally.bytes += bytes
      } else {
        tally.links += 1
      }
      if number > 1 { tally.renamed += 1 }
    }
  }

  // MARK: Links

  private func exportLink(
    _ file: ExportedFile, to directory: CInt
  ) throws(TransferFailure) {
    let source = file.directory.stored
    let target = try TransferFailure.onVault { () throws(StorageError) in
      let stored: FileName
      do throws(Errno) {
        stored = try Syscalls.readSymbolicLink(file.entry.stored.entry, in: source.fd.rawValue)
      } catch { throw StorageError.system(error) }
      return try source.decodeLinkTarget(stored)
    }
    let (choice, number) = try choose(file, in: directory, from: 1) { status, name in
      status.st_mode & S_IFMT == mode_t(Glibc.S_IFLNK)
        && (try? Syscalls.readSymbolicLink(name, in: directory)) == target
    }
    switch choice {
    case .skip: return
    case .present: return tally.withLock { $0.present += 1 }
    case .free(let name): try link(target, as: name, in: directory, replacing: false)
    case .replace(let name): try link(target, as: name, in: directory, replacing: true)
    }
    if let status = try? Syscalls.status(of: file.entry.stored.entry, in: source.fd.rawValue) {
      try? Syscalls.setTimes(
        of: SplitName(file.entry.name).numbered(number), in: directory, access: status.st_atim,
        modification: status.st_mtim)
    }
    count(file, number, bytes: nil)
  }

  private func link(
    _ target: FileName, as name: FileName, in directory: CInt, replacing: Bool
  ) throws(TransferFailure) {
    let temporary = try Self.temporaryName()
    try TransferFailure.onOutside { () throws(Errno) in
      try Syscalls.makeSymbolicLink(to: target, as: temporary, in: directory)
      do throws(Errno) {
        if replacing {
          try Syscalls.rename(temporary, in: directory, to: name, in: directory)
        } else {
          try Syscalls.renameToNewName(temporary, to: name, in: directory)
        }
      } catch {
        try? Syscalls.unlink(temporary, in: directory)
        throw error
      }
    }
  }

  // MARK: Contents

  /// Whether it waits for its name now.
  private func exportContents(
    _ file: ExportedFile, _ index: Int?, to directory: ExportTarget.OpenDirectory,
    _ batch: ExportBatch
  ) throws(TransferFailure) -> Bool {
    let stored = try TransferFailure.onVault { () throws(StorageError) in
      try file.directory.stored.openFile(file.entry.stored)
    }
    let number = stored.rawValue
    let status = try TransferFailure.inVault { () throws(Errno) in try Syscalls.status(number) }
    let blob: Blob
    let size: Int64
    do throws(StorageError) {
      blob = try Blob(descriptor: stored, keys: vault.keys, isWritable: false)
      size = try blob.plaintextSize()
    } catch { throw .vault(error) }
    var known: [UInt8]?
    let (choice, attempt) = try choose(file, in: directory.fd, from: 1) {
      found, name throws(TransferFailure) in
      guard found.st_mode & S_IFMT == mode_t(Glibc.S_IFREG), Int64(found.st_size) == size else {
        return false
      }
      if known == nil { known = try digest(of: blob, size) }
      // What can't be read is not the same.
      guard let there = try? SourceContent(directory: directory.fd, name).digest() else {
        return false
      }
      return there == known
    }
    switch choice {
    case .skip: return false
    case .present(let name):
      note(index, writtenAs: name)
      run.count(bytes: size)
      tally.withLock { $0.present += 1 }
      return false
    case .free, .replace: break
    }
    let output = try ExportOutput(in: directory)
    let copied = try copy(blob, size, to: output)
    Syscalls.startWriteback(output.fd, 0..<max(1, size))
    let isComplete = setAttributes(status, from: blob.descriptor, on: output.fd)
    batch.add(
      ExportBatch.Item(
        file: file, index: index, output: output, digest: copied, size: size,
        isComplete: isComplete, choice: choice, number: attempt))
    return true
  }

  private func copy(
    _ blob: Blob, _ size: Int64, to output: ExportOutput
  ) throws(TransferFailure) -> [UInt8] {
    let hash = try TransferFailure.inCrypto { () throws(CryptoFailure) in try Digest() }
    var position: Int64 = 0
    do throws(TransferFailure) {
      try pieces(of: blob, size) { bytes throws(TransferFailure) in
        try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.update(bytes) }
        try TransferFailure.onOutside { () throws(Errno) in
          try Syscalls.write(output.fd, bytes, at: position)
        }
        position += Int64(bytes.count)
        run.count(bytes: Int64(bytes.count))
      }
    } catch {
      run.count(bytes: size - position)
      throw error
    }
    return try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.finish() }
  }

  private func digest(of blob: Blob, _ size: Int64) throws(TransferFailure) -> [UInt8] {
    let hash = try TransferFailure.inCrypto { () throws(CryptoFailure) in try Digest() }
    try pieces(of: blob, size) { bytes throws(TransferFailure) in
      try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.update(bytes) }
    }
    return try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.finish() }
  }

  private func pieces(
    of blob: Blob, _ size: Int64,
    _ body: (UnsafeRawBufferPointer) throws(TransferFailure) -> Void
  ) throws(TransferFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: SourceContent.pieceByteCount, alignment: 64)
    defer {
      SecretBytes.wipe(buffer)
      buffer.deallocate()
    }
    var position: Int64 = 0
    while position < size {
      let count = try TransferFailure.onVault { () throws(StorageError) in
        try blob.read(into: buffer, at: position)
      }
      guard count > 0 else { throw .vault(.blob(.notAuthenticated)) }
      try body(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      position += Int64(count)
    }
  }

  // MARK: Attributes

  /// False where the disk doesn't take all of them.
  private func setAttributes(_ status: stat, from source: CInt, on target: CInt) -> Bool {
    var isComplete = true
    for stored in (try? Syscalls.extendedAttributeNames(source)) ?? [] {
      do {
        guard let name = try attributes.name(stored: stored) else { continue }
        let value = try attributes.decode(
          stored: try Syscalls.extendedAttribute(source, stored), name: name)
        try Syscalls.setExtendedAttribute(target, name, value)
      } catch { isComplete = false }
    }
    do throws(Errno) {
      try Syscalls.setMode(target, status.st_mode & 0o777)
      try Syscalls.setTimes(target, access: status.st_atim, modification: status.st_mtim)
    } catch { isComplete = false }
    return isComplete
  }

  // MARK: The end

  /// Further names of files, then the directories, the innermost first. No thread works any more.
  func finish(interrupted: Bool) {
    if !interrupted {
      let batch = ExportBatch(self)
      for (file, first) in tree.links { exportFurtherName(file, first, batch) }
      batch.finish()
    }
    for directory in tree.directories.reversed() {
      if interrupted, !directory.target.isKnown { continue }
      do throws(TransferFailure) {
        let opened = try TransferFailure.onOutside { () throws(Errno) in
          try directory.target.open()
        }
        if directory.isNamed {
          let source = directory.stored.fd.rawValue
          let status = try TransferFailure.inVault { () throws(Errno) in
            try Syscalls.status(source)
          }
          if !setAttributes(status, from: source, on: opened.fd) {
            tally.withLock { $0.incomplete += 1 }
          }
          tally.withLock { $0.folders += 1 }
        }
        try TransferFailure.onOutside { () throws(Errno) in try Syscalls.synchronize(opened.fd) }
      } catch { fail(directory.target.path, error) }
    }
    run.flush()
  }

  /// A hard link where the disk has them, else a copy.
  private func exportFurtherName(_ file: ExportedFile, _ first: Int, _ batch: ExportBatch) {
    do throws(TransferFailure) {
      let directory = try TransferFailure.onOutside { () throws(Errno) in
        try file.directory.target.open()
      }
      if let known = written.withLock({ $0[first] }) {
        let origin = try TransferFailure.onOutside { () throws(Errno) in
          try tree.files[first].directory.target.open()
        }
        do throws(Errno) {
          try Syscalls.link(known, in: origin.fd, as: file.entry.name, in: directory.fd)
          tally.withLock { $0.files += 1 }
          return
        } catch {}
      }
    } catch { return fail(file.path, error) }
    export(file, nil, batch)
    if batch.isFull { batch.finish() }
  }

  static func temporaryName() throws(TransferFailure) -> FileName {
    try TransferFailure.onVault { () throws(StorageError) in try BlobName.temporary() }
  }
}
