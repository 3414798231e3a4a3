import Foundation
import Glibc
import Platform
import Testing

/// Every exit code that needs no mount, once, with its message and its hint.
@Suite struct ExitCodeTests {
  let program: Program

  init() throws { program = try Program() }

  /// `photovault: error: ...`, then `photovault: hint: ...`, lower case, no final period.
  private func expect(
    _ result: Program.Result, _ status: Int32, _ message: String,
    location: SourceLocation = #_sourceLocation
  ) {
    #expect(result.status == status, "\(result.errors)", sourceLocation: location)
    #expect(result.output.isEmpty, sourceLocation: location)
    let lines = result.errors.split(separator: "\n")
    #expect(lines.count == 2, "\(result.errors)", sourceLocation: location)
    for (line, start) in zip(lines, ["photovault: error: ", "photovault: hint: "]) {
      #expect(line.hasPrefix(start), "\(line)", sourceLocation: location)
      let text = line.dropFirst(start.count)
      #expect(text.first?.isUppercase == false, "\(line)", sourceLocation: location)
      #expect(!text.hasSuffix("."), "\(line)", sourceLocation: location)
    }
    #expect(result.errors.contains(message), "\(result.errors)", sourceLocation: location)
  }

  @Test func doneIsSilent() throws {
    try program.write("password", "\(Program.marker)")
    let made = try program.run("create", "alice", "--password-file", program.path("password"))
    #expect(made.status == 0 && made.output.isEmpty && made.errors.isEmpty)
  }

  @Test func failedSaysWhat() throws {
    try program.write("password", "\(Program.marker)")
    expect(
      try program.run("create", "alice", "--password-file", "missing"), 1,
      "cannot read the password from missing: no such file or directory")
    expect(
      try program.run("encrypt", "missing", "--password-file", program.path("password")), 1,
      "missing: no such file or directory")
  }

  @Test func aVaultThatIsMissingOrNoneIsTen() throws {
    try program.write("password", "\(Program.marker)")
    expect(
      try program.run("recover", "alice", "--vault", "nowhere"), 10,
      "not a vault: \(program.path("nowhere")): there is no such directory")
    expect(
      try program.run("recover", "alice", "--vault", program.folder), 10,
      "there is no file vault.json")
    try program.makeAccount()
    try program.write("home/photos/alice/vault.json", "{}")
    expect(
      try program.run("recover", "alice", "--vault", "home/photos/alice"), 10, "not a vault")
    expect(
      try program.run("remove", "alice", "--delete-photos", "--yes"), 10, "not a vault")
    try program.write("home/photos/alice/vault.json", "{\"format\":2}")
    expect(
      try program.run("recover", "alice", "--vault", "home/photos/alice"), 10,
      "the unknown format 2")
    #expect(try program.run("accounts").output.hasPrefix("alice"))
  }

  @Test(arguments: ["recovery-key", "passwd", "remove", "check"])
  func noSuchAccountIsEleven(_ command: String) throws {
    expect(try program.run(command, "alice"), 11, "no account 'alice'")
    try program.makeAccount()
    expect(try program.run(command, "Alice"), 11, "no account 'Alice'")
  }

  @Test func aWrongPasswordIsTwelve() throws {
    try program.makeAccount()
    try program.write("wrong", "\(Program.marker) passworD\n")
    for command in ["recovery-key", "passwd", "check"] {
      expect(
        try program.run(command, "alice", "--password-file", program.path("wrong")), 12,
        "photovault: error: invalid username/password combination\n")
    }
    expect(
      try program.run(
        "recover", "alice", "--vault", "home/photos/alice", "--recovery-key-file",
        program.path("wrong")),
      12, "this recovery key does not open the vault")
  }

  @Test func aStoreThatCantBeUsedIsFourteen() throws {
    expect(
      try program.run("create", "alice", "--store", "secret-service"), 14, "Secret Service")
    try program.makeAccount()
    try program.write("home/accounts/alice.json", "{\"format\":1}")
    expect(
      try program.run("recovery-key", "alice"), 14, "the account item of 'alice' is damaged")
    try program.write("home/accounts/alice.json", "{\"format\":7}")
    expect(try program.run("recovery-key", "alice"), 14, "unknown format 7")
    try program.write("file", "")
    expect(
      try program.run("accounts", "--home", "file"), 14,
      "the secret store is unavailable: \(program.path("file"))/accounts: not a directory")
    expect(
      try program.run("create", "bob", "--home", "file"), 14, "the secret store is unavailable")
  }

  @Test func aVaultInUseIsSixteen() throws {
    try program.makeAccount()
    let inUse = try Syscalls.open(
      FileName(program.path("home/photos/alice/vault.json")), flags: O_RDWR)
    try Syscalls.lockWholeFile(inUse.rawValue)
    expect(
      try program.run("remove", "alice", "--delete-photos", "--yes"), 16, "is unlocked already")
    #expect(program.exists("home/accounts/alice.json"))
    #expect(program.exists("home/photos/alice/vault.json"))
  }

  @Test func anAccountThatExistsIsEighteen() throws {
    try program.makeAccount()
    let before = try program.read("home/accounts/alice.json")
    expect(
      try program.run("create", "alice", "--password-file", program.path("password")), 18,
      "account exists")
    #expect(try program.read("home/accounts/alice.json") == before)
    #expect(try program.list("home/photos") == ["alice"])

    // An account of another vault is not replaced by recover.
    try program.makeAccount("bob")
    expect(
      try program.run("recover", "alice", "--vault", "home/photos/bob"), 18, "account exists")
  }

  @Test(arguments: [
    [], ["frobnicate"], ["--frobnicate"], ["create"], ["create", "a", "b"], ["create", "--"],
    ["create", "a/b"], ["create", ""], ["create", "."], ["create", ".."], ["create", "a\nb"],
    ["create", String(repeating: "x", count: 201)], ["create", "a", "--names", "other"],
    ["create", "a", "--names"], ["create", "a", "--store", "other"], ["create", "a", "--vault="],
    ["create", "a", "--password", "x"], ["create", "a", "--password-fd", "x"],
    ["create", "a", "--password-fd=-1"], ["create", "a", "--home="],
    ["create", "a", "--password-file", "/dev/null", "--password-fd", "0"],
    ["accounts", "a"], ["accounts", "--json=1"], ["recover", "a"], ["recover", "a", "--vault="],
    ["encrypt"], ["encrypt", ""], ["encrypt", "a", "b"], ["decrypt", "photo.jpg"],
    ["decrypt", ".securedData"], ["decrypt", "x/.securedData"],
  ])
  func usageIsSixtyFour(_ arguments: [String]) throws {
    let words = arguments.map { "'\($0)'" }.joined(separator: " ")
    try program.write(".securedData", "")
    expect(
      try program.shell("exec \"$PV\" \(words) </dev/null"), 64,
      arguments.isEmpty ? "no command given" : "photovault: error: ")
    #expect(!program.exists("home"))
  }

  @Test func removingUnaskedNeedsYes() throws {
    try program.makeAccount()
    expect(try program.run("remove", "alice", input: "y\n"), 64, "remove needs --yes")
    #expect(program.exists("home/accounts/alice.json"))
  }

  @Test func aResultThatCantBeWrittenIsAFailure() throws {
    try program.makeAccount()
    let lost = try program.shell(
      "exec \"$PV\" recovery-key alice --password-file password >/dev/full")
    expect(lost, 1, "standard output: no space left on device")
    let gone = try program.shell("\"$PV\" accounts --json | :")
    #expect(gone.status == 0)
  }
}
