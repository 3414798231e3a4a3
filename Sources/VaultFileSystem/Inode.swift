import Glibc
import Platform
import Synchronization
import VaultStorage

package typealias NodeID = UInt64

/// What the backing disk knows a stored file by. It changes with every commit; the node doesn't.
struct BackingKey: Hashable {
  let device: UInt64
  let inode: UInt64

  init(device: UInt64, inode: UInt64) {
    self.device = device
    self.inode = inode
  }

  init(_ status: stat) {
    self.init(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
  }
}

/// One name of an inode.
struct Link: Sendable {
  let parent: Inode
  let name: FileName
  let stored: StoredName
}

/// A file, directory, link or other node that the kernel or a handle knows: one for all its hard
/// links, so that there is one page cache.
final class Inode: Sendable {
  static let rootID: NodeID = 1

  let nodeID: NodeID
  /// The S_IFMT bits.
  let kind: mode_t
  /// What programs see as `st_ino`.
  let number: UInt64
  /// For directories.
  let directory: DirectoryNode?
  /// A file with set-user-id or set-group-id bits, as far as known.
  let hasSetID = Atomic<Bool>(false)
  let state: Mutex<State>

  struct State {
    /// The names known so far; none for the root and for what was removed while in use.
    var links = Links()
    /// nil until the first commit of a new file.
    var key: BackingKey?
    /// While a handle is open or writes are uncommitted.
    var file: OpenFile?
    var handleCount = 0
    /// The version that `file` was opened with or last committed.
    var opened: BlobIdentity?
    /// The version that the kernel's page cache holds.
    var cached: BlobIdentity?
    /// The plaintext's size, for the version it belongs to.
    var size: (BlobIdentity, Int64)?
  }

  init(
    nodeID: NodeID, kind: mode_t, number: UInt64, key: BackingKey?, directory: DirectoryNode?
  ) {
    self.nodeID = nodeID
    self.kind = kind
    self.number = number
    self.directory = directory
    state = Mutex(State(key: key))
  }

  var isDirectory: Bool { kind == S_IFDIR }
  var isRegular: Bool { kind == S_IFREG }

  /// The path for messages, as the user knows it.
  var displayPath: String {
    guard let link = state.withLock({ $0.links.first }) else {
      return nodeID == Self.rootID ? "" : "(removed)"
    }
    let above = link.parent.displayPath
    return above.isEmpty ? link.name.description : "\(above)/\(link.name)"
  }

  /// Notes that `link` leads here. A file that has one link only, has only this one.
  func add(_ link: Link, isOnlyOne: Bool) {
    state.withLock { state in
      if state.links.contains(where: { $0.isSame(link) }) { return }
      if isOnlyOne { state.links = [link] } else { state.links.append(link) }
    }
  }

  func remove(_ name: FileName, in parent: Inode) {
    state.withLock { state in
      state.links.removeAll { $0.parent === parent && $0.name == name }
    }
  }
}

/// The names of one inode, mostly one, which takes no memory of its own.
struct Links: RandomAccessCollection, ExpressibleByArrayLiteral {
  private var only: Link?
  private var others: [Link] = []

  init(arrayLiteral links: Link...) { for link in links { append(link) } }

  var startIndex: Int { 0 }
  var endIndex: Int { (only == nil ? 0 : 1) + others.count }

  subscript(position: Int) -> Link {
    if position == 0, let only { return only }
    return others[position - 1]
  }

  mutating func append(_ link: Link) {
    if only == nil { only = link } else { others.append(link) }
  }

  mutating func removeAll(where isRemoved: (Link) -> Bool) {
    others.removeAll(where: isRemoved)
    guard let first = only, isRemoved(first) else { return }
    only = others.isEmpty ? nil : others.removeFirst()
  }
}

extension Link {
  func isSame(_ other: Link) -> Bool { parent === other.parent && name == other.name }
}

/// What a directory's inode has besides.
final class DirectoryNode: Sendable {
  /// Held, shared, while a name of this directory is looked up or its file touched, and
  /// exclusively while a name changes: between what the disk says of a name and what the inode
  /// table says there is no moment in which they differ.
  let lock = ReadWriteLock()
  /// New files that have no name on the disk yet. Changed with `lock` held exclusively.
  let pending = Mutex<[FileName: Inode]>([:])
  /// When a pending file came or went: the directory's times until the disk has them.
  let touched = Mutex<timespec?>(nil)
  /// When the newest complete listing was read.
  let listed = Mutex<ContinuousClock.Instant?>(nil)
  /// Its name was not synchronized in this mount: who made it may have been killed before.
  let isFresh = Atomic<Bool>(true)

  private let opened: Mutex<VaultDirectory?>
  private let siblings: OpenDirectories

  init(_ opened: VaultDirectory?, among siblings: OpenDirectories) {
    self.opened = Mutex(opened)
    self.siblings = siblings
  }

  /// The open directory; opened when it is needed.
  func vaultDirectory(of inode: Inode) throws(FileSystemError) -> VaultDirectory {
    if let known = opened.withLock({ $0 }) { return known }
    guard let link = inode.state.withLock({ $0.links.first }) else { throw .system(.stale) }
    guard let parentNode = link.parent.directory else { throw .system(.notADirectory) }
    let parent = try parentNode.vaultDirectory(of: link.parent)
    let found = try storing { () throws(StorageError) in try parent.open(child: link.stored) }
    let (directory, isNew) = opened.withLock { known in
      if let known { return (known, false) }
      known = found
      return (found, true)
    }
    if isNew { siblings.add(inode) }
    return directory
  }

  /// For a directory without a name, which nobody could open again.
  func keep(_ directory: VaultDirectory) { opened.withLock { $0 = directory } }

  /// Gives the descriptor back, if it can be opened again. Whoever is using it goes on.
  func close(_ inode: Inode) {
    opened.withLock { opened in
      if inode.state.withLock({ !$0.links.isEmpty }) { opened = nil }
    }
  }
}

/// The directories that are open, of which there are to be few, however many are known: each takes
/// a descriptor, and memory for its names' cipher.
final class OpenDirectories: Sendable {
  private struct Opened {
    weak var inode: Inode?
  }

  /// The oldest first.
  private let opened = Mutex<[Opened]>([])

  /// Below the least limit of descriptors that systems have, 1,024.
  static let limit = 512

  func add(_ inode: Inode) {
    let oldest = opened.withLock { opened in
      opened.append(Opened(inode: inode))
      return opened.count > Self.limit ? opened.removeFirst().inode : nil
    }
    if let oldest { oldest.directory?.close(oldest) }
  }
}
