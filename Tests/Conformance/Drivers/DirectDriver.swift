import Glibc
package import Platform
import Synchronization
import VaultFileSystem
package import VaultStorage

/// Drives the file system of a vault as the kernel does, without a kernel: walks paths by lookups
/// that it counts and forgets, keeps open files, and makes the checks that the kernel makes before
/// it asks.
package final class DirectDriver: FileSystemDriver {
  /// When lookups are given back.
  package enum Forgetting: Sendable {
    /// After each operation, but for what is open: a kernel short of memory.
    case early
    /// At the remount: a kernel with plenty.
    case late
  }

  package let mountPoint: Path? = nil
  package let backingDirectory: Path
  package let isPlain = false
  private let directory: TemporaryDirectory
  private let forgetting: Forgetting
  private let state: Mutex<State>
  /// The usual one of test programs; what a process asks for is cut by it before it gets here.
  static let umask: mode_t = 0o022

  struct OpenNode {
    let node: NodeID
    let number: UInt64
    let flags: CInt
    let isDirectory: Bool
    let skipsFlush: Bool
    /// Lookups that live as long as the handle: the file's and those of its path.
    let lookups: [NodeID]

    var isReadable: Bool { flags & O_ACCMODE != O_WRONLY }
    var isWritable: Bool { flags & O_ACCMODE != O_RDONLY }
  }

  private struct State {
    var fileSystem: FileSystem?
    var lookups: [NodeID: UInt64] = [:]
    var open: [Handle: OpenNode] = [:]
    var nextHandle: UInt64 = 1
  }

  package init(names: NamesMode, forgetting: Forgetting) throws {
    directory = try TemporaryDirectory()
    self.forgetting = forgetting
    backingDirectory = directory.path / "vault"
    _ = try Vault.create(
      at: backingDirectory.text, names: names, password: try Self.password())
    state = Mutex(State(fileSystem: try Self.opened(backingDirectory)))
  }

  private static func password() throws -> SecretBytes {
    var bytes = Array("recovery key of the checks".utf8)
    return try SecretBytes(wiping: &bytes)
  }

  private static func opened(_ path: Path) throws -> FileSystem {
    // A thread of the write pool may hold the old vault for a moment more, and so its lock.
    for _ in 0..<200 {
      do {
        return FileSystem(
          vault: try Vault.open(at: path.text, password: try password(), readOnly: false))
      } catch StorageError.alreadyOpen { usleep(10_000) }
    }
    throw StorageError.alreadyOpen
  }

  /// Commits, gives back every lookup and drops the file system.
  private func close() throws(Errno) {
    let (fileSystem, lookups) = state.withLock { state in
      defer { state = State(nextHandle: state.nextHandle) }
      return (state.fileSystem, state.lookups)
    }
    guard let fileSystem else { return }
    let failed = fileSystem.commitAll(areAllClosed: false)
    for (node, count) in lookups { fileSystem.forget(node, count: count) }
    if !failed.isEmpty { throw .inputOutput }
    // Only the root is left, which nobody looks up.
    if fileSystem.lookupTotal != 1 || fileSystem.openFileCount != 0 { throw .range }
  }

  package func remount() throws(Errno) {
    if state.withLock({ !$0.open.isEmpty }) { throw .busy }
    try close()
    do {
      let fileSystem = try Self.opened(backingDirectory)
      state.withLock { $0.fileSystem = fileSystem }
    } catch let error as StorageError {
      throw FileSystemError.storage(error).errno
    } catch { throw .inputOutput }
  }

  package func end() throws(Errno) {
    defer { directory.remove() }
    try close()
  }

  /// Runs one operation: `body` gets the file system and a walk that notes its lookups.
  func operate<Result>(
    _ body: (FileSystem, inout Walk) throws(FileSystemError) -> Result
  ) throws(Errno) -> Result {
    guard let fileSystem = state.withLock({ $0.fileSystem }) else { throw .notConnected }
    var walk = Walk(fileSystem)
    defer { giveBack(walk.lookups) }
    do throws(FileSystemError) { return try body(fileSystem, &walk) } catch { throw error.errno }
  }

  private func giveBack(_ lookups: [NodeID]) {
    let forgettable: FileSystem? = state.withLock { state in
      if forgetting == .early { return state.fileSystem }
      for node in lookups { state.lookups[node, default: 0] += 1 }
      return nil
    }
    // The kernel lets go of a directory only after what is in it.
    for node in lookups.reversed() { forgettable?.forget(node, count: 1) }
  }

  func add(_ node: OpenNode) -> Handle {
    state.withLock { state in
      let handle = Handle(number: state.nextHandle)
      state.nextHandle += 1
      state.open[handle] = node
      return handle
    }
  }

  func find(_ handle: Handle) throws(FileSystemError) -> OpenNode {
    guard let node = state.withLock({ $0.open[handle] }) else {
      throw FileSystemError(.badDescriptor)
    }
    return node
  }

  package func close(_ handle: Handle) throws(Errno) {
    guard let node = state.withLock({ $0.open.removeValue(forKey: handle) }) else {
      throw .badDescriptor
    }
    defer { giveBack(node.lookups) }
    try operate { (fileSystem, _) throws(FileSystemError) in
      if node.isDirectory { return fileSystem.releaseDirectory(node.number) }
      defer { fileSystem.release(node.number) }
      if !node.skipsFlush { try fileSystem.flush(node.number) }
    }
  }
}
