import Foundation
import Testing

@testable import photovault

/// `check` by the built program, on photos that another program encrypted.
@Suite struct CheckCommandTests {
  let program: Program

  init() throws { program = try Program() }

  /// An account whose vault holds these photos, each of so many bytes.
  private func makeVault(_ photos: [String: Int]) throws {
    try program.write("blob-password", "\(Program.marker) blobs")
    try program.write("password", "\(Program.marker) password\n")
    try FileManager.default.createDirectory(
      atPath: program.path("V"), withIntermediateDirectories: false)
    for (name, size) in photos {
      let made = try program.shell(
        """
        head -c \(size) /dev/zero | "$PV" encrypt - --password-file blob-password \
          -o 'V/\(name).securedData'
        """)
      #expect(made.status == 0, "\(made.errors)")
    }
    let made = try program.run(
      "create", "alice", "--vault", "V", "--names", "plain", "--password-file",
      program.path("password"), "--blob-password-file", program.path("blob-password"))
    #expect(made.status == 0, "\(made.errors)")
  }

  private func check(_ options: String...) throws -> Program.Result {
    try program.shell(
      "exec \"$PV\" check alice --password-file password \(options.joined(separator: " "))")
  }

  private func flip(_ name: String) throws {
    var bytes = try program.read(name)
    bytes[bytes.count - 50] ^= 1
    try program.write(name, bytes)
  }

  @Test func aGoodVaultEndsWithOneLine() throws {
    try makeVault(["one.jpg": 10, "two.jpg": 300_000])
    let checked = try check()
    #expect(checked.status == 0 && checked.errors.isEmpty, "\(checked.errors)")
    let lines = checked.output.split(separator: "\n")
    #expect(lines.count == 3 && lines[0].hasPrefix("1 chunk index missing: no damage"))
    #expect(lines.dropFirst().first?.hasPrefix("2 place seals missing: no damage") == true)
    #expect(lines.last == "checked 'alice': 2 files, 300 kB, 1 folder: no damage")
    // Nothing was changed by it.
    #expect(try program.list("V") == ["one.jpg.securedData", "two.jpg.securedData", "vault.json"])
  }

  @Test func damageIsFifteenAndNamed() throws {
    try makeVault(["one.jpg": 10, "two.jpg": 300_000, "three.jpg": 20])
    try flip("V/two.jpg.securedData")
    let checked = try check()
    #expect(checked.status == 15 && checked.errors.isEmpty)
    #expect(
      checked.output.contains(
        "damaged: two.jpg (two.jpg.securedData): its bytes are not those that were written\n"))
    #expect(checked.output.hasSuffix("1 folder: 1 damaged\n"))
    let repaired = try check("--repair")
    #expect(repaired.status == 15)
    #expect(repaired.output.contains("; moved to .photovault-damaged/1\n"))
    let after = try check()
    #expect(after.status == 0)
    #expect(after.output.contains("1 file set aside in .photovault-damaged by a repair\n"))
    #expect(program.exists("V/.photovault-damaged/1/two.jpg.securedData"))
  }

  @Test func whatIsPutRightWithoutLossIsDone() throws {
    try makeVault(["one.jpg": 300_000])
    try program.write("V/.photovault-abcdef.tmp", "half")
    let left = try check()
    #expect(left.status == 0 && left.output.contains("left over: .photovault-abcdef.tmp: "))
    let repaired = try check("--repair")
    #expect(repaired.status == 0, "\(repaired.errors)")
    #expect(repaired.output.contains("interrupted; it was removed\n"))
    #expect(!repaired.output.contains("missing"))
    #expect(!program.exists("V/.photovault-abcdef.tmp"))
  }

  @Test func theJSONIsWhatItSaysInTheManual() throws {
    try makeVault(["one.jpg": 10, "two\nlines.jpg": 300_000])
    try flip("V/one.jpg.securedData")
    try program.write("V/desktop.ini", "")
    let read = """
      import json, sys
      text = sys.stdin.read()
      assert text.count("\\n") == 1, text
      report = json.loads(text)
      assert set(report) == {"user", "vault", "clean", "counts", "findings"}, report
      assert report["user"] == "alice" and report["clean"] is False
      counts = {"files": 2, "bytes": 16 + 300016, "directories": 1, "damaged": 1, "leftovers": 0,
                "orphans": 0, "strangers": 1, "missingIndexes": 1, "missingSeals": 1,
                "setAside": 0}
      assert report["counts"] == counts, report["counts"]
      foreign, damaged = report["findings"]
      assert foreign["kind"] == "stranger" and foreign["damage"] is False
      assert "path" not in foreign and foreign["storedPath"] == "desktop.ini"
      assert damaged["path"] == "one.jpg" and damaged["storedPath"] == "one.jpg.securedData"
      assert damaged["kind"] == "blob" and damaged["damage"] is True
      assert damaged["repair"] == "none" and damaged["reason"]
      """
    try program.write("read.py", read)
    let checked = try program.shell(
      """
      "$PV" check --json alice --password-file password >out 2>err; echo $?
      python3 read.py <out && test ! -s err && echo right
      """)
    #expect(checked.output == "15\nright\n", "\(checked.output)\(checked.errors)")
    let repaired = try program.shell(
      """
      "$PV" check --json --repair alice --password-file password >out; echo $?
      python3 -c '
      import json
      report = json.load(open("out"))
      assert [f["repair"] for f in report["findings"]] == ["none", "set aside"], report
      assert report["findings"][1]["repairDetail"] == "moved to .photovault-damaged/1", report
      assert report["counts"]["missingIndexes"] == 0 and report["counts"]["setAside"] == 1, report
      ' && "$PV" check --json alice --password-file password | grep -c '"clean":true'
      """)
    #expect(repaired.output == "15\n1\n", "\(repaired.output)\(repaired.errors)")
  }

  @Test func aVaultThatIsGoneIsTen() throws {
    try makeVault(["one.jpg": 10])
    try FileManager.default.removeItem(atPath: program.path("V/vault.json"))
    let checked = try check()
    #expect(checked.status == 10 && checked.output.isEmpty)
    #expect(checked.errors.contains("not a vault"))
  }

  @Test func aReaderThatGoesAwayEndsIt() throws {
    try makeVault(["one.jpg": 10])
    let checked = try check(">/dev/full")
    #expect(checked.status == 1)
    #expect(checked.errors.contains("standard output: no space left on device"))
  }

  @Test func onATerminalItShowsHowFarItIsAndEndsAtOnce() throws {
    try makeVault(["film.mp4": 400_000_000])
    let ended = try program.onTerminal(
      [("password for alice: ", "\(Program.marker) password\r"), (" files  ", "\u{3}")], "check",
      "alice")
    #expect(ended.status == 130, "\(ended.output)\(ended.errors)")
    #expect(ended.output.contains("B/s"))
    #expect(!ended.output.contains("checked 'alice'"))
    #expect(ended.output.hasSuffix("{as before}"))
  }

  @Test func theProgressLineFitsTheTerminal() {
    var state = Progress.State(files: 1204, bytes: 3_100_000_000)
    #expect(Progress.line(state, rate: 8.12e8, width: 80) == "1204 files  3.1 GB  812 MB/s")
    state.totalFiles = 2953
    state.totalBytes = 7_600_000_000
    #expect(
      Progress.line(state, rate: 8.12e8, width: 100)
        == "[########............]   40 %  1204 of 2953 files  3.1 of 7.6 GB  812 MB/s  0:06 left")
    for width in 10..<120 {
      let line = Progress.line(state, rate: 8.12e8, width: width)
      #expect(line.count < width || line == "0:06 left")
    }
    state.totalBytes = 1
    #expect(Progress.line(state, rate: 1, width: 100).contains("100 %"))
    #expect(Progress.time(3725.2) == "1:02:06")
    #expect(Progress.time(59.1) == "1:00")
  }
}
