import Foundation
import Glibc
import Platform
import Testing

@testable import photovault

/// `encrypt` and `decrypt`, the way out without a vault.
@Suite struct MessageCommandTests {
  let program: Program

  init() throws {
    program = try Program()
    try program.write("password", "\(Program.marker) one\n")
    try program.write("wrong", "\(Program.marker) two\n")
  }

  private func run(_ line: String) throws -> Program.Result {
    try program.shell(line.replacing("PW", with: "--password-file password"))
  }

  @Test(arguments: [0, 1, 15, 16, 17, 65536, 3_000_001])
  func whatIsEncryptedIsDecrypted(_ size: Int) throws {
    let photo = Data.noise(size)
    try program.write("photo.jpg", photo)
    let made = try run("\"$PV\" encrypt photo.jpg PW")
    #expect(made.status == 0 && made.output.isEmpty && made.errors.isEmpty)
    #expect(try program.read("photo.jpg.securedData").count == 66 + 16 * (size / 16 + 1))
    #expect(try program.read("photo.jpg") == photo)
    #expect(try run("\"$PV\" decrypt photo.jpg.securedData PW -o back").status == 0)
    #expect(try program.read("back") == photo)
    #expect(try run("\"$PV\" encrypt photo.jpg PW -o again").status == 0)
    #expect(try program.read("again") != program.read("photo.jpg.securedData"))
  }

  @Test func aSecondImplementationAgrees() throws {
    let photo = Data.noise(100_000)
    try program.write("photo", photo)
    #expect(try run("\"$PV\" encrypt photo PW").status == 0)
    let opened = try program.python(
      "rncryptor.py", "open", program.path("photo.securedData"), "\(Program.marker) one")
    #expect(opened.data == photo)
    let made = try program.python(
      "rncryptor.py", "make", program.path("other.securedData"), "\(Program.marker) one",
      inputFile: program.path("photo"))
    #expect(made.status == 0)
    #expect(try run("\"$PV\" decrypt other.securedData PW").status == 0)
    #expect(try program.read("other") == photo)
  }

  @Test func streamsWorkInBothDirections() throws {
    let photo = Data.noise(500_000)
    try program.write("photo", photo)
    let line = "\"$PV\" encrypt - PW <photo | cat | \"$PV\" decrypt - PW"
    #expect(try run(line).data == photo)
    #expect(try run("\"$PV\" encrypt photo PW -o - | \"$PV\" decrypt -o- - PW").data == photo)
    #expect(try run("\"$PV\" encrypt photo PW -o x; \"$PV\" decrypt - PW -o - <x").data == photo)
    #expect(try run("mkfifo f; cat x >f & \"$PV\" decrypt f PW -o - ; wait").data == photo)
    #expect(try run("\"$PV\" decrypt x PW -o /dev/null").status == 0)
    #expect(try run("\"$PV\" decrypt x PW -o f & cat f; wait").data == photo)
    // A password from standard input can't come with the message.
    #expect(try run("\"$PV\" decrypt - <x").status == 1)
  }

  @Test func nothingIsWrittenOfWhatIsNotVerified() throws {
    try program.write("photo", Data.noise(3_000_000))
    #expect(try run("\"$PV\" encrypt photo PW -o good").status == 0)
    let good = try program.read("good")
    var altered: [(String, Data, Int32)] = [
      ("empty", Data(), 1), ("cut", good.dropLast(16), 12), ("odd", good.dropLast(1), 1),
    ]
    for index in [2, 20, 40, 1_500_000, good.count - 1] {
      var data = good
      data[index] ^= 1
      altered.append(("byte \(index)", data, 12))
    }
    let before = try program.list(".")
    for (name, data, status) in altered {
      try program.write("bad", data)
      for output in ["-o out", "-o -", "-o good --force"] {
        let refused = try run("\"$PV\" decrypt bad PW \(output)")
        #expect(refused.status == status, "\(name): \(refused.errors)")
        #expect(refused.data.isEmpty, "\(name)")
      }
    }
    #expect(try program.list(".") == (before + ["bad"]).sorted())
    #expect(try program.read("good") == good)
    let wrong = try program.run("decrypt", "good", "--password-file", "wrong", "-o", "out")
    #expect(wrong.status == 12 && wrong.errors.contains("wrong password, or the file was altered"))
  }

  @Test(arguments: [
    ("RNC\u{4} rest of it, long enough to be one of those", "a draft of RNCryptor 4"),
    ("\u{89}PNG", "not"), ("hello", "hello"),
  ])
  func whatIsNoMessageIsNamed(_ text: String, _: String) throws {
    try program.write("x.securedData", text)
    let refused = try run("\"$PV\" decrypt x.securedData PW")
    #expect(refused.status == 1 && refused.errors.hasPrefix("photovault: error: x.securedData: "))
    #expect(!program.exists("x"))
  }

  @Test func anExistingFileIsReplacedOnlyByForce() throws {
    try program.write("photo", "new")
    try program.write("photo.securedData", "old")
    let refused = try run("\"$PV\" encrypt photo PW")
    #expect(refused.status == 1 && refused.errors.contains("photo.securedData exists already"))
    #expect(try program.read("photo.securedData") == Data("old".utf8))
    #expect(try run("\"$PV\" encrypt photo PW --force").status == 0)
    #expect(try run("\"$PV\" decrypt photo.securedData PW -o - ").output == "new")
    #expect(try run("mkdir d; \"$PV\" encrypt photo PW --force -o d").status == 1)
    #expect(try run("ln -s nowhere l; \"$PV\" encrypt photo PW -o l").status == 1)
    #expect(try program.list(".").filter { $0.hasPrefix(".") } == [])
  }

  @Test func theInputIsNeverTheOutput() throws {
    try program.write("photo", "plain")
    #expect(try run("ln photo hard; ln -s photo soft").status == 0)
    for name in ["photo", "./photo", "hard", "soft"] {
      let refused = try run("\"$PV\" encrypt photo PW --force -o \(name)")
      #expect(refused.status == 64 && refused.errors.contains("is the input, too"), "\(name)")
    }
    #expect(try program.read("photo") == Data("plain".utf8))
  }

  @Test func modeAndTimeGoAlong() throws {
    try program.write("photo", "plain")
    #expect(try run("chmod 640 photo; touch -d 2001-02-03T04:05:06.789 photo").status == 0)
    #expect(try run("\"$PV\" encrypt photo PW -o a && \"$PV\" decrypt a PW -o b").status == 0)
    let status = try run("stat -c '%a %.9Y' photo a b").output.split(separator: "\n")
    #expect(Set(status).count == 1 && status.count == 3, "\(status)")
  }

  @Test func namesNeedNotBeUTF8() throws {
    let done = try run(
      """
      name=$(printf 'f\\377'); echo plain >"$name" && "$PV" encrypt "$name" PW && rm "$name" &&
      "$PV" decrypt "$name.securedData" PW && cat "$name"
      """)
    #expect(done.status == 0 && done.output == "plain\n", "\(done.errors)")
  }

  @Test func aFullDiskIsReported() throws {
    try program.write("photo", Data.noise(200_000))
    let full = try run("\"$PV\" encrypt photo PW -o /dev/full")
    #expect(full.status == 1 && full.errors.contains("/dev/full: no space left on device"))
  }

  // MARK: in this process, with faults

  #if DEBUG
    private func output(
      failing faults: [SyscallFaults.Call: Errno], replaces: Bool = false
    ) throws -> CommandError? {
      SyscallFaults.arm { faults[$0].map { .fail($0) } }
      defer { SyscallFaults.disarm() }
      do throws(CommandError) {
        let input = try InputFile.open(FileName(program.path("password")))
        let output = try OutputFile.open(
          FileName(program.path("out")), replaces: replaces, input: input, isPlaintext: true)
        try input.read { bytes throws(CommandError) in try output.write(bytes) }
        try output.commit(like: input)
        return nil
      } catch { return error }
    }

    @Test func aFileSystemWithoutNamelessFilesWillDo() throws {
      #expect(try output(failing: [.openTemporary: .notSupported]) == nil)
      #expect(try program.read("out") == program.read("password"))
      #expect(try output(failing: [.openTemporary: .notSupported])?.exitCode == .failed)
      try program.write("out", "old")
      #expect(try output(failing: [.openTemporary: .isADirectory], replaces: true) == nil)
      #expect(try program.list(".") == ["out", "password", "wrong"])
    }

    @Test(arguments: [
      SyscallFaults.Call.write, .synchronize, .rename, .setAttributes, .link,
    ])
    func aFailureLeavesNothingOrTheOldFile(_ call: SyscallFaults.Call) throws {
      for nameless in [true, false] {
        var faults: [SyscallFaults.Call: Errno] = [call: .noSpace]
        if !nameless { faults[.openTemporary] = .notSupported }
        // The last synchronize is that of the directory: the file is there then.
        if call == .rename, nameless { continue }
        if call == .link, !nameless { continue }
        let error = try #require(try output(failing: faults))
        #expect(error.message.hasSuffix("no space left on device"))
        #expect(try program.list(".") == ["password", "wrong"])
        try program.write("out", "old")
        _ = try #require(try output(failing: faults, replaces: true))
        #expect(try program.read("out") == Data("old".utf8))
        #expect(try program.list(".") == ["out", "password", "wrong"])
        try FileManager.default.removeItem(atPath: program.path("out"))
      }
    }
  #endif
}
