import Glibc
package import Platform
import SecuredData
import Synchronization

/// A look at all of a vault: every blob whole, every name, link, attribute, chunk index and
/// `directory.id`. It changes nothing and goes on beside a mount: what changes while it is looked
/// at is looked at again.
///
/// What it can't see: an older version of a photo that was put back together with its attributes,
/// and files that were deleted. All that is there is genuine then.
package final class VaultCheck: Sendable {
  let context: VaultContext
  let root: SharedDescriptor
  package let isRepairing: Bool

  private let seen = Seen()
  private let isStopped = Atomic(false)
  private let state = ConditionLock(State())

  private static let batchLimit = 8
  private static let attemptLimit = 6
  private static let pauseMilliseconds: UInt32 = 30

  private struct State {
    var findings: [VaultFinding] = []
    /// No finding if somebody is writing them or about to use them.
    var debris: [VaultFinding] = []
    var unindexed: [EntryPlace] = []
    var unsealed: [EntryPlace] = []
    var batches: [Batch] = []
    var isWalking = true
    var isStopped = false
    var threadCount = 0
    var failure: StorageError?
    /// What files with several names were, looked at under the first of them.
    var links: [VaultContext.FileIdentity: BlobInspection] = [:]
  }

  private final class Seen: Sendable {
    let files = Atomic(0)
    let bytes = Atomic<Int64>(0)
    let directories = Atomic(0)
    let unindexed = Atomic(0)
    let unsealed = Atomic(0)
    let setAside = Atomic(0)
    let expectedFiles = Atomic(-1)
    let expectedBytes = Atomic<Int64>(0)
  }

  package struct Progress: Sendable {
    package let counts: VaultCounts
    /// nil until it is known.
    package let expected: (files: Int, bytes: Int64)?
  }

  package struct Report: Sendable {
    package internal(set) var counts: VaultCounts
    /// By stored path.
    package internal(set) var findings: [VaultFinding]
    /// False where it was stopped before its end.
    package internal(set) var isComplete: Bool
    var unindexed: [EntryPlace]
    var unsealed: [EntryPlace]
  }

  private init(context: VaultContext, root: SharedDescriptor, isRepairing: Bool) {
    self.context = context
    self.root = root
    self.isRepairing = isRepairing
  }

  /// For `repair` the vault's lock is taken: throws `.alreadyOpen` while it is mounted. Throws as
  /// `Vault.open`, and `.notAVault` if it has another id.
  package static func open(
    at path: String, id: [UInt8], password: borrowing SecretBytes, repairing: Bool
  ) throws(StorageError) -> VaultCheck {
    try open(at: path, repairing: repairing) { superblock throws(StorageError) in
      guard superblock.id == id else { throw .notAVault("another vault is there") }
      return try VaultKeys(password: password, salts: superblock.salts, vaultID: superblock.id)
    }
  }

  static func open(
    at path: String, repairing: Bool,
    deriving derive: (Superblock) throws(StorageError) -> VaultKeys
  ) throws(StorageError) -> VaultCheck {
    let directory = try Vault.openDirectory(path)
    let file = try Vault.openSuperblock(in: directory.rawValue, readOnly: !repairing)
    if repairing { try Vault.lock(file) }
    let superblock = try Vault.read(file)
    let keys = try derive(superblock)
    guard try superblock.isGenuine(keys) else { throw .wrongRecoveryKey }
    let context = VaultContext(
      keys: keys, names: superblock.names, isReadOnly: !repairing, cleans: false,
      superblock: file)
    return VaultCheck(
      context: context, root: SharedDescriptor(directory), isRepairing: repairing)
  }

  /// Looks at everything, once. `tick` is called in this thread, with what was found since the last
  /// time, and stops it by false.
  package func run(
    threadCount: Int = max(1, Int(sysconf(CInt(_SC_NPROCESSORS_ONLN)))), measuring: Bool = false,
    everyMilliseconds milliseconds: Int = 100,
    _ tick: (Progress, [VaultFinding]) -> Bool = { _, _ in true }
  ) throws(StorageError) -> Report {
    let wasInUse = try context.isLockedElsewhere()
    var threads = [try start("check-walk") { $0.walk() }]
    for _ in 0..<threadCount {
      // With one thread it takes longer, with none it fails.
      do throws(StorageError) { threads.append(try start("check-blob") { $0.work() }) } catch {
        if threads.count > 1 { break }
        stop()
        for thread in threads { thread.join() }
        throw error
      }
    }
    if measuring, let thread = try? start("check-measure", { $0.measure() }) {
      threads.append(thread)
    }
    var reported = 0
    func report() -> Bool {
      let news = state.withLock { Array($0.findings[reported...]) }
      reported += news.count
      return tick(progress, news)
    }
    while !state.withLock(
      when: { $0.threadCount == 0 }, forMilliseconds: milliseconds, { _ in })
    {
      if !report() { stop() }
    }
    for thread in threads { thread.join() }
    _ = report()
    var isInUse = try context.isLockedElsewhere()
    if wasInUse { isInUse = true }
    return try state.withLock { [isInUse] state throws(StorageError) in
      if let failure = state.failure { throw failure }
      let findings = state.findings + (isInUse ? [] : state.debris)
      return Report(
        counts: counts, findings: findings.sorted { $0.isBefore($1) },
        isComplete: !state.isStopped, unindexed: state.unindexed, unsealed: state.unsealed)
    }
  }

  private func start(
    _ name: StaticString, _ body: @escaping @Sendable (VaultCheck) -> Void
  ) throws(StorageError) -> NativeThread {
    state.withLock { $0.threadCount += 1 }
    let job = SyscallFaults.inherited { body(self) }
    do throws(Errno) {
      return try NativeThread(named: name) {
        job()
        self.state.withLock { $0.threadCount -= 1 }
      }
    } catch {
      state.withLock { $0.threadCount -= 1 }
      throw .system(error)
    }
  }

  private func stop() {
    isStopped.store(true, ordering: .relaxed)
    state.withLock { $0.isStopped = true }
  }

  private func fail(_ error: StorageError) {
    state.withLock { if $0.failure == nil { $0.failure = error } }
    stop()
  }

  private var counts: VaultCounts {
    VaultCounts(
      files: seen.files.load(ordering: .relaxed), bytes: seen.bytes.load(ordering: .relaxed),
      directories: seen.directories.load(ordering: .relaxed),
      unindexed: seen.unindexed.load(ordering: .relaxed),
      unsealed: seen.unsealed.load(ordering: .relaxed),
      setAside: seen.setAside.load(ordering: .relaxed))
  }

  private var progress: Progress {
    let files = seen.expectedFiles.load(ordering: .acquiring)
    return Progress(
      counts: counts,
      expected: files < 0 ? nil : (files, seen.expectedBytes.load(ordering: .relaxed)))
  }

  private func add(_ kind: VaultFinding.Kind, _ place: EntryPlace, _ reason: String) {
    let finding = VaultFinding(kind, place, reason)
    state.withLock { state in
      switch kind {
      case .leftover, .orphan: state.debris.append(finding)
      default: state.findings.append(finding)
      }
    }
  }
}

// MARK: Directories

extension VaultCheck {
  private struct Visit {
    /// nil for the vault's own directory.
    let parent: VaultDirectory?
    let place: EntryPlace
  }

  private func walk() {
    var visits = [Visit(parent: nil, place: .root)]
    while let visit = visits.popLast(), !isStopped.load(ordering: .relaxed) {
      do throws(StorageError) { try scan(visit, &visits) } catch {
        guard case .system(let reason) = error else {
          fail(error)
          break
        }
        // Gone or something else by now: another program was here.
        if visit.parent != nil, [.noSuchEntry, .notADirectory].contains(reason) { continue }
        add(.unreadable, visit.place, "\(reason)".lowercasedFirst)
      }
    }
    state.withLock { $0.isWalking = false }
  }

  private func scan(_ visit: Visit, _ visits: inout [Visit]) throws(StorageError) {
    let place = visit.place
    let descriptor = try open(visit)
    let isRoot = visit.parent == nil
    let scan = try DirectoryScan(descriptor, isRoot: isRoot, context: context)
    seen.directories.add(1, ordering: .relaxed)
    if let fault = scan.fault { add(.directory, place, fault.sentence(scan.lost.count)) }
    report(scan, place)
    let fd = scan.directory.fd.rawValue
    let attributes = try BlobInspection.damagedAttributes(of: fd, context.keys)
    if !attributes.isEmpty { addAttributes(attributes.count, place) }
    if isRoot { try countSetAside(fd) }

    var items: [Batch.Item] = []
    for entry in scan.entries {
      if entry.type != UInt8(DT_DIR) {
        items.append(entry)
        continue
      }
      let inner = place.entry(entry.stored, shownAs: entry.name)
      if let lost = entry.lost { add(lost.kind, inner, lost.sentence) }
      visits.append(Visit(parent: scan.directory, place: inner))
    }
    if items.isEmpty { return }
    let batch = Batch(scan.directory, place, items)
    state.withLock(
      when: { $0.batches.count < Self.batchLimit || $0.isStopped }, { $0.batches.append(batch) })
  }

  private func open(_ visit: Visit) throws(StorageError) -> FileDescriptor {
    try StorageError.onDisk { () throws(Errno) in
      guard let parent = visit.parent, let stored = visit.place.components.last else {
        return try Syscalls.duplicate(root.rawValue)
      }
      return try Syscalls.open(
        stored, in: parent.fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
  }

  private func report(_ scan: DirectoryScan, _ place: EntryPlace) {
    for name in scan.leftovers {
      add(.leftover, place.entry(name, shownAs: nil), "left by a write that was interrupted")
    }
    for name in scan.orphans {
      add(.orphan, place.entry(name, shownAs: nil), "the name of an entry that is gone")
    }
    for name in scan.strangers {
      add(.stranger, place.entry(name, shownAs: nil), "not the vault's; left alone")
    }
  }

  private func addAttributes(_ count: Int, _ place: EntryPlace) {
    let words = count == 1 ? "an extended attribute" : "\(count) extended attributes"
    add(.attribute, place, "\(words) of it can't be decoded; the contents are good")
  }

  private func countSetAside(_ root: CInt) throws(StorageError) {
    let count = try SetAside.count(in: root)
    seen.setAside.store(count, ordering: .relaxed)
  }
}

// MARK: Files

extension VaultCheck {
  /// The entries of one directory, handed out to threads one by one.
  private final class Batch: Sendable {
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

  private func work() {
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
    of item: Batch.Item, _ found: BlobInspection, on file: CInt, in directory: VaultDirectory
  ) throws(StorageError) -> PlaceSeal.Standing {
    guard let header = found.header, let name = item.name,
      try directory.storedName(name, kind: .blob).entry == item.stored
    else { return .right }
    return try PlaceSeal(header, size: found.plaintextSize, of: name, in: directory)
      .standing(on: file)
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
          found.seal = try seal(of: item, found, on: number, in: directory)
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

// MARK: How much there is

extension VaultCheck {
  /// Names and sizes only, for who wants to know how long it takes.
  private func measure() {
    var files = 0
    var bytes: Int64 = 0
    var visits: [(parent: SharedDescriptor, name: FileName)] = [(root, FileName("."))]
    while let visit = visits.popLast(), !isStopped.load(ordering: .relaxed) {
      guard
        let directory = try? Syscalls.open(
          visit.name, in: visit.parent.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      else { continue }
      let shared = SharedDescriptor(directory)
      for entry in (try? DirectoryEntries.read(shared.rawValue)) ?? [] {
        guard let form = StoredForm(entry, mode: context.names) else { continue }
        if entry.type == UInt8(DT_DIR) {
          visits.append((shared, entry.name))
        } else if form.kind == .blob,
          let status = try? Syscalls.status(of: entry.name, in: shared.rawValue)
        {
          files += 1
          bytes += Int64(status.st_size)
        }
      }
    }
    seen.expectedBytes.store(bytes, ordering: .relaxed)
    seen.expectedFiles.store(files, ordering: .releasing)
  }
}

extension BlobInspection {
  init(damage: (kind: VaultFinding.Kind, reason: String)) { self.damage = damage }
}

extension VaultFinding {
  func isBefore(_ other: VaultFinding) -> Bool {
    storedPath.bytes == other.storedPath.bytes
      ? kind.rawValue < other.kind.rawValue
      : storedPath.bytes.lexicographicallyPrecedes(other.storedPath.bytes)
  }
}
