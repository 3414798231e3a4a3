import Glibc
import Platform
import Synchronization
import VaultStorage

/// A directory of the vault that files are put into; it is made when it is first needed. For any
/// thread at once.
///
/// Locks: `state`, then that of the directory above; held while the directory is looked up or made.
final class TargetDirectory: Sendable {
  private let vault: Vault
  private let parent: TargetDirectory?
  private let name: FileName
  private let policy: ConflictPolicy
  private let state = ConditionLock(State())
  private let children = Mutex<[FileName: TargetDirectory]>([:])

  private struct State {
    /// Who works in it keeps it open.
    weak var opened: VaultDirectory?
    /// What it is called; another name where a file has the one that was wanted.
    var name: FileName?
    var names = Names()
  }

  /// Names of this import in this directory.
  private struct Names {
    /// The disk doesn't have them yet.
    var reserved: Set<FileName> = []
    /// Those that were written by this import.
    var written: Set<FileName> = []
  }

  private init(
    _ vault: Vault, parent: TargetDirectory?, name: FileName, policy: ConflictPolicy
  ) {
    self.vault = vault
    self.parent = parent
    self.name = name
    self.policy = policy
  }

  static func top(of vault: Vault, policy: ConflictPolicy) -> TargetDirectory {
    TargetDirectory(vault, parent: nil, name: .empty, policy: policy)
  }

  func child(_ name: FileName) -> TargetDirectory {
    children.withLock { children in
      if let known = children[name] { return known }
      let child = TargetDirectory(vault, parent: self, name: name, policy: policy)
      children[name] = child
      return child
    }
  }

  /// At the end: those below refer to this one, and all to the vault and its keys.
  func letGo() {
    var all: [FileName: TargetDirectory] = [:]
    children.withLock { swap(&$0, &all) }
    for child in all.values { child.letGo() }
  }

  /// As it shows, for messages.
  var path: FileName {
    guard let parent else { return .empty }
    return parent.path.appending(state.withLock { $0.name } ?? name)
  }

  /// Whether it was opened, and so is there.
  var isKnown: Bool { parent == nil || state.withLock { $0.name != nil } }

  /// Opens it; makes it where it is missing, and its entry is on the disk then.
  func open() throws(StorageError) -> VaultDirectory {
    guard let parent else { return vault.root }
    return try state.withLock { state throws(StorageError) in
      if let known = state.opened { return known }
      let above = try parent.open()
      let (opened, shown) = try findOrMake(in: above, parent, known: state.name)
      state.opened = opened
      state.name = shown
      return opened
    }
  }

  private func findOrMake(
    in above: VaultDirectory, _ parent: TargetDirectory, known: FileName?
  ) throws(StorageError) -> (VaultDirectory, FileName) {
    let split = SplitName(base: name.bytes, tail: [])
    var number = 1
    while true {
      let candidate = known ?? split.numbered(number)
      number += 1
      if let found = try above.find(candidate) {
        if found.status.st_mode & S_IFMT == mode_t(Glibc.S_IFDIR) {
          return (try above.open(child: found.stored), candidate)
        }
        guard policy == .rename, known == nil else { throw .system(.notADirectory) }
        continue
      }
      guard parent.reserve([candidate]) else { continue }
      defer { parent.release([candidate], wereWritten: false) }
      let stored = try above.makeDirectory(candidate, mode: 0o700, owner: vault.newOwner)
      try above.synchronize()
      return (try above.open(child: stored), candidate)
    }
  }

  // MARK: Names

  /// False where one of them is on its way; else they are the caller's until `release`.
  func reserve(_ names: [FileName]) -> Bool {
    state.withLock { state in
      guard state.names.reserved.isDisjoint(with: names) else { return false }
      state.names.reserved.formUnion(names)
      return true
    }
  }

  func release(_ names: [FileName], wereWritten: Bool) {
    state.withLock { state in
      state.names.reserved.subtract(names)
      if wereWritten { state.names.written.formUnion(names) }
    }
  }

  /// Whether this import has put a file there.
  func wasWritten(_ name: FileName) -> Bool { state.withLock { $0.names.written.contains(name) } }
}

extension Vault {
  /// Whom new files are given to: root leaves no files in a vault that its owner can't read.
  var newOwner: (user: UInt32, group: UInt32)? {
    guard geteuid() == 0, let status = try? Syscalls.status(root.fd.rawValue) else { return nil }
    return (status.st_uid, status.st_gid)
  }
}
