import Glibc
import Platform
import Synchronization
import VaultStorage

/// All inodes that the kernel counts lookups of, or that handles hold.
///
/// Locks: its own, innermost of all but an inode's.
final class InodeTable: Sendable {
  private struct Slot {
    var inode: Inode?
    /// What the kernel will give back with FORGET.
    var lookupCount: UInt64 = 0
    /// Looked up since `leastUsed` came by.
    var isRecent = false
  }

  /// A directory that the kernel forgot while links of open files still lead through it: looked
  /// up again, it has to be the same object, for its lock and its new files are there.
  private struct Resting {
    weak var inode: Inode?
    let number: UInt64
    /// Its own until it is forgotten altogether, since its node's ID names it.
    let slot: Int
  }

  private struct State {
    /// By the lower half of a node's ID. There is none that ends in 0, and the root is 1.
    var slots = [Slot()]
    var freeSlots: [UInt32] = []
    /// The upper half of the next node's ID: an ID is not used twice.
    var nextSerial: UInt64 = 0
    var byKey = KeyIndex()
    var resting: [BackingKey: Resting] = [:]
    /// The size of `resting` at which those that are gone are swept out.
    var restingLimit = Self.leastRestingLimit
    static let leastRestingLimit = 64
    /// The `st_ino` in use that aren't their stored file's own number: the backing disk gives a
    /// number again as soon as a commit freed it.
    var displacedNumbers: Set<UInt64> = []
    var nextNumber: UInt64 = 1 << 63
    /// Where `leastUsed` goes on.
    var hand = 0

    var count: Int { slots.count - 1 - freeSlots.count - resting.count }

    mutating func giveBack(slot: Int, number: UInt64) {
      freeSlots.append(UInt32(slot))
      displacedNumbers.remove(number)
    }

    func slot(of node: NodeID) -> Int? {
      let slot = Int(node & 0xFFFF_FFFF)
      guard slot < slots.count, slots[slot].inode?.nodeID == node else { return nil }
      return slot
    }
  }

  /// Slots by stored file. Nearly all are on the vault's own disk, so that their inode number is
  /// enough.
  private struct KeyIndex {
    var device: UInt64?
    private var here: [UInt64: UInt32] = [:]
    private var elsewhere: [BackingKey: UInt32] = [:]

    subscript(key: BackingKey) -> Int? {
      get { (key.device == device ? here[key.inode] : elsewhere[key]).map { Int($0) } }
      set {
        let slot = newValue.map { UInt32($0) }
        if key.device == device { here[key.inode] = slot } else { elsewhere[key] = slot }
      }
    }
  }

  private let state = Mutex(State())
  let openDirectories = OpenDirectories()

  /// Throws ESTALE for what was forgotten.
  func inode(_ node: NodeID) throws(FileSystemError) -> Inode {
    let inode = state.withLock { state in state.slot(of: node).flatMap { state.slots[$0].inode } }
    guard let inode else { throw .system(.stale) }
    return inode
  }

  var all: [Inode] { state.withLock { $0.slots.compactMap(\.inode) } }

  var lookupTotal: UInt64 { state.withLock { $0.slots.reduce(0) { $0 + $1.lookupCount } } }

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
      if let slot = state.byKey[key], let inode = state.slots[slot].inode, inode.kind == kind {
        state.slots[slot].lookupCount += 1
        state.slots[slot].isRecent = true
        return inode
      }
      if kind == S_IFDIR, let inode = Self.wake(&state, key) { return inode }
      return Self.insert(
        &state, kind: kind, number: UInt64(status.st_ino), key: key,
        directory: kind == S_IFDIR ? DirectoryNode(nil, among: openDirectories) : nil)
    }
  }

  func find(_ key: BackingKey) -> Inode? {
    state.withLock { state in state.byKey[key].flatMap { state.slots[$0].inode } }
  }

  func retain(_ inode: Inode) {
    state.withLock { state in
      if let slot = state.slot(of: inode.nodeID) { state.slots[slot].lookupCount += 1 }
    }
  }

  /// Takes `count` lookups back; at none the inode goes, unless a handle holds it.
  func forget(_ node: NodeID, count: UInt64) {
    state.withLock { state in
      guard let slot = state.slot(of: node) else { return }
      state.slots[slot].lookupCount -= min(count, state.slots[slot].lookupCount)
      Self.dropIfUnused(&state, node)
    }
  }

  /// To be called when an inode's last handle is gone.
  func dropIfUnused(_ inode: Inode) {
    state.withLock { Self.dropIfUnused(&$0, inode.nodeID) }
  }

  /// The inode's backing file is another one from now on; false if that one is a known inode's. Who
  /// just made the file is certain: the other's was removed by another program, and the disk gave
  /// its number again.
  @discardableResult
  func rekey(_ inode: Inode, to key: BackingKey?, isCertain: Bool = false) -> Bool {
    state.withLock { state in
      let slot = state.slot(of: inode.nodeID)
      if let key, let owner = state.byKey[key], owner != slot {
        guard isCertain else { return false }
        state.slots[owner].inode?.state.withLock { $0.key = nil }
      }
      let old = inode.state.withLock { inodeState in
        let old = inodeState.key
        inodeState.key = key
        return old
      }
      if let old, let slot, state.byKey[old] == slot { state.byKey[old] = nil }
      guard let slot else { return true }
      if let key { state.byKey[key] = slot }
      if Self.isDisplaced(inode.number, key, state) {
        state.displacedNumbers.insert(inode.number)
      } else {
        state.displacedNumbers.remove(inode.number)
      }
      return true
    }
  }

  // MARK: Crowds

  /// Some files that nobody looked up lately, when more nodes than `limit` are known: the kernel
  /// shall forget their names. Not directories, where programs may be, nor what is open.
  func leastUsed(above limit: Int) -> [Inode] {
    state.withLock { state in
      var found: [Inode] = []
      for _ in 0..<Self.sweepCount where state.count > limit && found.count < Self.foundCount {
        state.hand = state.hand + 1 < state.slots.count ? state.hand + 1 : 1
        let slot = state.slots[state.hand]
        state.slots[state.hand].isRecent = false
        guard let inode = slot.inode, !slot.isRecent, inode.directory == nil,
          inode.state.withLock({ $0.file == nil })
        else { continue }
        found.append(inode)
      }
      return found
    }
  }

  /// Called once for each new node, so two are enough to come back from any number.
  private static let foundCount = 2
  private static let sweepCount = 16

  // MARK: Slots

  private static func insert(
    _ state: inout State, kind: mode_t, number: UInt64, key: BackingKey?, directory: DirectoryNode?
  ) -> Inode {
    if state.byKey.device == nil { state.byKey.device = key?.device }
    var shown = number
    if isTaken(number, state) {
      shown = state.nextNumber
      state.nextNumber += 1
    }
    if isDisplaced(shown, key, state) { state.displacedNumbers.insert(shown) }
    let slot: Int
    if let free = state.freeSlots.popLast() {
      slot = Int(free)
    } else {
      slot = state.slots.count
      state.slots.append(Slot())
    }
    let node = state.nextSerial << 32 | UInt64(slot)
    state.nextSerial += 1
    let inode = Inode(
      nodeID: node, kind: kind, number: shown, key: key, directory: directory)
    state.slots[slot] = Slot(inode: inode, lookupCount: 1)
    if let key { state.byKey[key] = slot }
    return inode
  }

  /// Somebody shows this `st_ino`.
  private static func isTaken(_ number: UInt64, _ state: State) -> Bool {
    if state.displacedNumbers.contains(number) { return true }
    guard let device = state.byKey.device else { return false }
    let own = BackingKey(device: device, inode: number)
    return state.byKey[own] != nil || state.resting[own] != nil
  }

  private static func isDisplaced(_ number: UInt64, _ key: BackingKey?, _ state: State) -> Bool {
    key?.inode != number || key?.device != state.byKey.device
  }

  private static func dropIfUnused(_ state: inout State, _ node: NodeID) {
    guard let slot = state.slot(of: node), state.slots[slot].lookupCount == 0,
      node != Inode.rootID, let inode = state.slots[slot].inode
    else { return }
    let (isHeld, key) = inode.state.withLock { ($0.file != nil, $0.key) }
    // New files in it hold a directory, too.
    let hasNewFiles = inode.directory?.pending.withLock { !$0.isEmpty } ?? false
    if isHeld || hasNewFiles { return }
    state.slots[slot] = Slot()
    if let key, state.byKey[key] == slot {
      state.byKey[key] = nil
      if inode.isDirectory {
        sweepResting(&state)
        state.resting[key] = Resting(inode: inode, number: inode.number, slot: slot)
        return
      }
    }
    state.giveBack(slot: slot, number: inode.number)
  }

  private static func sweepResting(_ state: inout State) {
    guard state.resting.count >= state.restingLimit else { return }
    for (key, resting) in state.resting where resting.inode == nil {
      state.resting[key] = nil
      state.giveBack(slot: resting.slot, number: resting.number)
    }
    state.restingLimit = max(State.leastRestingLimit, 2 * state.resting.count)
  }

  /// The resting directory `key`, known and counted once again; nil when there is none.
  private static func wake(_ state: inout State, _ key: BackingKey) -> Inode? {
    guard let resting = state.resting.removeValue(forKey: key) else { return nil }
    guard let inode = resting.inode else {
      state.giveBack(slot: resting.slot, number: resting.number)
      return nil
    }
    state.slots[resting.slot] = Slot(inode: inode, lookupCount: 1)
    state.byKey[key] = resting.slot
    return inode
  }
}
