import Foundation
import Glibc
import Testing

@Suite struct AccountCommandTests {
  let program: Program

  init() throws { program = try Program() }

  private func mode(_ name: String) -> mode_t {
    var status = stat()
    return lstat(program.path(name), &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  @Test func createMakesAnAccountAndItsVault() throws {
    try program.makeAccount()
    #expect(try program.list("home") == ["accounts", "photos"])
    #expect(try program.list("home/photos/alice") == ["directory.id", "vault.json"])
    #expect(mode("home") == 0o700 && mode("home/accounts") == 0o700)
    #expect(mode("home/accounts/alice.json") == 0o600)
    #expect(mode("home/photos/alice") == 0o700)
    #expect(mode("home/photos/alice/vault.json") == 0o600)
    let key = try program.recoveryKey()
    #expect(key.wholeMatch(of: /([0-9A-HJKMNP-TV-Z]{4}-){12}[0-9A-HJKMNP-TV-Z]{4}/) != nil)
  }

  @Test func theHomeIsFoundWhereItIsPromised() throws {
    try program.write("password", "\(Program.marker)\n")
    let password = ["--password-file", program.path("password")]
    let places: [([String: String?], [String], String)] = [
      (["PHOTOVAULT_HOME": nil, "XDG_DATA_HOME": nil], [], ".local/share/photovault"),
      (
        ["PHOTOVAULT_HOME": nil, "XDG_DATA_HOME": program.path("xdg")], [], "xdg/photovault"
      ),
      (
        ["PHOTOVAULT_HOME": "", "XDG_DATA_HOME": "relative"], [], ".local/share/photovault"
      ),
      (["PHOTOVAULT_HOME": program.path("env")], [], "env"),
      (["PHOTOVAULT_HOME": "relative/env"], [], "relative/env"),
      (["PHOTOVAULT_HOME": program.path("env")], ["--home", "option"], "option"),
    ]
    for (index, (environment, options, place)) in places.enumerated() {
      let made = try program.run(
        "create", "user\(index)", password[0], password[1], options.first ?? "--names",
        options.last ?? "encrypted", environment: environment)
      #expect(made.status == 0, "\(made.errors)")
      #expect(program.exists("\(place)/accounts/user\(index).json"), "\(place)")
      #expect(program.exists("\(place)/photos/user\(index)/vault.json"), "\(place)")
    }
  }

  @Test func accountsListsThemForPeopleAndForPrograms() throws {
    #expect(try program.run("accounts").output == "")
    #expect(try program.run("accounts", "--json").output == "[]\n")
    try program.makeAccount()
    let made = try program.run(
      "create", "b", "--vault", "else where", "--names", "plain", "--this-device-only",
      "--password-file", program.path("password"))
    #expect(made.status == 0)
    #expect(made.errors.hasPrefix("photovault: warning: "))
    let (home, other) = (program.home, program.path("else where"))
    #expect(
      try program.run("accounts").output == "alice  \(home)/photos/alice\nb      \(other)\n")
    let json = try program.run("accounts", "--json").data
    let rows = try #require(try JSONSerialization.jsonObject(with: json) as? [[String: Any]])
    #expect(rows.map { $0["account"] as? String } == ["alice", "b"])
    #expect(rows.map { $0["thisDeviceOnly"] as? Bool } == [false, true])
    #expect(rows.map { $0["store"] as? String } == ["file", "file"])
    let vaults = try rows.map { try #require($0["vault"] as? [String: String]) }
    #expect(vaults.map { $0["path"] } == ["\(home)/photos/alice", other])
    for (vault, path) in zip(vaults, ["home/photos/alice", "else where"]) {
      let text = try String(decoding: program.read("\(path)/vault.json"), as: UTF8.self)
      #expect(text.contains("\"id\":\"\(vault["id"] ?? "none")\""))
    }
    #expect(program.exists("home/accounts/CACHEDIR.TAG"))

    try program.write("home/accounts/alice.json", "{}")
    let damaged = try program.run("accounts", "--json")
    #expect(damaged.status == 14 && damaged.errors.contains("'alice' is damaged"))
    let rest = try JSONSerialization.jsonObject(with: damaged.data) as? [[String: Any]]
    #expect(rest?.count == 2 && rest?.first?["error"] is String)
  }

  @Test func passwdChangesThePasswordAndNotTheKey() throws {
    try program.makeAccount()
    let key = try program.recoveryKey()
    let vault = try program.read("home/photos/alice/vault.json")
    try program.write("new", "\(Program.marker) new")
    let changed = try program.run(
      "passwd", "alice", "--password-file", program.path("password"), "--new-password-file",
      program.path("new"))
    #expect(changed.status == 0 && changed.output.isEmpty && changed.errors.isEmpty)
    let old = try program.run("recovery-key", "alice", "--password-file", program.path("password"))
    #expect(old.status == 12)
    try program.write("password", "\(Program.marker) new\n")
    #expect(try program.recoveryKey() == key)
    #expect(try program.read("home/photos/alice/vault.json") == vault)
  }

  @Test func recoverBringsALostAccountBack() throws {
    try program.makeAccount()
    let key = try program.recoveryKey()
    #expect(try program.run("remove", "alice", "--yes").status == 0)
    #expect(program.exists("home/photos/alice/vault.json"))
    #expect(!program.exists("home/accounts/alice.json"))

    // However it is typed.
    let typed = key.lowercased().replacing("-", with: " ").replacing("0", with: "o")
    try program.write("key", typed.replacing("1", with: "l") + "\n")
    let back = try program.run(
      "recover", "alice", "--vault", "home/photos/alice", "--recovery-key-file",
      program.path("key"), "--new-password-file", program.path("password"))
    #expect(back.status == 0, "\(back.errors)")
    #expect(try program.recoveryKey() == key)
  }

  @Test func recoverReplacesAForgottenPasswordAndAMovedVaultsPath() throws {
    try program.makeAccount()
    let key = try program.recoveryKey()
    try program.write("key", key)
    try FileManager.default.moveItem(
      atPath: program.path("home/photos/alice"), toPath: program.path("moved"))
    let set = try program.run(
      "recover", "alice", "--vault", "moved", "--recovery-key-file", program.path("key"),
      input: "\(Program.marker) other\n")
    #expect(set.status == 0, "\(set.errors)")
    #expect(try program.run("accounts").output.contains(program.path("moved")))
    try program.write("password", "\(Program.marker) other")
    #expect(try program.recoveryKey() == key)
  }

  @Test func removeDeletesPhotosOnlyWhenToldSo() throws {
    try program.makeAccount()
    try program.write("home/photos/alice/Zm9v.securedData", "x")
    try FileManager.default.createDirectory(
      atPath: program.path("home/photos/alice/album"), withIntermediateDirectories: false)
    try program.write("home/photos/alice/album/directory.id", "x")
    try program.write("home/photos/alice/album/Zm9v (conflicted copy).securedData", "x")
    try FileManager.default.createSymbolicLink(
      atPath: program.path("home/photos/alice/link"), withDestinationPath: program.folder)
    #expect(try program.run("remove", "alice", "--delete-photos", "--yes").status == 0)
    #expect(try program.list("home/photos") == [])
    #expect(try program.list("home/accounts") == [".lock"])
    #expect(program.exists("password"), "links are not followed")
  }

  @Test func removeKeepsWhatIsNotPhotovaults() throws {
    try program.write("password", "\(Program.marker)")
    try FileManager.default.createDirectory(
      atPath: program.path("mine/sub"), withIntermediateDirectories: true)
    try program.write("mine/taxes.pdf", "x")
    try program.write("mine/sub/letter.txt", "x")
    let made = try program.run(
      "create", "alice", "--vault", "mine", "--names", "plain", "--password-file",
      program.path("password"))
    #expect(made.status == 0, "\(made.errors)")
    try program.write("mine/sub/photo.jpg.securedData", "x")
    let removed = try program.run("remove", "--yes", "--delete-photos", "--", "alice")
    #expect(removed.status == 0)
    #expect(removed.errors.contains("2 files in it are not photovault's"))
    #expect(try program.list("mine") == ["sub", "taxes.pdf"])
    #expect(try program.list("mine/sub") == ["letter.txt"])
  }

  @Test func blobsOfAnotherAppAreTakenOver() throws {
    try program.write("password", "\(Program.marker)\n")
    try program.write("blob password", "\(Program.marker) of the app\n")
    try FileManager.default.createDirectory(
      atPath: program.path("Documents"), withIntermediateDirectories: false)
    try program.write("picture", "not really a picture")
    let blob = program.path("Documents/image-1.securedData")
    let python = try program.python(
      "rncryptor.py", "make", blob, "\(Program.marker) of the app",
      inputFile: program.path("picture"))
    #expect(python.status == 0)
    let before = try program.read(blob)

    func create(_ options: String...) throws -> Program.Result {
      let words = options.map { "'\($0)'" }.joined(separator: " ")
      return try program.shell(
        "exec \"$PV\" create alice --vault Documents --password-file password \(words)")
    }
    #expect(try create().status == 64, "a random key opens none of them")
    #expect(try create("--blob-password-file", "password").status == 12)
    #expect(try create("--names", "encrypted", "--blob-password-file", "blob password").status == 1)
    #expect(try program.list("Documents") == ["image-1.securedData"])
    #expect(try !program.exists("home/accounts") || program.list("home/accounts") == [])

    #expect(try create("--blob-password-file", "blob password").status == 0)
    #expect(try program.read(blob) == before)
    #expect(try program.list("Documents") == ["image-1.securedData", "vault.json"])
    let shown = try program.run(
      "recovery-key", "alice", "--password-file", program.path("password"), mayShowMarker: true)
    #expect(shown.output == "\(Program.marker) of the app\n")
  }

  @Test func aFailedCreateLeavesNothing() throws {
    try program.write("password", "\(Program.marker)\n")
    try FileManager.default.createDirectory(
      atPath: program.path("full"), withIntermediateDirectories: false)
    try program.write("full/note", "x")
    let refused = try program.run(
      "create", "alice", "--vault", "full", "--password-file", program.path("password"))
    #expect(refused.status == 1 && refused.errors.contains("is not empty"))
    #expect(try program.list("full") == ["note"])

    // The account can't be kept: the vault goes again.
    try FileManager.default.createDirectory(
      atPath: program.path("home/accounts/.lock"), withIntermediateDirectories: true)
    let failed = try program.run(
      "create", "alice", "--password-file", program.path("password"))
    #expect(failed.status == 14)
    #expect(try program.list("home/photos/alice") == [])
    try FileManager.default.removeItem(atPath: program.path("home/accounts/.lock"))
    try program.makeAccount()
  }

  @Test func twoCreatesAtATimeMakeOneAccount() throws {
    try program.write("password", "\(Program.marker)\n")
    let both = try program.shell(
      """
      for i in 1 2 3; do
        ("$PV" create alice --password-file password 2>/dev/null; echo $?) &
      done; wait
      """)
    let codes = both.output.split(separator: "\n")
    #expect(codes.count == 3 && codes.filter { $0 == "0" }.count == 1, "\(codes)")
    _ = try program.recoveryKey()
    #expect(try program.list("home/photos/alice") == ["directory.id", "vault.json"])
  }
}
