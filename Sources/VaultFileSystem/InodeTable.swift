import Glibc
import Platform
import Synchronization
import VaultStorage

/// All inodes that the kernel counts lookups of, or that handles hold.
///
/// Locks: its own, innermost of all but an inode's.
final class InodeTable: Sendable {
  private struct Known {
    let inode: Inode
    /// What the kernel will give back with FORGET.
    var lookupCount: UInt64
  }

  /// A directory that the kernel forgot while links of open files still lead through it: looked
  /// up again, it has to be the same object, for its lock and its new files are there.
  private struct Resting {
    weak var inode: Inode?
    let number: UInt64
  }

  private struct State {
    var known: [NodeID: Known] = [:]
    var resting: [BackingKey: Resting] = [:]
    /// The size of `resting` at which those that are gone are swept out.
    var restingLimit = Self.leastRestingLimit
    static let leastRestingLimit = 64
    var byKey: [BackingKey: NodeID] = [:]
    /// The `st_ino` in use: the backing disk gives a number again as soon as a commit freed it.
    var numbers: Set<UInt64> = []
    var nextID: NodeID = Inode.rootID
    var nextNumber: UInt64 = 1 << 63
  }

  private let state = Mutex(State())

  /// Throws ESTALE for what was forgotten.
  func inode(_ node: NodeID) throws(FileSystemError) -> Inode {
    guard let inode = state.withLock({ $0.known[node]?.inode }) else { throw .system(.stale) }
    return inode
  }

  var all: [Inode] { state.withLock { $0.known.values.map(\.inode) } }

  var lookupTotal: UInt64 { state.withLock { $0.known.values.reduce(0) { $0 + $1.lookupCount } } }

  /// Makes the inode of a new node, counted once. `number` is what the disk calls it.
  func insert(
    kind: mode_t, number: UInt64, key: BackingKey?, directory: DirectoryNode?
  ) -> Inode {
    state.withLock { state in
      Self.insert(&state, kind: kind, number: number, key: key, directory: directory)
    }
  }

  /// The inode of what the disk has under `status`, counted once more.
  func findOrInsert(_ status: stat) -> Inode {
    let key = BackingKey(status)
    let kind = status.st_mode & S_IFMT
    return state.withLock { state in
      if let node = state.byKey[key], let known = state.known[node], known.inode.kind == kind {
        state.known[node]?.lookupCount += 1
        return known.inode
      }
      if kind == S_IFDIR, let inode = Self.wake(&state, key) { return inode }
      return Self.insert(
        &state, kind: kind, number: UInt64(status.st_ino), key: key,
        directory: kind == S_IFDIR ? DirectoryNode(nil) : nil)
    }
  }

  func find(_ key: BackingKey) -> Inode? {
    state.withLock { state in state.byKey[key].flatMap { state.known[$0]?.inode } }
  }

  func retain(_ inode: Inode) {
    state.withLock { state in state.known[inode.nodeID]?.lookupCount += 1 }
  }

  /// Takes `count` lookups back; at none the inode goes, unless a handle holds it.
  func forget(_ node: NodeID, count: UInt64) {
    state.withLock { state in
      guard let known = state.known[node] else { return }
      state.known[node]?.lookupCount = known.lookupCount - min(count, known.lookupCount)
      Self.dropIfUnused(&state, node)
    }
  }

  /// To be called when an inode's last handle is gone.
  func dropIfUnused(_ inode: Inode) {
    state.withLock { Self.dropIfUnused(&$0, inode.nodeID) }
  }

  /// The inode's backing file is another one from now on; false if that one is a known inode's.
  @discardableResult
  func rekey(_ inode: Inode, to key: BackingKey?) -> Bool {
    state.withLock { state in
      if let key, let owner = state.byKey[key], owner != inode.nodeID { return false }
      let old = inode.state.withLock { inodeState in
        let old = inodeState.key
        inodeState.key = key
        return old
      }
      if let old, state.byKey[old] == inode.nodeID { state.byKey[old] = nil }
      if let key, state.known[inode.nodeID] != nil { state.byKey[key] = inode.nodeID }
      return true
    }
  }

  private static func insert(
    _ state: inout State, kind: mode_t, number: UInt64, key: BackingKey?, directory: DirectoryNode?
  ) -> Inode {
    let node = state.nextID
    state.nextID += 1
    var shown = number
    if !state.numbers.insert(shown).inserted {
      shown = state.nextNumber
      state.nextNumber += 1
      state.numbers.insert(shown)
    }
    let inode = Inode(
      nodeID: node, kind: kind, number: shown, key: key, directory: directory)
    state.known[node] = Known(inode: inode, lookupCount: 1)
    if let key { state.byKey[key] = node }
    return inode
  }

  private static func dropIfUnused(_ state: inout State, _ node: NodeID) {
    guard let known = state.known[node], known.lookupCount == 0, node != Inode.rootID else {
      return
    }
    let inode = known.inode
    let (isHeld, key) = inode.state.withLock { ($0.file != nil, $0.key) }
    // New files in it hold a directory, too.
    let hasNewFiles = inode.directory?.pending.withLock { !$0.isEmpty } ?? false
    if isHeld || hasNewFiles { return }
    state.known[node] = nil
    if let key, state.byKey[key] == node {
      state.byKey[key] = nil
      if inode.isDirectory { return rest(&state, inode, key) }
    }
    state.numbers.remove(inode.number)
  }

  private static func rest(_ state: inout State, _ inode: Inode, _ key: BackingKey) {
    if state.resting.count >= state.restingLimit {
      for (key, resting) in state.resting where resting.inode == nil {
        state.resting[key] = nil
        state.numbers.remove(resting.number)
      }
      state.restingLimit = max(State.leastRestingLimit, 2 * state.resting.count)
    }
    state.resting[key] = Resting(inode: inode, number: inode.number)
  }

  /// The resting directory `key`, known and counted once again; nil when there is none.
  private static func wake(_ state: inout State, _ key: BackingKey) -> Inode? {
    guard let resting = state.resting.removeValue(forKey: key) else { return nil }
    guard let inode = resting.inode else {
      state.numbers.remove(resting.number)
      return nil
    }
    state.known[inode.nodeID] = Known(inode: inode, lookupCount: 1)
    state.byKey[key] = inode.nodeID
    return inode
  }
}
