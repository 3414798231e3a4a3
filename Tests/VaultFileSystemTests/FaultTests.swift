import Foundation
import Glibc
import Platform
import Synchronization
import Testing
import VaultFileSystem
import VaultStorage

/// Every system call of every change fails in turn, or is the last that was made before a crash:
/// what is in the vault then is the whole old version or the whole new one.
@Suite struct FaultTests {
  private static let errors: [Errno] = [
    .noSpace, .inputOutput, .quotaExceeded, .readOnly, .noMemory,
  ]
  /// All errors for each call take minutes; else every third call fails, with one of them.
  private static let triesAll = getenv("PHOTOVAULT_TEST_ALL_FAULTS") != nil

  private final class Counter: Sendable {
    let value = Atomic<Int>(0)
    func next() -> Int { value.add(1, ordering: .relaxed).oldValue }
  }

  /// The same change in folder after folder.
  private struct Trial {
    let scenario: FaultScenario
    let names: NamesMode
    /// How the folder looks before the change, and after each of its steps.
    let states: [Snapshot]
    /// Others that it may be in, and only after a crash.
    let ends: [Snapshot]
    let endsOfCrashes: [Snapshot]
    let callCount: Int

    init(_ scenario: FaultScenario, _ names: NamesMode) throws {
      self.scenario = scenario
      self.names = names
      Log.send(to: .function { _, _ in })
      let folder = try Self.folder(scenario, names)
      var states = [try Snapshot(folder)]
      for step in scenario.steps {
        try step(folder)
        try folder.remount()
        states.append(try Snapshot(folder))
      }
      self.states = states
      func end(_ step: FaultScenario.Step) throws -> Snapshot {
        let folder = try Self.folder(scenario, names)
        try step(folder)
        try folder.remount()
        return try Snapshot(folder)
      }
      ends = try scenario.otherEnds.map(end)
      endsOfCrashes = try scenario.endsOfCrashes.map(end)
      let counter = Counter()
      _ = try Self.change(try Self.folder(scenario, names), scenario) { _ in
        _ = counter.next()
        return nil
      }
      callCount = counter.value.load(ordering: .relaxed)
    }

    static func folder(_ scenario: FaultScenario, _ names: NamesMode) throws -> Folder {
      let folder = try Folder(names: names)
      try scenario.prepare(folder)
      try folder.store([7, 7, 7], as: "neighbour")
      try folder.remount()
      return folder
    }

    /// Whether the program was told that all is well.
    static func change(
      _ folder: Folder, _ scenario: FaultScenario,
      _ fault: @escaping @Sendable (SyscallFaults.Call) -> SyscallFaults.Fault?
    ) throws -> Bool {
      SyscallFaults.arm(fault)
      defer { SyscallFaults.disarm() }
      do {
        for step in scenario.steps { try step(folder) }
        return true
      } catch is FileSystemError { return false }
    }

    func check(
      _ folder: Folder, succeeded: Bool, afterCrash: Bool = false, _ what: String
    ) throws {
      try folder.remount()
      let found = try Snapshot(folder)
      if succeeded, scenario.isToldOfErrors {
        #expect(found == states.last, "\(scenario), \(what) that nobody was told of")
      } else {
        let allowed = states + ends + (afterCrash ? endsOfCrashes : [])
        #expect(allowed.contains(found), "\(scenario), \(what)")
      }
      let findings = try folder.check().findings
      #expect(
        findings.allSatisfy { $0.kind == .orphan }, "\(scenario), \(what): \(findings)")
    }
  }

  private static func calls(of trial: Trial) -> some Sequence<Int> {
    stride(from: triesAll ? 0 : trial.callCount % 3, to: trial.callCount, by: triesAll ? 1 : 3)
  }

  private static let modes: [NamesMode] = triesAll ? [.encrypted, .plain] : [.encrypted]

  @Test(arguments: FaultScenario.all, modes)
  private func oneCallFails(scenario: FaultScenario, names: NamesMode) throws {
    let trial = try Trial(scenario, names)
    var tried = 0
    defer { print("faults tried: \(tried)") }
    for number in Self.calls(of: trial) {
      let errors =
        Self.triesAll ? Self.errors : [Self.errors[number % Self.errors.count]]
      for error in errors {
        tried += 1
        let folder = try Trial.folder(scenario, names)
        let counter = Counter()
        let succeeded = try Trial.change(folder, scenario) { _ in
          counter.next() == number ? .fail(error) : nil
        }
        let what = "\(error) at call \(number)"
        let live = try Snapshot(folder)
        let allowed = trial.states + trial.ends
        #expect(
          succeeded && scenario.isToldOfErrors
            ? live == trial.states.last : allowed.contains(live),
          "\(scenario), \(what), without a remount: \(live)")
        // Nothing is stuck: where nothing changed, the same once more does it.
        if !succeeded, live == trial.states[0] {
          let succeeds = try Trial.change(folder, scenario) { _ in nil }
          #expect(succeeds, "\(scenario), once more after \(what)")
          try trial.check(folder, succeeded: true, "once more after \(what)")
        } else {
          try trial.check(folder, succeeded: succeeded, what)
        }
      }
    }
  }

  /// From one call on nothing reaches the disk any more.
  @Test(arguments: FaultScenario.all, modes)
  private func aCrashAfterAnyCall(scenario: FaultScenario, names: NamesMode) throws {
    let trial = try Trial(scenario, names)
    print("faults tried: \(Array(Self.calls(of: trial)).count)")
    for number in Self.calls(of: trial) {
      let folder = try Trial.folder(scenario, names)
      let counter = Counter()
      SyscallFaults.arm { _ in counter.next() >= number ? .fail(.inputOutput) : nil }
      var succeeded = true
      do { for step in scenario.steps { try step(folder) } } catch { succeeded = false }
      _ = folder.fileSystem.commitAll(areAllClosed: false)
      SyscallFaults.disarm()
      try trial.check(
        folder, succeeded: succeeded, afterCrash: true, "crash at call \(number)")
    }
  }

  /// POSIX lets these happen at any time; nobody has to hear of it.
  @Test(arguments: FaultScenario.all, modes)
  private func interruptedAndShortCallsAreGoneOnWith(
    scenario: FaultScenario, names: NamesMode
  ) throws {
    let trial = try Trial(scenario, names)
    for number in 0..<3 {
      let folder = try Trial.folder(scenario, names)
      let counter = Counter()
      let succeeded = try Trial.change(folder, scenario) { call in
        let turn = counter.next() + number
        // A retried call asks again: at most every second time, or it would never end.
        if turn % 3 == 0 { return .fail(.interrupted) }
        if turn % 3 == 1, call == .write || call == .read { return .short(1 + turn * 37 % 5000) }
        return nil
      }
      #expect(succeeded, "\(scenario)")
      try trial.check(folder, succeeded: true, "interrupted calls")
    }
  }

  @Test func interruptedAndShortWritesAreGoneOnWith() throws {
    for (index, fault) in [SyscallFaults.Fault.fail(.interrupted), .short(1000)].enumerated() {
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
    try folder.store(FaultScenario.old, as: "photo")
    let reader = try folder.open("photo", flags: O_RDONLY)
    let writer = try folder.open("photo", flags: O_RDWR)
    try folder.write(writer, [1, 2, 3], at: 5)
    SyscallFaults.arm { $0 == .write ? .fail(.noSpace) : nil }
    #expect(errno { try folder.fileSystem.flush(writer) } == .noSpace)
    folder.fileSystem.release(writer)
    SyscallFaults.disarm()
    #expect(try folder.read(reader, FaultScenario.old.count) == FaultScenario.old)
    #expect(try folder.contents("photo") == FaultScenario.old)
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
    try folder.store(FaultScenario.old, as: "photo")
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
    #expect(try folder.contents("photo") == FaultScenario.old)
    try folder.remount()
    #expect(try folder.contents("photo") == FaultScenario.old)
  }

  /// As disks do: the first fsync(2) tells that something was not written, the next one nothing.
  private static func refusingOnce(_ body: () throws -> Void) -> Errno? {
    let isFirst = Mutex(true)
    SyscallFaults.arm { call in
      guard call == .synchronize else { return nil }
      return isFirst.withLock { isFirst in
        defer { isFirst = false }
        return isFirst ? .fail(.inputOutput) : nil
      }
    }
    defer { SyscallFaults.disarm() }
    return errno(of: body)
  }

  @Test(
    "a new version that the disk did not take is checked before it takes a photo's place",
    arguments: [true, false])
  func refusedBlob(isDamaged: Bool) throws {
    Log.send(to: .function { _, _ in })
    let folder = try Folder()
    try folder.store(FaultScenario.old, as: "photo")
    let new = pattern(300_000, seed: 9)
    let handle = try folder.open("photo", flags: O_RDWR | O_TRUNC)
    try folder.write(handle, new)
    #expect(Self.refusingOnce { try folder.fileSystem.flush(handle) } == .inputOutput)
    if isDamaged {
      // The file has no name, but is open in this process.
      let folderName = String(folder.directory.split(separator: "/").last ?? "")
      let files = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
      for number in files.compactMap({ CInt($0) }) {
        let link = try? Syscalls.readSymbolicLink(FileName("/proc/self/fd/\(number)"), in: AT_FDCWD)
        guard let link, "\(link)".contains(folderName), "\(link)".hasSuffix("(deleted)")
        else { continue }
        var byte: UInt8 = 0
        guard pread(number, &byte, 1, 150_000) == 1 else { continue }
        byte ^= 1
        _ = pwrite(number, &byte, 1, 150_000)
      }
    }
    let said = errno(of: { try folder.fileSystem.flush(handle) })
    #expect(said == (isDamaged ? .inputOutput : nil))
    folder.fileSystem.release(handle)
    try folder.remount()
    #expect(try folder.contents("photo") == (isDamaged ? FaultScenario.old : new))
    #expect(try folder.check().findings.isEmpty)
  }

  @Test(
    "a photo that the disk did not take is checked before it is renamed over another",
    arguments: [true, false])
  func refusedRename(isDamaged: Bool) throws {
    Log.send(to: .function { _, _ in })
    let folder = try Folder()
    try folder.store(FaultScenario.old, as: "photo")
    let before = Set(try folder.stored())
    let new = pattern(300_000, seed: 9)
    try folder.store(new, as: "part")
    func rename() throws {
      try folder.fileSystem.rename(
        FileName("part"), in: 1, to: FileName("photo"), in: 1, flags: [])
    }
    #expect(Self.refusingOnce(rename) == .inputOutput)
    if isDamaged {
      let stored = try #require(try folder.stored().first { !before.contains($0) })
      let file = try Syscalls.open(FileName("\(folder.directory)/\(stored)"), flags: O_RDWR)
      var byte: UInt8 = 0
      #expect(pread(file.rawValue, &byte, 1, 150_000) == 1)
      byte ^= 1
      #expect(pwrite(file.rawValue, &byte, 1, 150_000) == 1)
    }
    #expect(errno(of: rename) == (isDamaged ? .inputOutput : nil))
    try folder.remount()
    #expect(try folder.contents("photo") == (isDamaged ? FaultScenario.old : new))
  }
}
