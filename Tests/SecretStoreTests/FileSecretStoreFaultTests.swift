#if DEBUG
  import Foundation
  import Platform
  import Synchronization
  import Testing

  @testable import SecretStore

  /// Every call of every verb fails in turn: the old item is there, or the new one, never less.
  @Suite struct FileSecretStoreFaultTests {
    static let faults: [SyscallFaults.Fault] = [
      .fail(.inputOutput), .fail(.noSpace), .fail(.permissionDenied), .fail(.interrupted),
      .short(7),
    ]

    /// Makes the `number`-th call (from 0) of this thread in `body` fail; false when there are
    /// not so many.
    private func failing(
      _ number: Int, _ fault: SyscallFaults.Fault, _ body: () throws -> Void
    ) -> (reached: Bool, code: Int32) {
      let count = Counter()
      SyscallFaults.arm { _ in
        count.next() == number ? fault : nil
      }
      defer { SyscallFaults.disarm() }
      let code = code(body)
      return (count.next() > number, code)
    }

    private final class Counter: Sendable {
      private let value = Mutex(0)
      func next() -> Int {
        value.withLock {
          $0 += 1
          return $0 - 1
        }
      }
    }

    private func isHarmless(_ fault: SyscallFaults.Fault) -> Bool {
      switch fault {
      case .fail(.interrupted), .short: true
      default: false
      }
    }

    @Test(arguments: faults) func anUpdateLeavesTheOldOrTheNewItem(
      _ fault: SyscallFaults.Fault
    ) throws {
      let test = try TestStore()
      let old = try makeAccount("alice", vault: "/old")
      let new = try makeAccount("alice", vault: "/new")
      try test.store.add(old)
      for number in 0..<100 {
        let (reached, code) = failing(number, fault) {
          let isDone = try test.store.update(old, to: new)
          #expect(isDone)
        }
        let found = try test.store.lookUp(old.name)
        #expect(found == old || found == new)
        if code == 0 { #expect(found == new) }
        if isHarmless(fault) { #expect(code == 0) }
        #expect(code == 0 || code == -25291)
        guard reached else {
          #expect(number > 8, "an update makes more calls than that")
          #expect(try test.files() == [".lock", "alice.json"])
          return
        }
        if found == new { #expect(try test.store.update(new, to: old)) }
        #expect(try test.files() == [".lock", "alice.json"])
      }
      Issue.record("an update ends")
    }

    @Test(arguments: faults) func anAddMakesAnItemOrNone(_ fault: SyscallFaults.Fault) throws {
      let account = try makeAccount("alice", thisDeviceOnly: true)
      for number in 0..<100 {
        let test = try TestStore()
        let (reached, code) = failing(number, fault) { try test.store.add(account) }
        let names = try test.store.names()
        #expect(code == 0 ? names == [account.name] : names == [])
        if isHarmless(fault) { #expect(code == 0) }
        #expect(code == 0 || code == -25291)
        // A second try is not in the way of the first one's rest.
        if code != 0 { try test.store.add(account) }
        #expect(try test.files() == [".lock", "CACHEDIR.TAG", "alice.json"])
        guard reached else {
          #expect(number > 10, "an add makes more calls than that")
          return
        }
      }
      Issue.record("an add ends")
    }

    @Test(arguments: faults) func aDeleteTakesTheItemOrLeavesIt(
      _ fault: SyscallFaults.Fault
    ) throws {
      let test = try TestStore()
      let account = try makeAccount("alice")
      for number in 0..<100 {
        if try test.store.names().isEmpty { try test.store.add(account) }
        let (reached, code) = failing(number, fault) { try test.store.delete(account.name) }
        if code == 0 {
          #expect(try test.store.names() == [])
        } else if try test.store.names() != [] {
          #expect(try test.store.lookUp(account.name) == account)
        }
        if isHarmless(fault) { #expect(code == 0) }
        guard reached else { return }
      }
      Issue.record("a delete ends")
    }

    @Test func aLeftoverOfACrashIsNotInTheWay() throws {
      let test = try TestStore()
      let old = try makeAccount("alice", vault: "/old")
      try test.store.add(old)
      let leftover = test.directory + "/.photovault-account.tmp"
      try "half an it".write(toFile: leftover, atomically: false, encoding: .utf8)
      #expect(try test.store.names() == [old.name])
      #expect(try test.store.update(old, to: try makeAccount("alice", vault: "/new")))
      #expect(try test.files() == [".lock", "alice.json"])
    }
  }
#endif
