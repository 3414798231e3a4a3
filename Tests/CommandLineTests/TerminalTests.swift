import Foundation
import Testing

/// Questions on a real terminal.
@Suite struct TerminalTests {
  let program: Program
  let password = "\(Program.marker) typed"

  init() throws { program = try Program() }

  private func typed(_ keys: String) -> String { "\(Program.marker) \(keys)\r" }

  @Test func createAsksTwiceWithoutEchoAndShowsTheKeyOnce() throws {
    let made = try program.onTerminal(
      [
        ("new password for alice: ", typed("typed")),
        ("new password for alice, again: ", typed("typed")),
      ], "create", "alice")
    #expect(made.status == 0, "\(made.output)\(made.errors)")
    #expect(!made.output.contains(Program.marker))
    #expect(made.output.components(separatedBy: "{echo off}").count == 3)
    #expect(made.output.hasSuffix("{as before}"))
    try program.write("password", password)
    let key = try program.recoveryKey()
    #expect(made.output.components(separatedBy: key).count == 2)
    #expect(made.output.contains("keep it away from this machine"))
  }

  @Test func twoDifferentPasswordsChangeNothing() throws {
    let made = try program.onTerminal(
      [("alice: ", typed("one")), ("again: ", typed("two"))], "create", "alice")
    #expect(made.status == 1)
    #expect(made.output.contains("the two are not the same"))
    #expect(!program.exists("home/photos") && !made.output.contains(Program.marker))
  }

  @Test func aRedirectedRunAsksOnTheTerminalAndKeepsTheKeyThere() throws {
    try program.write("password", password)
    let script = """
      exec '\(program.executable)' create alice --password-file password >out 2>err
      """
    try program.write("script", script)
    let made = try program.python("terminal.py", "[]", "/bin/sh", program.path("script"))
    #expect(made.status == 0, "\(made.output)\(made.errors)")
    let key = try program.recoveryKey()
    #expect(made.output.contains(key))
    #expect(try program.read("out").isEmpty && program.read("err").isEmpty)
  }

  @Test(arguments: [("\u{3}", 130), ("\u{1C}", 131), ("\u{4}", 1), ("\r", 64)])
  func whatEndsTheQuestionLeavesTheTerminalAsItWas(_ keys: String, _ status: Int32) throws {
    try program.makeAccount()
    let ended = try program.onTerminal(
      [("password for alice: ", keys)], "recovery-key", "alice")
    #expect(ended.output.hasSuffix("{as before}"), "\(ended.output)")
    #expect(ended.status == status, "\(ended.output)\(ended.errors)")
  }

  @Test func passwdAsksForBoth() throws {
    try program.makeAccount()
    let changed = try program.onTerminal(
      [
        ("password for alice: ", typed("password")), ("new password for alice: ", typed("new")),
        ("again: ", typed("new")),
      ], "passwd", "alice")
    #expect(changed.status == 0, "\(changed.output)\(changed.errors)")
    #expect(!changed.output.contains(Program.marker))
    try program.write("password", "\(Program.marker) new")
    _ = try program.recoveryKey()
  }

  @Test func recoverAsksForTheKeyAndThePassword() throws {
    try program.makeAccount()
    let key = try program.recoveryKey()
    let back = try program.onTerminal(
      [
        ("recovery key of", key.lowercased() + "\r"), ("new password for bob: ", typed("new")),
        ("again: ", typed("new")),
      ], "recover", "bob", "--vault", "home/photos/alice")
    #expect(back.status == 0, "\(back.output)\(back.errors)")
    #expect(!back.output.lowercased().contains(key.lowercased()))
    try program.write("password", "\(Program.marker) new")
    #expect(try program.recoveryKey("bob") == key)
  }

  @Test(arguments: [
    ("y\r", true), ("yes\r", true), ("Y\r", true), ("n\r", false), ("\r", false),
    ("yesterday\r", false), ("\u{4}", false),
  ])
  func removeAsks(_ answer: String, _ removes: Bool) throws {
    try program.makeAccount()
    let asked = try program.onTerminal(
      [("[y/N] ", answer)], "remove", "alice", "--delete-photos")
    #expect(asked.status == (removes ? 0 : 1), "\(asked.output)\(asked.errors)")
    #expect(asked.output.contains("{echo on}"))
    #expect(program.exists("home/accounts/alice.json") != removes)
    #expect(program.exists("home/photos/alice/vault.json") != removes)
  }

  @Test func bytesDontGoToTheTerminalUnlessAskedFor() throws {
    try program.write("photo", "plain")
    let script = "exec '\(program.executable)' encrypt - --password-file photo <photo"
    try program.write("script", script)
    let refused = try program.python("terminal.py", "[]", "/bin/sh", program.path("script"))
    #expect(refused.status == 64)
    #expect(refused.output.contains("bytes would go to the terminal"))
  }
}
