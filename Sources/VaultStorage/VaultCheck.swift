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

  let seen = Seen()
  let isStopped = Atomic(false)
  let state = ConditionLock(State())

  struct State {
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

  final class Seen: Sendable {
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

  func stop() {
    isStopped.store(true, ordering: .relaxed)
    state.withLock { $0.isStopped = true }
  }

  func fail(_ error: StorageError) {
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

  func add(_ kind: VaultFinding.Kind, _ place: EntryPlace, _ reason: String) {
    let finding = VaultFinding(kind, place, reason)
    state.withLock { state in
      switch kind {
      case .leftover, .orphan: state.debris.append(finding)
      default: state.findings.append(finding)
      }
    }
  }
}

extension VaultFinding {
  func isBefore(_ other: VaultFinding) -> Bool {
    storedPath.bytes == other.storedPath.bytes
      ? kind.rawValue < other.kind.rawValue
      : storedPath.bytes.lexicographicallyPrecedes(other.storedPath.bytes)
  }
}
