import Glibc
import Platform
import SecuredData
import Synchronization
import VaultStorage

/// What the vault holds already, and what an import adds, so that the same contents under another
/// name are found. A file is read for that only if another one of its size comes.
///
/// Locks: `state`; never while a file is read.
final class VaultContents: Sendable {
  private let vault: Vault
  /// By the stored size.
  private let bySize: [Int64: [FileName]]
  private let state = ConditionLock(State())

  private struct State {
    /// nil for what can't be read.
    var digests: [FileName: [UInt8]?] = [:]
    var claims: [[UInt8]: Claim] = [:]
  }

  private enum Claim {
    case underway
    case done(FileName)
  }

  init(of vault: Vault) {
    self.vault = vault
    var bySize: [Int64: [FileName]] = [:]
    var waiting: [FileName] = [.empty]
    while let path = waiting.popLast() {
      guard let directory = try? Self.directory(path, in: vault),
        let entries = try? directory.list()
      else { continue }
      for entry in entries {
        let inner = path.appending(entry.name)
        if entry.type == UInt8(DT_DIR) { waiting.append(inner) }
        guard entry.kind == .blob,
          let status = try? Syscalls.status(of: entry.stored.entry, in: directory.fd.rawValue)
        else { continue }
        bySize[Int64(status.st_size), default: []].append(inner)
      }
    }
    self.bySize = bySize
  }

  static func storedSize(plaintextSize: Int64) -> Int64 {
    Format.messageSize(plaintextSize: plaintextSize)
  }

  /// Whether a file of the vault may hold the same as one that is stored in so many bytes.
  func mayHold(storedSize: Int64) -> Bool { bySize[storedSize] != nil }

  /// A file that was in the vault before and holds the same, other than `path`.
  func twin(digest: [UInt8], storedSize: Int64, except path: FileName?) -> FileName? {
    (bySize[storedSize] ?? []).first { $0 != path && self.digest(of: $0) == digest }
  }

  private func digest(of path: FileName) -> [UInt8]? {
    if let known = state.withLock({ $0.digests[path] }) { return known }
    var result: [UInt8]?
    if let opened = try? open(path) {
      result = try? BlobDigest(of: opened.descriptor.rawValue, keys: vault.keys).digest
    }
    state.withLock { $0.digests[path] = .some(result) }
    return result
  }

  // MARK: Within one import

  enum Answer {
    /// The caller is to write it, and says how that ends.
    case mine
    case writtenAs(FileName)
    case underway
  }

  func claim(_ digest: [UInt8]) -> Answer {
    state.withLock { state in
      switch state.claims[digest] {
      case .done(let path): return .writtenAs(path)
      case .underway: return .underway
      case nil:
        state.claims[digest] = .underway
        return .mine
      }
    }
  }

  /// Not while holding a claim of one's own: two would wait for one another.
  func waitForClaim(_ digest: [UInt8]) {
    state.withLock(
      when: { state in
        if case .underway = state.claims[digest] { false } else { true }
      }, { _ in })
  }

  func giveUp(_ digest: [UInt8]) {
    state.withLock { state in
      if case .underway = state.claims[digest] { state.claims[digest] = nil }
    }
  }

  /// Another file of this import that holds the same, if there is one.
  func noteWritten(_ digest: [UInt8], as path: FileName) -> FileName? {
    state.withLock { state in
      if case .done(let first) = state.claims[digest] { return first }
      state.claims[digest] = .done(path)
      return nil
    }
  }

  // MARK: Places

  /// On return the file and its entry are on the disk. Throws for a file that is not good there.
  func synchronize(_ path: FileName) throws(TransferFailure) {
    let opened = try TransferFailure.onVault { () throws(StorageError) in try open(path) }
    let (number, directory) = (opened.descriptor.rawValue, opened.directory)
    try TransferFailure.onVault { () throws(StorageError) in
      _ = try BlobDigest(onDisk: number, keys: vault.keys)
      try directory.synchronize()
    }
  }

  private struct Opened: ~Copyable {
    let directory: VaultDirectory
    let descriptor: FileDescriptor
  }

  private func open(_ path: FileName) throws(StorageError) -> Opened {
    let slash = path.bytes.lastIndex(of: UInt8(ascii: "/"))
    let directory = try Self.directory(
      FileName(Array(path.bytes[..<(slash ?? 0)])), in: vault)
    let name = FileName(Array(path.bytes[(slash.map { $0 + 1 } ?? 0)...]))
    guard let found = try directory.find(name), found.kind == .blob else {
      throw .system(.noSuchEntry)
    }
    return Opened(directory: directory, descriptor: try directory.openFile(found.stored))
  }

  static func directory(
    _ path: FileName, in vault: Vault
  ) throws(StorageError) -> VaultDirectory {
    var directory = vault.root
    for component in path.vaultComponents ?? [] {
      guard let found = try directory.find(component) else { throw .system(.noSuchEntry) }
      directory = try directory.open(child: found.stored)
    }
    return directory
  }
}

extension VaultDirectory {
  /// A stored file, for reading.
  func openFile(_ stored: StoredName) throws(StorageError) -> FileDescriptor {
    do throws(Errno) {
      return try Syscalls.open(
        stored.entry, in: fd.rawValue, flags: O_RDONLY | O_NOFOLLOW | O_NONBLOCK)
    } catch { throw .system(error) }
  }
}
