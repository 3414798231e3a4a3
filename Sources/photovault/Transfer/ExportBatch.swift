import Glibc
import Platform
import SecuredData
import Synchronization
import VaultStorage

/// Files of one thread that are written outside of the vault and wait for their names: what goes to
/// the disk together costs one wait for it. For one thread.
final class ExportBatch {
  struct Item {
    let file: ExportedFile
    /// Among the tree's files, if it is one of them.
    let index: Int?
    let output: ExportOutput
    /// SHA-256 of what was read from the vault.
    let digest: [UInt8]
    let size: Int64
    /// Whether the disk took all of its attributes.
    let isComplete: Bool
    let choice: Exporter.Choice
    let number: Int
  }

  private let exporter: Exporter
  private var pending = PendingItems<Item>()

  init(_ exporter: Exporter) { self.exporter = exporter }

  var isFull: Bool { pending.isFull }

  func add(_ item: Item) { pending.add(item, bytes: item.size) }

  /// On return each file has its name and was compared, or it was said why not.
  func finish() {
    let items = pending.takeAll()
    // The first waits for the disk, the rest goes with it. The disk tells of an error once.
    var unwritten: [Int: Errno] = [:]
    for (index, item) in items.enumerated() {
      do throws(Errno) { try item.output.synchronize() } catch { unwritten[index] = error }
    }
    for (index, item) in items.enumerated() {
      do throws(TransferFailure) {
        if let error = unwritten[index] { throw TransferFailure.outside(error) }
        guard try item.output.readBack() == item.digest else { throw TransferFailure.notVerified }
        try publish(item)
      } catch { exporter.fail(item.file.path, error) }
      exporter.run.count(files: 1)
    }
  }

  private func publish(_ item: Item) throws(TransferFailure) {
    var (choice, number) = (item.choice, item.number)
    while true {
      do throws(Errno) {
        switch choice {
        case .free(let name): try item.output.publish(as: name, replacing: false)
        case .replace(let name): try item.output.publish(as: name, replacing: true)
        case .skip, .present: return
        }
        break
      } catch {
        // Another thread, or program, was faster.
        guard error == .exists else { throw .outside(error) }
        (choice, number) = try exporter.choose(
          item.file, in: item.output.directory.fd, from: number
        ) { _, _ in false }
      }
    }
    if !item.isComplete { exporter.tally.withLock { $0.incomplete += 1 } }
    exporter.count(item.file, number, bytes: item.size)
    exporter.note(item.index, writtenAs: SplitName(item.file.entry.name).numbered(number))
  }
}

/// A file that is being written outside of the vault: without a name where the disk can do that,
/// else under a temporary one.
final class ExportOutput {
  let directory: ExportTarget.OpenDirectory
  private let descriptor: FileDescriptor
  private let temporaryName: FileName
  private var isNamed: Bool

  init(in directory: ExportTarget.OpenDirectory) throws(TransferFailure) {
    self.directory = directory
    let name = try Exporter.temporaryName()
    temporaryName = name
    var isNamed = false
    descriptor = try TransferFailure.onOutside { () throws(Errno) in
      do throws(Errno) { return try Syscalls.openTemporary(in: directory.fd, mode: 0o600) } catch {
        guard NamelessFile.isUnknown(error) else { throw error }
      }
      isNamed = true
      return try Syscalls.open(
        name, in: directory.fd, flags: O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    }
    self.isNamed = isNamed
  }

  deinit {
    if isNamed { try? Syscalls.unlink(temporaryName, in: directory.fd) }
  }

  var fd: CInt { descriptor.rawValue }

  func synchronize() throws(Errno) { try Syscalls.synchronizeData(fd) }

  /// SHA-256 of what the disk holds, once it was synchronized.
  func readBack() throws(TransferFailure) -> [UInt8] {
    let number = fd
    Syscalls.dropPages(of: number)
    let hash = try TransferFailure.inCrypto { () throws(CryptoFailure) in try Digest() }
    try SourceContent.read(number) { bytes throws(TransferFailure) in
      try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.update(bytes) }
    }
    return try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.finish() }
  }

  /// Throws EEXIST where the name is taken, unless it `replaces` that.
  func publish(as name: FileName, replacing: Bool) throws(Errno) {
    if !isNamed {
      if !replacing {
        return try Syscalls.link(descriptor: fd, as: name, in: directory.fd)
      }
      try Syscalls.link(descriptor: fd, as: temporaryName, in: directory.fd)
      isNamed = true
    }
    if replacing {
      try Syscalls.rename(temporaryName, in: directory.fd, to: name, in: directory.fd)
    } else {
      try Syscalls.renameToNewName(temporaryName, to: name, in: directory.fd)
    }
    isNamed = false
  }
}
