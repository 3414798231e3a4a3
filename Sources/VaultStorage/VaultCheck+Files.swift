import Glibc
import Platform
import SecuredData
import Synchronization

/// The look at each file.
extension VaultCheck {
  private static let attemptLimit = 6
  private static let pauseMilliseconds: UInt32 = 30

  /// The entries of one directory, handed out to threads one by one.
  final class Batch: Sendable {
    typealias Item = DirectoryScan.Entry

    let directory: VaultDirectory
    let place: EntryPlace
    let items: [Item]
    private let next = Atomic(0)

    init(_ directory: VaultDirectory, _ place: EntryPlace, _ items: [Item]) {
      self.directory = directory
      self.place = place
      self.items = items
    }

    func take() -> Item? {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      return index < items.count ? items[index] : nil
    }
  }

  func work() {
    while true {
      let batch: Batch? = state.withLock(
        when: { !$0.batches.isEmpty || !$0.isWalking || $0.isStopped },
        { $0.isStopped ? nil : $0.batches.first })
      guard let batch else { return }
      while let item = batch.take() {
        if isStopped.load(ordering: .relaxed) { return }
        do throws(StorageError) { try inspect(item, batch) } catch {
          // The pass over a blob ends so when all is to stop.
          if case .system(.interrupted) = error { return }
          return fail(error)
        }
      }
      state.withLock { state in state.batches.removeAll { $0 === batch } }
    }
  }

  private func inspect(_ item: Batch.Item, _ batch: Batch) throws(StorageError) {
    let place = batch.place.entry(item.stored, shownAs: item.name)
    if item.type == UInt8(DT_REG) {
      guard let found = try inspectBlob(item, in: batch.directory) else { return }
      seen.files.add(1, ordering: .relaxed)
      if case .missing = found.index { noteUnindexed(place) }
      if let (kind, reason) = found.damage {
        return add(kind, place, item.lost == nil ? reason : "\(reason), and its name is lost")
      }
      if case .wrong(let kind, let reason) = found.index { add(kind, place, reason) }
      switch (found.seal, found.index) {
      case (.right, _), (.wrong, .wrong(.replaced, _)): break
      case (.missing, _): noteUnsealed(place)
      case (.wrong, _): add(.moved, place, Self.movedReason)
      }
      if !found.attributes.isEmpty { addAttributes(found.attributes.count, place) }
    } else if item.type == UInt8(DT_LNK) {
      do throws(StorageError) {
        let target = try StorageError.onDisk { () throws(Errno) in
          try Syscalls.readSymbolicLink(item.stored, in: batch.directory.fd.rawValue)
        }
        _ = try batch.directory.decodeLinkTarget(target)
      } catch {
        switch error {
        case .damagedMetadata: return add(.link, place, "its target can't be decoded")
        case .system(.noSuchEntry), .system(.invalidArgument): return
        case .system(let reason):
          return add(.unreadable, place, "\(reason)".lowercasedFirst)
        default: throw error
        }
      }
    }
    if let lost = item.lost { add(lost.kind, place, lost.sentence) }
  }

  private func noteUnindexed(_ place: EntryPlace) {
    seen.unindexed.add(1, ordering: .relaxed)
    if isRepairing { state.withLock { $0.unindexed.append(place) } }
  }

  private static let movedReason =
    "a good photo that was not stored under this name, put there by another program"

  private func noteUnsealed(_ place: EntryPlace) {
    seen.unsealed.add(1, ordering: .relaxed)
    if isRepairing { state.withLock { $0.unsealed.append(place) } }
  }

  /// Names that can't be computed, such as those of conflict copies, are not what a seal is for.
  private func seal(
    of item: Batch.Item, _ found: BlobInspection, on file: CInt, _ status: stat,
    in directory: VaultDirectory
  ) throws(StorageError) -> PlaceSeal.Standing {
    guard let header = found.header, let name = item.name,
      try directory.storedName(name, kind: .blob).entry == item.stored
    else { return .right }
    let told = PlaceSeal.Told(size: found.plaintextSize, status)
    return try PlaceSeal(header, told, of: name, in: directory).standing(on: file)
  }

  /// nil when the file is gone.
  private func inspectBlob(
    _ item: Batch.Item, in directory: VaultDirectory
  ) throws(StorageError) -> BlobInspection? {
    let stored = item.stored
    var attempt = 0
    while true {
      attempt += 1
      var read = 0
      do throws(StorageError) {
        let file = try StorageError.onDisk { () throws(Errno) in
          try BlobSize.open(stored, in: directory.fd.rawValue)
        }
        let number = file.rawValue
        let status = try StorageError.onDisk { () throws(Errno) in try Syscalls.status(number) }
        let identity = VaultContext.FileIdentity(
          device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
        if status.st_nlink > 1, let known = state.withLock({ $0.links[identity] }) { return known }
        var found = try BlobInspection(of: number, keys: context.keys) {
          count throws(StorageError) in
          read += count
          seen.bytes.add(Int64(count), ordering: .relaxed)
          if isStopped.load(ordering: .relaxed) { throw .system(.interrupted) }
        }
        if status.st_nlink == 1 {
          found.seal = try seal(of: item, found, on: number, status, in: directory)
        }
        var isSure = found.isClean
        if !isSure { isSure = try isUnchanged(stored, in: directory, since: status) }
        if isSure {
          if status.st_nlink > 1 { state.withLock { $0.links[identity] = found } }
          return found
        }
      } catch {
        switch error {
        case .system(.noSuchEntry), .system(.tooManySymbolicLinks): return nil
        case .system(.interrupted): throw error
        case .system(let reason):
          return BlobInspection(damage: (.unreadable, "\(reason)".lowercasedFirst))
        default: throw error
        }
      }
      seen.bytes.subtract(Int64(read), ordering: .relaxed)
      if attempt == Self.attemptLimit {
        return BlobInspection(damage: (.unreadable, "it changes all the time"))
      }
      usleep(1000 * Self.pauseMilliseconds * UInt32(attempt))
    }
  }

  /// Whether the name still stands for the very file that was looked at. Throws ENOENT.
  private func isUnchanged(
    _ stored: FileName, in directory: VaultDirectory, since status: stat
  ) throws(StorageError) -> Bool {
    let now = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.status(of: stored, in: directory.fd.rawValue)
    }
    return BlobIdentity(now) == BlobIdentity(status)
  }
}

extension BlobInspection {
  init(damage: (kind: VaultFinding.Kind, reason: String)) { self.damage = damage }
}
