import Conformance
import Testing
import VaultStorage

/// The vault's file system passes without a kernel, with either kind of names, whether its nodes
/// are forgotten at once or late.
@Suite struct VaultTests {
  @Test(arguments: Check.withoutMount) func encryptedNamesPass(_ check: Check) throws {
    try run(check, .encrypted, .late)
  }

  @Test(arguments: Check.withoutMount) func plainNamesPass(_ check: Check) throws {
    try run(check, .plain, .early)
  }

  private func run(
    _ check: Check, _ names: NamesMode, _ forgetting: DirectDriver.Forgetting
  ) throws {
    let driver = try DirectDriver(names: names, forgetting: forgetting)
    record(check) {
      try check.run(on: driver)
      try driver.remount()
    }
    try? driver.end()
  }
}
