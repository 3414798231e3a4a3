import Foundation
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

/// A directory of its own on the disk, removed behind `body`.
func withTemporaryDirectory<Result>(
  at parent: String = NSTemporaryDirectory(), _ body: (String) throws -> Result
) throws -> Result {
  let path = URL(filePath: parent)
    .appendingPathComponent("photovault-test-\(UUID().uuidString)").path
  try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try body(path)
}

/// A vault with the fixtures' keys, on the disk.
struct TestVault {
  let path: String

  static func with<Result>(
    _ names: NamesMode, at parent: String = NSTemporaryDirectory(),
    _ body: (TestVault) throws -> Result
  ) throws -> Result {
    try withTemporaryDirectory(at: parent) { parent in
      let vault = TestVault(path: parent + "/vault")
      try FileManager.default.createDirectory(
        atPath: vault.path, withIntermediateDirectories: false)
      try vault.write("vault.json", Expected.values.superblocks[names.rawValue] ?? "")
      if names == .encrypted {
        try vault.write("directory.id", Expected.bytes(Expected.values.directoryID))
      }
      return try body(vault)
    }
  }

  func open(readOnly: Bool = false) throws -> Vault {
    try Self.onceClosed {
      try Vault.open(at: path, readOnly: readOnly) { _ in Expected.vaultKeys }
    }
  }

  /// A thread of the write pool may hold the vault of before for a moment more, and so its lock.
  static func onceClosed<Result: ~Copyable>(_ body: () throws -> Result) throws -> Result {
    for _ in 0..<200 {
      do { return try body() } catch StorageError.alreadyOpen { usleep(10_000) }
    }
    return try body()
  }

  func write(_ name: String, _ contents: String = "") throws {
    try write(name, Array(contents.utf8))
  }

  func write(_ name: String, _ contents: [UInt8]) throws {
    try Data(contents).write(to: URL(fileURLWithPath: path + "/" + name))
  }

  func makeDirectory(_ name: String) throws {
    try FileManager.default.createDirectory(
      atPath: path + "/" + name, withIntermediateDirectories: false)
  }

  func remove(_ name: String) throws {
    try FileManager.default.removeItem(atPath: path + "/" + name)
  }

  func contents(_ name: String) -> [UInt8]? {
    FileManager.default.contents(atPath: path + "/" + name).map { Array($0) }
  }

  /// Names in the directory on the disk, in order.
  func stored(_ directory: String = "") throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path + "/" + directory).sorted()
  }
}

extension VaultDirectory {
  /// Makes an empty file in the place of a blob.
  @discardableResult
  func makeBlob(_ name: FileName) throws -> StoredName {
    let stored = try storedName(name, kind: .blob)
    try prepareForEntries()
    try prepareCompanion(stored, for: name)
    try SmallFile.write([], as: stored.entry, in: fd.rawValue, durably: false)
    return stored
  }

  func shownNames() throws -> [FileName] {
    try list().map(\.name).sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
  }
}

extension FileName {
  var text: String { String(decoding: bytes, as: UTF8.self) }
}

/// Faults for one test at a time, in the calls that its own thread makes.
enum Faults {
  private static let turn = NSLock()

  /// What happens at the call.
  enum Kind: Sendable, CaseIterable {
    case failure
    /// No call reaches the disk from there on: it is left as by a crash.
    case crash
  }

  /// Fails the `number`-th call (from 0) inside `body`; whether it was reached.
  static func failing(
    _ number: Int, with error: Errno = .inputOutput, kind: Kind = .failure, _ body: () -> Void
  ) -> Bool {
    turn.lock()
    defer { turn.unlock() }
    let counter = Counter(pthread_self())
    SyscallFaults.arm { _ in
      guard let index = counter.next() else { return nil }
      return index == number || (kind == .crash && index > number) ? .fail(error) : nil
    }
    defer { SyscallFaults.disarm() }
    body()
    return counter.count > number
  }

  private final class Counter: @unchecked Sendable {
    private let thread: pthread_t
    private(set) var count = 0

    init(_ thread: pthread_t) { self.thread = thread }

    /// nil on a thread of another test.
    func next() -> Int? {
      guard pthread_equal(pthread_self(), thread) != 0 else { return nil }
      count += 1
      return count - 1
    }
  }
}
