import Platform
import Testing

@testable import photovault

@Suite struct MountOptionTests {
  private func options(_ words: [String]) throws -> MountOptions {
    try MountOptions(
      Arguments(words.map { FileName($0) }, options: Mount.options, command: "mount"))
  }

  @Test(arguments: [
    ("90s", 90), ("10m", 600), ("1h", 3600), ("0", 0), ("0s", 0), ("007m", 420),
    ("99999999h", 99_999_999 * 3600),
  ])
  func durations(text: String, seconds: Int) {
    #expect(MountOptions.seconds(text) == seconds)
  }

  @Test(arguments: [
    "", "s", "90", "1d", "1.5h", "-1s", "+1s", "1 s", "１s", "10m30s", "99999999999999999999s",
    "9223372036854775807h",
  ])
  func whatIsNoDuration(text: String) {
    #expect(MountOptions.seconds(text) == nil)
  }

  @Test func idleIsTenMinutesUnlessSaid() throws {
    #expect(try options([]).idleSeconds == 600)
    #expect(try options([]).forcedIdleSeconds == 0)
    #expect(try options(["--idle", "0"]).idleSeconds == 0)
    #expect(try options(["--idle=90s", "--idle-force=2h"]).forcedIdleSeconds == 7200)
  }

  @Test(arguments: [
    ["--idle", "soon"], ["--lock-grace", "x"], ["--lock-grace", "61s"],
    ["--lock-grace", "9999h"], ["--on-screen-lock", "maybe"],
    ["--on-suspend", "lock,ignore"], ["--screen-lock-means", ""],
  ])
  func wrongValuesAreUsageErrors(words: [String]) {
    #expect(throws: CommandError.self) { try options(words) }
  }

  @Test func everyOptionHasItsOSpelling() throws {
    let list = try FUSEOptionList(
      ["idle=10m,password-file=F,ro,read_only", "allow_other,nonempty,rw,user,noauto,x-gvfs-hide"],
      known: Mount.options)
    #expect(
      list.words.map(\.description)
        == ["--idle=10m", "--password-file=F", "--read-only", "--read-only"])
    #expect(list.passedOn == ["allow_other"])
    #expect(list.allowsNonEmpty)
  }

  @Test func aBackslashKeepsACommaInAValue() throws {
    let list = try FUSEOptionList([#"password-file=a\,b,idle=0"#], known: Mount.options)
    #expect(list.words.map(\.description) == ["--password-file=a,b", "--idle=0"])
  }

  @Test(arguments: ["secret", "o=x", "fsname=other", "subtype=x", "idle2=3"])
  func unknownOnesAreUsageErrors(option: String) {
    #expect(throws: CommandError.self) { try FUSEOptionList([option], known: Mount.options) }
  }
}

@Suite struct BusAddressTests {
  @Test(arguments: [
    ("/run/user/1000/bus", "unix:path=/run/user/1000/bus"),
    ("/a b,c;d=%/\u{1}ä", "unix:path=/a%20b%2cc%3bd%3d%25/%01%c3%a4"),
  ])
  func bytesWithAMeaningAreEscaped(path: String, address: String) {
    #expect(BusAddress.socket(path) == address)
  }
}

@Suite struct MountInvocationTests {
  private func words(_ name: String, _ words: [String]) -> [String]? {
    MountInvocation.words(FileName(name), words.map { FileName($0) })?.map(\.description)
  }

  @Test func asMountFUSE3CallsUs() {
    #expect(
      words("photovault", ["alice", "/mnt", "-o", "rw,idle=0,dev,suid"])
        == ["mount", "alice", "/mnt", "-o", "rw,idle=0"])
  }

  @Test(arguments: ["/sbin/mount.fuse.photovault", "mount.photovault"])
  func asMountCallsALink(name: String) {
    #expect(
      words(name, ["alice", "/mnt", "-n", "-sfv", "-o", "ro", "-t", "fuse.photovault"])
        == ["mount", "alice", "/mnt", "-o", "ro"])
    #expect(words(name, ["alice", "/mnt"]) == ["mount", "alice", "/mnt"])
  }

  @Test func commandsStayCommands() {
    #expect(words("photovault", ["mount", "alice", "-o", "ro"]) == nil)
    #expect(words("photovault", ["encrypt", "in", "-o", "out"]) == nil)
    #expect(words("photovault", ["alice", "/mnt"]) == nil)
    #expect(words("photovault", []) == nil)
  }
}

@Suite struct UserDirectoriesTests {
  @Test(arguments: [
    (#"XDG_PICTURES_DIR="$HOME/Bilder""#, "/home/a/Bilder"),
    ("# XDG_PICTURES_DIR=\"/no\"\n XDG_PICTURES_DIR=\"/data/pictures/\"\n", "/data/pictures"),
    (#"XDG_PICTURES_DIR="$HOME/""#, "/home/a"), (#"XDG_PICTURES_DIR="$HOME""#, "/home/a"),
    (#"XDG_PICTURES_DIR="$HOME/a \"b\" \$c""#, #"/home/a/a "b" $c"#),
    ("XDG_PICTURES_DIR=\"/one\"\nXDG_PICTURES_DIR=\"/two\"", "/two"),
  ])
  func pictures(text: String, path: String) {
    #expect(UserDirectories.pictures(in: text, home: "/home/a") == path)
  }

  @Test(arguments: ["", #"XDG_MUSIC_DIR="/m""#, #"XDG_PICTURES_DIR="relative""#])
  func noPictures(text: String) {
    #expect(UserDirectories.pictures(in: text, home: "/home/a") == nil)
  }
}
