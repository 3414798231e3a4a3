import Glibc
import Testing

extension MountedTests {
  /// kill -9 of the daemon at random moments, while versions of photos are written.
  @Suite struct CrashTests {
    @Test(
      "after kill -9 every name holds a whole version, and none that was closed is lost",
      arguments: Names.allCases)
    func wholeOldOrWholeNew(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        for round in 1...Self.rounds / 2 {
          let writer = try Command.spawn(
            [
              "timeout", "60", "python3", Checkout.workloads + "/versions.py", "write",
              vault.mountPoint, vault.work + "/closed", "\(round)",
            ], output: vault.work + "/out", errors: vault.work + "/err")
          let begun = Wait.until(seconds: 30) { access(vault.work + "/closed", F_OK) == 0 }
          #expect(begun, "the writer is in the mount")
          usleep(UInt32.random(in: 50_000...600_000))
          try vault.crash()
          #expect(writer.wait() == 0, "\(Scratch.read(vault.work + "/err"))")
          #expect(Wait.until(seconds: 5) { !vault.isMounted })
          try vault.mount()
          try vault.shell(
            "python3 \"$T/versions.py\" check \"$M\" \"$W/closed\"; rm -f \"$W/closed\"", limit: 120
          )
          try vault.expectNoTemporaries()
        }
      }
    }

    private static let rounds = Int(Environment["PHOTOVAULT_TEST_CRASHES"] ?? "") ?? 30
  }
}
