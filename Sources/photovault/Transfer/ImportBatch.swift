import Glibc
import Platform
import SecuredData
import Synchronization
import VaultStorage

/// Files of one thread that are written and wait for their names: what goes to the disk together
/// costs one wait for it. For one thread.
final class ImportBatch {
  struct Item {
    enum Work {
      /// Written, without a name.
      case blob(WrittenBlob, [UInt8], plaintextSize: Int64, replacing: StoredName?)
      /// Made.
      case link
      /// There before.
      case present(StoredName, EntryKind)
      /// Left out, for this file holds the same.
      case duplicate(FileName)
    }

    let file: SourceFile
    /// Of the source, as it was read.
    let status: stat
    let name: FileName
    let place: Importer.Place
    let work: Work
    var storedSize: Int64 = 0
    /// Something of it was not kept, so the source stays.
    var isIncomplete = false

    init(
      _ file: SourceFile, _ status: stat, _ name: FileName, _ place: Importer.Place, _ work: Work
    ) {
      self.file = file
      self.status = status
      self.name = name
      self.place = place
      self.work = work
    }

    var path: FileName { place.path(name) }
  }

  private let importer: Importer
  private var pending = PendingItems<Item>()

  init(_ importer: Importer) { self.importer = importer }

  var isFull: Bool { pending.isFull }

  func add(_ item: Item) { pending.add(item, bytes: item.file.size) }

  /// On return each file is in the vault, compared and on the disk, or it was said why not.
  func finish() {
    let items = pending.takeAll()
    // The first waits for the disk, the rest goes with it. The disk tells of an error once.
    var unwritten: [Int: StorageError] = [:]
    for (index, item) in items.enumerated() {
      guard case .blob(let written, _, _, _) = item.work else { continue }
      do throws(StorageError) { try written.synchronize() } catch { unwritten[index] = error }
    }
    var named: [Item] = []
    for (index, item) in items.enumerated() {
      do throws(TransferFailure) {
        if let error = unwritten[index] { throw TransferFailure.vault(error) }
        try name(item)
        named.append(item)
      } catch { fail(item, error) }
    }
    var failures: [ObjectIdentifier: TransferFailure] = [:]
    var synchronized: Set<ObjectIdentifier> = []
    for item in named {
      let directory = item.place.directory
      let identity = ObjectIdentifier(directory)
      if needsEntry(item), synchronized.insert(identity).inserted {
        do throws(StorageError) { try directory.synchronize() } catch {
          failures[identity] = .vault(error)
        }
      }
      if needsEntry(item), let failure = failures[identity] {
        fail(item, failure)
      } else {
        finish(item)
      }
    }
  }

  /// Whether it counts on what its directory holds now.
  private func needsEntry(_ item: Item) -> Bool {
    switch item.work {
    case .blob, .link: true
    case .present: importer.options.moves
    case .duplicate: false
    }
  }

  private func fail(_ item: Item, _ failure: TransferFailure) {
    item.place.target.release([item.name], wereWritten: false)
    if case .blob(_, let digest, _, _) = item.work { importer.contents.giveUp(digest) }
    importer.fail(item.file.path, failure)
  }

  /// Compares what the disk has with what was read, and gives it its name.
  private func name(_ item: Item) throws(TransferFailure) {
    let directory = item.place.directory
    switch item.work {
    case .blob(let written, let digest, let size, let replaced):
      do throws(StorageError) {
        let found = try written.readBack(keys: importer.vault.keys)
        guard found.digest == digest, found.plaintextSize == size else {
          throw StorageError.blob(.notAuthenticated)
        }
      } catch {
        if case .blob = error { throw .notVerified }
        throw .vault(error)
      }
      try TransferFailure.onVault { () throws(StorageError) in
        let stored = try directory.storedName(item.name, kind: .blob)
        // What is replaced may be spelt in another way: a conflict copy of a sync program.
        let isBlob = replaced.map { $0.entry.hasSuffix(".securedData") } ?? false
        let target = AtomicReplace.Target(
          directory: directory, stored: isBlob ? replaced ?? stored : stored, name: item.name)
        do throws(StorageError) {
          try AtomicReplace.publish(written, as: [target], replacing: isBlob)
        } catch {
          if !isBlob { directory.removeCompanion(stored) }
          throw error
        }
        // A link whose name the file has taken now.
        if let replaced, !isBlob { try directory.remove(replaced) }
      }
    case .present(let stored, let kind):
      guard importer.options.moves, kind == .blob else { return }
      try TransferFailure.onVault { () throws(StorageError) in
        let file = try directory.openFile(stored)
        _ = try BlobDigest(onDisk: file.rawValue, keys: importer.vault.keys)
      }
    case .duplicate(let twin):
      if importer.options.moves { try importer.contents.synchronize(twin) }
    case .link:
      break
    }
  }

  private func finish(_ item: Item) {
    let isNew = if case .present = item.work { false } else { true }
    item.place.target.release([item.name], wereWritten: isNew)
    importer.run.count(files: 1)
    let path = item.path
    switch item.work {
    case .blob(_, let digest, let size, _):
      var twin: FileName?
      if item.file.mayBeDuplicate {
        twin =
          importer.contents.noteWritten(digest, as: path)
          ?? importer.contents.twin(digest: digest, storedSize: item.storedSize, except: path)
      }
      importer.tally.withLock { tally in
        tally.files += 1
        tally.bytes += size
        if item.isIncomplete { tally.incomplete += 1 }
        if item.place.isNumbered { tally.renamed += 1 }
        if let twin { tally.duplicates.append((path, twin)) }
      }
    case .link:
      importer.tally.withLock { tally in
        tally.links += 1
        if item.place.isNumbered { tally.renamed += 1 }
      }
    case .present: importer.tally.withLock { $0.present += 1 }
    case .duplicate(let twin):
      importer.tally.withLock { $0.leftOut.append((item.file.path, twin)) }
    }
    if importer.options.moves, !item.isIncomplete { removeSource(of: item) }
  }

  /// The source goes if it is still what was read.
  private func removeSource(of item: Item) {
    let path = item.file.path
    do throws(TransferFailure) {
      guard try SourceContent.isSame(item.status, item.file.status()) else {
        importer.run.say("not removed: \(path): it changed after it was read")
        return importer.tally.withLock { $0.kept += 1 }
      }
      try item.file.inPlace { directory, name throws(TransferFailure) in
        try TransferFailure.onOutside { () throws(Errno) in
          try Syscalls.unlink(name, in: directory)
        }
      }
      item.file.directory?.lostSomething.store(true, ordering: .relaxed)
    } catch {
      importer.run.say("not removed: \(path): \(error.sentence)")
      importer.tally.withLock { $0.kept += 1 }
    }
  }
}

extension VaultDirectory {
  /// Removes an entry that isn't a directory.
  fileprivate func remove(_ stored: StoredName) throws(StorageError) {
    do throws(Errno) { try Syscalls.unlink(stored.entry, in: fd.rawValue) } catch {
      throw .system(error)
    }
    removeCompanion(stored)
  }
}
