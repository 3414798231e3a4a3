import Platform
import Testing

@testable import photovault

@Suite struct ArgumentsTests {
  private static let options = [
    OptionSpec("vault", value: "DIR", help: ""), OptionSpec("o", value: "OUT", help: ""),
    OptionSpec("json", help: ""), OptionSpec("f", help: ""),
  ]

  private func parse(_ words: [String], raw: Bool = false) throws -> Arguments {
    try Arguments(
      words.map { FileName($0) }, options: Self.options, command: "test", takesRawPaths: raw)
  }

  @Test(arguments: [
    ["--vault", "/v", "alice", "bob"], ["alice", "--vault", "/v", "bob"],
    ["alice", "bob", "--vault=/v"], ["alice", "--vault=/v", "--", "bob"],
    ["--vault", "/w", "alice", "--vault", "/v", "bob"],
  ])
  func optionsStandAnywhere(_ words: [String]) throws {
    let arguments = try parse(words)
    #expect(arguments.positionals == ["alice", "bob"])
    #expect(arguments.value(of: "vault") == "/v")
    #expect(!arguments.has("json"))
  }

  @Test func twoDashesEndTheOptions() throws {
    let arguments = try parse(["--json", "--", "--vault", "-", "--", "-x"])
    #expect(arguments.positionals == ["--vault", "-", "--", "-x"])
    #expect(arguments.has("json") && !arguments.has("vault"))
  }

  @Test func oneDashIsAnArgumentAndAValue() throws {
    let arguments = try parse(["-", "-o", "-", "--vault", "--"])
    #expect(arguments.positionals == ["-"])
    #expect(arguments.value(of: "o") == "-" && arguments.value(of: "vault") == "--")
  }

  @Test func aValueMayBeEmptyOrHoldAnEqualsSign() throws {
    #expect(try parse(["--vault="]).value(of: "vault") == "")
    #expect(try parse(["--vault=a=b"]).value(of: "vault") == "a=b")
    #expect(try parse(["-oa=b"]).value(of: "o") == "a=b")
    #expect(try parse(["-o", "1", "-o2"]).values(of: "o") == ["1", "2"])
  }

  @Test(arguments: [
    ["--unknown"], ["--vaul", "x"], ["--vault"], ["a", "-o"], ["--json=yes"], ["-x"], ["-fx"],
    ["--o", "x", "--"].dropLast(), ["---"], ["-vault", "x"], ["--password=x"],
  ])
  func whatIsNoOptionIsAUsageError(_ words: [String]) throws {
    // `--o` is the long spelling of a one-letter name: refused like any other.
    do {
      _ = try parse(words)
      Issue.record("taken: \(words)")
    } catch {
      let error = try #require(error as? CommandError)
      #expect(error.exitCode == .usage)
      #expect(error.hint == "see 'photovault test --help'")
      #expect(!error.message.contains("=x") && !error.message.contains("=yes"))
    }
  }

  @Test func namesThatAreNotUTF8AreKeptOrRefused() throws {
    let name = FileName([0x66, 0xFF])
    #expect(throws: CommandError.self) {
      try Arguments([name], options: Self.options, command: "test")
    }
    let arguments = try Arguments(
      [name, FileName("-o"), name], options: Self.options, command: "test", takesRawPaths: true)
    #expect(arguments.rawPositionals == [name] && arguments.rawValue(of: "o") == name)
  }
}
