import Foundation
import Testing

/// Where secrets come from, through the built program.
@Suite struct PasswordSourceTests {
  let program: Program
  /// What `makeAccount` sets.
  let password = "\(Program.marker) password"

  init() throws {
    program = try Program()
    try program.makeAccount()
  }

  private func opens(_ line: String) throws -> Int32 {
    try program.shell(line.replacing("OPEN", with: "\"$PV\" recovery-key alice")).status
  }

  @Test func aSecretComesFromAFileADescriptorACommandOrStandardInput() throws {
    #expect(try opens("OPEN --password-file password") == 0)
    #expect(try opens("OPEN --password-file=password") == 0)
    #expect(try opens("OPEN --password-fd 7 7<password") == 0)
    #expect(try opens("OPEN --password-fd 0 <password") == 0)
    #expect(try opens("cat password | OPEN --password-fd 3 3<&0") == 0)
    #expect(try opens("OPEN --password-command 'cat password'") == 0)
    #expect(try opens("OPEN --password-command 'read x; echo \"$x\"' <password") == 0)
    #expect(try opens("OPEN <password") == 0)
    #expect(try opens("printf '\(password)' | OPEN") == 0)
    #expect(try opens("printf '\(password)\\nmore\\n' | OPEN") == 0)
  }

  /// One trailing newline is dropped, nothing else.
  @Test(arguments: [
    ("%s", 0), ("%s\\n", 0), ("%s\\n\\n", 12), ("%s\\r\\n", 12), ("%s ", 12), (" %s", 12),
    ("\\n%s", 12), ("%s\\0x", 12),
  ])
  func oneTrailingNewlineIsDropped(_ format: String, _ status: Int32) throws {
    #expect(
      try opens("printf '\(format)' '\(password)' >given; OPEN --password-file given") == status)
  }

  @Test func anyBytesMakeAPassword() throws {
    let bytes = Data([0, 1, 0xFF, 0xFE, 0x0A, 0x0D, 0xC3])
    try program.write("bytes", bytes + Data(Program.marker.utf8))
    let made = try program.run("create", "b", "--password-file", program.path("bytes"))
    #expect(made.status == 0, "\(made.errors)")
    #expect(
      try program.run("recovery-key", "b", "--password-file", program.path("bytes")).status == 0)
    try program.write("other", bytes + Data(Program.marker.utf8) + Data([0, 1]))
    #expect(
      try program.run("recovery-key", "b", "--password-file", program.path("other")).status == 12)
  }

  @Test(arguments: ["", "\n"])
  func anEmptyPasswordIsRefused(_ text: String) throws {
    try program.write("empty", text)
    for command in ["create bob", "recovery-key alice", "encrypt password"] {
      for way in ["--password-file empty", "<empty", "--password-command 'cat empty'"] {
        let refused = try program.shell("exec \"$PV\" \(command) \(way)")
        #expect(refused.status == 64)
        #expect(refused.errors.hasPrefix("photovault: error: the password is empty\n"))
      }
    }
    let refused = try program.run(
      "passwd", "alice", "--password-file", program.path("password"), "--new-password-file",
      program.path("empty"))
    #expect(refused.errors.hasPrefix("photovault: error: the new password is empty\n"))
    #expect(!program.exists("home/accounts/bob.json") && !program.exists("home/photos/bob"))
    #expect(!program.exists("password.securedData"))
  }

  @Test func aPasswordHasALimitAndAnEndlessOneEnds() throws {
    try program.write("long", String(repeating: "x", count: 4096) + "\n")
    #expect(try opens("OPEN --password-file long") == 12)
    for way in [
      "--password-file /dev/zero", "--password-fd 0 </dev/zero", "</dev/zero",
      "--password-command 'cat /dev/zero'",
    ] {
      let refused = try program.shell("exec \"$PV\" recovery-key alice \(way)")
      #expect(refused.status == 1 && refused.errors.contains("longer than 4096 bytes"), "\(way)")
    }
  }

  @Test(arguments: [
    ("--password-file missing", "no such file or directory"),
    ("--password-file .", "is a directory"),
    ("--password-fd 9", "descriptor 9: bad file descriptor"),
    ("--password-command 'cat password; exit 3'", "it ended with status 3"),
    ("--password-command 'cat password; kill -9 $$'", "it ended with status 137"),
    ("--password-command /missing", "it ended with status 127"),
  ])
  func aSourceThatFailsIsAnError(_ way: String, _ message: String) throws {
    let refused = try program.shell("exec \"$PV\" recovery-key alice \(way) 2>&1 | grep -v sh:")
    #expect(refused.output.hasPrefix("photovault: error: cannot read the password from"))
    #expect(refused.output.contains(message), "\(refused.output)")
  }

  @Test func eachSecretTakesALineOfStandardInput() throws {
    let changed = try program.run(
      "passwd", "alice", input: "\(password)\n\(Program.marker) 2\n\(Program.marker) 3\n")
    #expect(changed.status == 0, "\(changed.errors)")
    #expect(try opens("echo '\(Program.marker) 2' | OPEN") == 0)
    // Two descriptors, two secrets.
    let again = try program.shell(
      """
      exec "$PV" passwd alice --password-fd 5 --new-password-fd 6 5<<E 6<<E
      \(Program.marker) 2
      E
      \(password)
      E
      """)
    #expect(again.status == 0, "\(again.errors)")
    #expect(try opens("OPEN <password") == 0)
  }

  @Test func aCommandGetsTheSignalsThatEverybodyGets() throws {
    // With SIGPIPE ignored, `yes` would complain and end with status 1.
    #expect(try opens("OPEN --password-command 'yes | head -n 0; cat password'") == 0)
    let errors = try program.shell(
      "exec \"$PV\" recovery-key alice --password-command 'yes | head -n 0; cat password'")
    #expect(errors.errors.isEmpty)
  }
}
