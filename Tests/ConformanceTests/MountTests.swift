import Conformance
import Testing
import VaultStorage

/// The same through the kernel: the built program, a real mount. One mount serves all checks, each
/// in a directory of its own.
@Suite struct MountTests {
  @Test(arguments: [NamesMode.encrypted, .plain]) func aMountPasses(_ names: NamesMode) throws {
    let program = try VaultMount.builtProgram()
    var mount = try VaultMount(program: program, names: names)
    var driver = mount.driver
    defer { try? driver.end() }
    for check in Check.selected {
      record(check) {
        do { try check.run(on: driver, abandon: { [mount] in mount.abandon() }) } catch {
          // What a failed check leaves, perhaps a dead mount, must not fail the next.
          try? driver.end()
          mount = try VaultMount(program: program, names: names)
          driver = mount.driver
          throw error
        }
      }
    }
  }
}
