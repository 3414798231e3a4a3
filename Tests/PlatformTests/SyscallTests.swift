import CLinux
import Foundation
import Glibc
import Platform
import Synchronization
import Testing

/// Faults are one setting for the process, so these run one after the other and make calls fail on
/// their own thread only.
@Suite(.serialized) final class SyscallTests {
  private let directory: FileDescriptor
  private let path: String

  init() throws {
    path = NSTemporaryDirectory() + "photovault-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
    directory = try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  private func makeFile() throws -> FileDescriptor {
    try Syscalls.open(
      FileName("photo"), in: directory.rawValue, flags: O_CREAT | O_RDWR, mode: 0o600)
  }

  private func contents(_ file: borrowing FileDescriptor, count: Int = 4096) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: count)
    let read = try bytes.withUnsafeMutableBytes {
      try Syscalls.read(file.rawValue, into: $0, at: 0)
    }
    return Array(bytes.prefix(read))
  }

  private func write(_ bytes: [UInt8], to file: borrowing FileDescriptor) throws {
    try bytes.withUnsafeBytes { try Syscalls.write(file.rawValue, $0, at: 0) }
  }

  /// Runs `body` with the faults of `calls`, each once and in this order, and counts the calls.
  private func faults(
    _ call: SyscallFaults.Call, _ faults: [SyscallFaults.Fault], _ body: () throws -> Void
  ) rethrows -> Int {
    let thread = pthread_self()
    let state = Mutex((faults: faults, calls: 0))
    let holder = Holder(state)
    SyscallFaults.arm { asked in
      guard asked == call, pthread_equal(pthread_self(), thread) != 0 else { return nil }
      return holder.state.withLock { state in
        state.calls += 1
        return state.faults.isEmpty ? nil : state.faults.removeFirst()
      }
    }
    defer { SyscallFaults.disarm() }
    try body()
    return holder.state.withLock { $0.calls }
  }

  private final class Holder: Sendable {
    let state: Mutex<(faults: [SyscallFaults.Fault], calls: Int)>
    init(_ state: consuming sending Mutex<(faults: [SyscallFaults.Fault], calls: Int)>) {
      self.state = state
    }
  }

  @Test func aCallFailsAsItIsTold() throws {
    let file = try makeFile()
    for error in [Errno.noSpace, .quotaExceeded, .inputOutput] {
      #expect(throws: error) {
        _ = try faults(.write, [.fail(error)]) { try write([1, 2, 3], to: file) }
      }
      #expect(throws: error) {
        _ = try faults(.synchronize, [.fail(error)]) { try Syscalls.synchronize(file.rawValue) }
      }
      #expect(throws: error) {
        _ = try faults(.open, [.fail(error)]) { _ = try makeFile() }
      }
    }
    #expect(try contents(file) == [])
  }

  @Test func aShortWriteIsGoneOnWith() throws {
    let file = try makeFile()
    let bytes = (0..<1000).map { UInt8(truncatingIfNeeded: $0) }
    let shortWrites = [1, 10, 500].map { SyscallFaults.Fault.short($0) }
    let calls = try faults(.write, shortWrites) { try write(bytes, to: file) }
    #expect(calls == 4)
    #expect(try contents(file) == bytes)
  }

  @Test func aFailureAfterAShortWriteIsReported() throws {
    let file = try makeFile()
    #expect(throws: Errno.noSpace) {
      _ = try faults(.write, [.short(2), .fail(.noSpace)]) { try write([1, 2, 3], to: file) }
    }
    #expect(try contents(file) == [1, 2])
  }

  @Test func interruptedCallsAreMadeAgain() throws {
    let file = try makeFile()
    let interrupted = [SyscallFaults.Fault](repeating: .fail(.interrupted), count: 3)
    _ = try faults(.write, interrupted) { try write([1, 2, 3], to: file) }
    var read: [UInt8] = []
    #expect(try faults(.read, interrupted) { read = try contents(file, count: 3) } == 4)
    #expect(read == [1, 2, 3])
    #expect(
      try faults(.synchronize, interrupted) { try Syscalls.synchronize(file.rawValue) } == 4)
    #expect(
      try faults(.rename, interrupted) {
        try Syscalls.rename(
          FileName("photo"), in: directory.rawValue, to: FileName("other"),
          in: directory.rawValue)
      } == 4)
    #expect(try Syscalls.status(of: FileName("other"), in: directory.rawValue).st_size == 3)
  }

  @Test func nothingFailsOnceDisarmed() throws {
    let file = try makeFile()
    SyscallFaults.arm { _ in nil }
    SyscallFaults.disarm()
    try write([7], to: file)
    #expect(try contents(file) == [7])
  }

  @Test func readingStopsAtTheEndOfTheFile() throws {
    let file = try makeFile()
    try write([1, 2, 3], to: file)
    #expect(try contents(file, count: 2) == [1, 2])
    #expect(try contents(file, count: 100) == [1, 2, 3])
  }

  @Test(arguments: FileNameTests.oddNames)
  func oddNamesReachTheDiskToTheByte(_ bytes: [UInt8]) throws {
    let name = FileName(bytes)
    let file = try Syscalls.open(
      name, in: directory.rawValue, flags: O_CREAT | O_EXCL | O_RDWR, mode: 0o600)
    #expect(try Syscalls.status(file.rawValue).st_nlink == 1)
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try buffer.withUnsafeMutableBytes {
      try Syscalls.directoryEntries(directory.rawValue, into: $0)
    }
    #expect(buffer.prefix(count).firstRange(of: bytes + [0]) != nil)
    try Syscalls.makeSymbolicLink(to: name, as: FileName("link"), in: directory.rawValue)
    #expect(try Syscalls.readSymbolicLink(FileName("link"), in: directory.rawValue) == name)
    try Syscalls.unlink(name, in: directory.rawValue)
    #expect(throws: Errno.noSuchEntry) {
      try Syscalls.status(of: name, in: directory.rawValue)
    }
  }

  @Test func aFileWithoutANameGetsOneByLinking() throws {
    let file = try Syscalls.openTemporary(in: directory.rawValue, mode: 0o600)
    try write([5], to: file)
    #expect(try Syscalls.status(file.rawValue).st_nlink == 0)
    try Syscalls.link(descriptor: file.rawValue, as: FileName("new"), in: directory.rawValue)
    #expect(try Syscalls.status(of: FileName("new"), in: directory.rawValue).st_size == 1)
    #expect(throws: Errno.exists) {
      try Syscalls.link(descriptor: file.rawValue, as: FileName("new"), in: directory.rawValue)
    }
  }

  @Test func renamingKeepsToItsFlags() throws {
    let fd = directory.rawValue
    for (name, bytes) in [("a", [1] as [UInt8]), ("b", [1, 2])] {
      let file = try Syscalls.open(
        FileName(name), in: fd, flags: O_CREAT | O_RDWR, mode: 0o600)
      try write(bytes, to: file)
    }
    #expect(throws: Errno.exists) {
      try Syscalls.rename(FileName("a"), in: fd, to: FileName("b"), in: fd, flags: .noReplace)
    }
    try Syscalls.rename(FileName("a"), in: fd, to: FileName("b"), in: fd, flags: .exchange)
    #expect(try Syscalls.status(of: FileName("a"), in: fd).st_size == 2)
    try Syscalls.rename(FileName("a"), in: fd, to: FileName("b"), in: fd)
    #expect(try Syscalls.status(of: FileName("b"), in: fd).st_size == 2)
  }
}
