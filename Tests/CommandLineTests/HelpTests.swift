import Foundation
import Testing

@Suite struct HelpTests {
  let program: Program

  init() throws { program = try Program() }

  /// The names that `--help` lists.
  private func commands() throws -> [String] {
    let help = try program.run("--help")
    #expect(help.status == 0 && help.errors.isEmpty)
    return help.output.split(separator: "\n").filter { $0.hasPrefix("  ") }.compactMap {
      $0.split(separator: " ").first.map(String.init)
    }
  }

  /// `photovault create --help >Tests/CommandLineTests/Golden/create.txt` writes a new one.
  @Test func everyCommandsHelpIsTheGoldenOne() throws {
    let commands = try commands()
    #expect(commands.count >= 8)
    for command in commands {
      let help = try program.run(command, "--help")
      #expect(help.status == 0 && help.errors.isEmpty)
      let golden = try String(
        contentsOfFile: Program.resource("Golden/\(command).txt"), encoding: .utf8)
      #expect(help.output == golden, "\(command)")
    }
    let golden = try FileManager.default.contentsOfDirectory(atPath: Program.resource("Golden"))
    #expect(golden.map { $0.replacing(".txt", with: "") }.sorted() == commands.sorted())
  }

  @Test func everyHelpFitsAScreen() throws {
    for command in try [[]] + commands().map({ [$0] }) {
      let help = try program.run(command.first ?? "--help", command.isEmpty ? "--help" : "--help")
      let lines = help.output.split(separator: "\n", omittingEmptySubsequences: false)
      // A terminal of 24 lines, as its last one is the prompt's; `mount` has too many options.
      #expect(lines.count <= (command == ["mount"] ? 32 : 24), "\(command)")
      for line in lines { #expect(line.count <= 80, "\(line)") }
    }
  }

  @Test func helpNeedsNothingElse() throws {
    #expect(try program.run("create", "--help").status == 0)
    #expect(try program.run("create", "a", "b", "c", "--help").status == 0)
    #expect(try program.run("help").output == program.run("--help").output)
    #expect(!program.exists(program.home))
  }

  @Test func theVersionIsPrinted() throws {
    let version = try program.run("--version")
    #expect(version.status == 0 && version.errors.isEmpty)
    #expect(version.output.wholeMatch(of: /photovault \d+\.\d+\.\d+\n/) != nil)
  }
}
