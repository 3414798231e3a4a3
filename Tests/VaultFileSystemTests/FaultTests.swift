import Foundation
import Glibc
import Platform
import Synchronization
import Testing
import VaultFileSystem
import VaultStorage

/// Every system call of every commit path fails in turn, or is the last that was made before a
/// crash: what is in the vault then is the whole old version or the whole new one.
@Suite struct FaultTests {
  enum Scenario: String, CaseIterable, CustomTestStringConvertible {
    case fresh, big, inDirectory, overwrite, edit, append, truncate, saveByRename, pendingRename
    case hardLinked, longName, synchronized

    var testDescription: String { rawValue }

    static let old = pattern(150_000, seed: 11)
    static let new = pattern(200_000, seed: 12)
    static let film = pattern(1_500_000, seed: 13)
    static let long = String(repeating: "n", count: 250)

    /// The name that is changed.
    var name: String {
      switch self {
      case .inDirectory: "album/photo"
      case .longName: Self.long
      default: "photo"
      }
    }

    func prepare(_ folder: Folder) throws {
      switch self {
      case .fresh, .big: break
      case .inDirectory:
        _ = try folder.fileSystem.makeDirectory(
          FileName("album"), in: 1, mode: 0o755, caller: Folder.me)
      case .hardLinked:
        try folder.store(Self.old, as: "photo")
        _ = try folder.fileSystem.link(
          folder.node("photo"), as: FileName("other"), in: 1)
      default: try folder.store(Self.old, as: name)
      }
      try folder.store([7, 7, 7], as: "neighbour")
      try folder.remount()
    }

    /// The name's content when `change` succeeded.
    var expected: [UInt8] {
      switch self {
      case .big: Self.film
      case .edit, .hardLinked: Array(Self.old[..<100]) + Self.new[..<1000] + Self.old[1100...]
      case .append: Self.old + Self.new[..<1000]
      case .truncate: Array(Self.old[..<70_000])
      default: Self.new
      }
    }

    var previous: [UInt8]? {
      switch self {
      case .fresh, .big, .inDirectory: nil
      default: Self.old
      }
    }

    func change(_ folder: Folder) throws {
      switch self {
      case .fresh, .longName, .overwrite: try folder.store(Self.new, as: name)
      case .big: try folder.store(expected, as: name)
      case .inDirectory:
        let album = try folder.node("album")
        let handle = try folder.fileSystem.create(
          FileName("photo"), in: album, mode: 0o600, flags: O_WRONLY, caller: Folder.me
        ).1.handle
        try write(folder, handle, Self.new, at: 0)
      case .edit, .hardLinked:
        try write(
          folder, folder.open("photo", flags: O_RDWR), Array(Self.new[..<1000]), at: 100)
      case .append:
        try write(
          folder, folder.open("photo", flags: O_WRONLY), Array(Self.new[..<1000]),
          at: Int64(Self.old.count))
      case .truncate:
        var changes = AttributeChanges()
        changes.size = 70_000
        _ = try folder.fileSystem.setAttributes(folder.node("photo"), changes)
      case .saveByRename:
        try folder.store(Self.new, as: "photo~")
        try folder.fileSystem.rename(
          FileName("photo~"), in: 1, to: FileName("photo"), in: 1, flags: [])
      case .pendingRename:
        let handle = try folder.create("photo~")
        defer { folder.fileSystem.release(handle) }
        try folder.write(handle, Self.new)
        try folder.fileSystem.rename(
          FileName("photo~"), in: 1, to: FileName("photo"), in: 1, flags: [])
        try folder.fileSystem.flush(handle)
      case .synchronized:
        let handle = try folder.open("photo", flags: O_WRONLY | O_TRUNC)
        defer { folder.fileSystem.release(handle) }
        try folder.write(handle, Self.new)
        try folder.fileSystem.synchronize(handle, dataOnly: false)
      }
    }

    private func write(
      _ folder: Folder, _ handle: UInt64, _ bytes: [UInt8], at offset: Int64
    ) throws {
      do { try folder.write(handle, bytes, at: offset) } catch {
        folder.fileSystem.release(handle)
        throw error
      }
      try folder.close(handle)
    }
  }

  final class Counter: Sendable {
    let value = Atomic<Int>(0)
    func next() -> Int { value.add(1, ordering: .relaxed).oldValue }
  }

  private func callCount(_ scenario: Scenario) throws -> Int {
    let folder = try Folder()
    try scenario.prepare(folder)
    let counter = Counter()
    SyscallFaults.arm { _ in
      _ = counter.next()
      return nil
    }
    defer { SyscallFaults.disarm() }
    try scenario.change(folder)
    return counter.value.load(ordering: .relaxed)
  }

  private func check(_ scenario: Scenario, _ folder: Folder, succeeded: Bool, _ step: String) throws
  {
    try folder.remount()
    let found: [UInt8]?
    do { found = try folder.contents(scenario.name) } catch {
      #expect((error as? FileSystemError)?.errno == .noSuchEntry, "\(scenario) \(step): \(error)")
      found = nil
    }
    if succeeded {
      #expect(found == scenario.expected, "\(scenario) \(step) said it was stored")
    } else {
      #expect(
        found == scenario.previous || found == scenario.expected, "\(scenario) \(step)")
    }
    if scenario == .hardLinked {
      let other = try folder.contents("other")
      #expect(other == Scenario.old || other == scenario.expected, "\(scenario) \(step)")
    }
    #expect(try folder.contents("neighbour") == [7, 7, 7])
    let temporaries = try folder.stored().filter { $0.hasPrefix(".photovault-") }
    #expect(temporaries.isEmpty, "\(scenario) \(step)")
  }

  @Test(arguments: Scenario.allCases, [Errno.noSpace, .inputOutput])
  func oneCallFails(scenario: Scenario, error: Errno) throws {
    Log.send(to: .function { _, _ in })
    for number in 0..<(try callCount(scenario)) {
      let folder = try Folder()
      try scenario.prepare(folder)
      let counter = Counter()
      SyscallFaults.arm { _ in counter.next() == number ? .fail(error) : nil }
      var succeeded = true
      do { try scenario.change(folder) } catch { succeeded = false }
      SyscallFaults.disarm()
      try check(scenario, folder, succeeded: succeeded, "call \(number) failed")
    }
  }

  /// From one call on nothing reaches the disk any more.
  @Test(arguments: Scenario.allCases) func aCrashAfterAnyCall(scenario: Scenario) throws {
    Log.send(to: .function { _, _ in })
    for number in 0..<(try callCount(scenario)) {
      let folder = try Folder()
      try scenario.prepare(folder)
      let counter = Counter()
      SyscallFaults.arm { _ in counter.next() >= number ? .fail(.inputOutput) : nil }
      var succeeded = true
      do { try scenario.change(folder) } catch { succeeded = false }
      _ = folder.fileSystem.commitAll()
      SyscallFaults.disarm()
      try check(scenario, folder, succeeded: succeeded, "crash at call \(number)")
    }
  }

  @Test func interruptedAndShortWritesAreGoneOnWith() throws {
    for (index, fault) in [SyscallFaults.Fault.fail(.interrupted), .shortWrite(1000)].enumerated() {
      let folder = try Folder()
      let counter = Counter()
      SyscallFaults.arm { call in call == .write && counter.next() % 3 == index ? fault : nil }
      try folder.store(pattern(1_000_000), as: "photo")
      SyscallFaults.disarm()
      try folder.remount()
      #expect(try folder.contents("photo") == pattern(1_000_000))
    }
  }

  @Test func aFailedEditLeavesTheOldVersionToWhoHasItOpen() throws {
    Log.send(to: .function { _, _ in })
    let folder = try Folder()
    try folder.store(Scenario.old, as: "photo")
    let reader = try folder.open("photo", flags: O_RDONLY)
    let writer = try folder.open("photo", flags: O_RDWR)
    try folder.write(writer, [1, 2, 3], at: 5)
    SyscallFaults.arm { $0 == .write ? .fail(.noSpace) : nil }
    #expect(errno { try folder.fileSystem.flush(writer) } == .noSpace)
    folder.fileSystem.release(writer)
    SyscallFaults.disarm()
    #expect(try folder.read(reader, Scenario.old.count) == Scenario.old)
    #expect(try folder.contents("photo") == Scenario.old)
    let again = try folder.open("photo", flags: O_RDWR)
    try folder.write(again, [1, 2, 3], at: 5)
    try folder.close(again)
    folder.fileSystem.release(reader)
    try folder.remount()
    #expect(try Array(folder.contents("photo")[5..<8]) == [1, 2, 3])
  }

  /// vfat, some network disks: no files without names, no hard links, no xattrs.
  @Test func aPlainDiskHoldsPhotosToo() throws {
    for hasLinks in [true, false] {
      let folder = try Folder()
      SyscallFaults.arm { call in
        switch call {
        case .openTemporary, .getExtendedAttribute, .setExtendedAttribute: .fail(.notSupported)
        case .link: hasLinks ? nil : .fail(.notPermitted)
        default: nil
        }
      }
      defer { SyscallFaults.disarm() }
      try folder.store(pattern(500_000, seed: 1), as: "photo")
      #expect(try folder.contents("photo") == pattern(500_000, seed: 1))
      try folder.store(pattern(300_000, seed: 2), as: "photo")
      let handle = try folder.open("photo", flags: O_RDWR)
      try folder.write(handle, [1, 2, 3], at: 1000)
      try folder.close(handle)
      #expect(try folder.stored().count == 1)
      try folder.remount()
      var expected = pattern(300_000, seed: 2)
      expected.replaceSubrange(1000..<1003, with: [1, 2, 3])
      #expect(try folder.contents("photo") == expected)
      #expect(try folder.stored().count == 1)
    }
  }

  @Test(arguments: [Errno.noSpace, .quotaExceeded, .inputOutput])
  func whatTheDiskSaysReachesTheProgram(error: Errno) throws {
    Log.send(to: .function { _, _ in })
    let folder = try Folder()
    try folder.store(Scenario.old, as: "photo")
    SyscallFaults.arm { $0 == .write ? .fail(error) : nil }
    let handle = try folder.open("photo", flags: O_WRONLY | O_TRUNC)
    let said = errno {
      for part in 0..<40 {
        try folder.write(handle, pattern(131_072), at: Int64(part) * 131_072)
      }
      try folder.fileSystem.flush(handle)
    }
    #expect(said == error)
    folder.fileSystem.release(handle)
    SyscallFaults.disarm()
    #expect(try folder.contents("photo") == Scenario.old)
    try folder.remount()
    #expect(try folder.contents("photo") == Scenario.old)
  }
}
