import Conformance
import Testing

/// The checks themselves are right: a directory of the system's own file system passes them all.
@Suite(.serialized) struct PlainDirectoryTests {
  @Test(arguments: Check.selected) func aPlainDirectoryPasses(_ check: Check) throws {
    let driver = try SystemCallDriver.plain()
    defer { try? driver.end() }
    record(check) { try check.run(on: driver) }
  }
}

/// Runs `body` and puts a failed expectation where the check says it failed.
func record(_ check: Check, _ body: () throws -> Void) {
  do { try body() } catch let failure as CheckFailure {
    Issue.record(
      "\(failure)",
      sourceLocation: SourceLocation(
        fileID: "Conformance/\(failure.file.split(separator: "/").last ?? "")",
        filePath: failure.file, line: failure.line, column: 1))
  } catch {
    Issue.record(error, "\(check)")
  }
}
