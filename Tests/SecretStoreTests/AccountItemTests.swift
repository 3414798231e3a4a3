import Foundation
import Platform
import SecuredData
import Testing

@testable import SecretStore

@Suite struct AccountItemTests {
  let test: TestStore

  init() throws { test = try TestStore() }

  private func python(_ arguments: String...) throws -> (output: String, status: Int32) {
    let script = try #require(Bundle.module.url(forResource: "account_item", withExtension: "py"))
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = ["python3", script.path] + arguments
    let output = Foundation.Pipe()
    process.standardOutput = output
    process.standardError = FileHandle.nullDevice
    try process.run()
    let data = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return (String(decoding: data, as: UTF8.self), process.terminationStatus)
  }

  @Test func aSecondImplementationOpensOurItem() throws {
    try test.store.add(
      try makeAccount("alice", secret: "the recovery key", password: "pässword", cost: .standard))
    let opened = try python("open", test.path("alice"), "pässword")
    #expect(opened == ("the recovery key", 0))
    #expect(try python("open", test.path("alice"), "password").status != 0)
    let kdf = try #require(try test.item("alice")["kdf"] as? [String: Any])
    #expect(kdf["n"] as? Int == 131072 && kdf["r"] as? Int == 8 && kdf["p"] as? Int == 1)
  }

  @Test func theSecondImplementationsItemOpensHere() throws {
    try test.store.add(try makeAccount("someone"))
    let made = try python("make", test.path("bob"), "bob", "/vaults/bob", "geheim", "other key")
    #expect(made.status == 0)
    let account = try test.store.lookUp(try AccountName("bob"))
    #expect(account.vaultPath == "/vaults/bob" && account.thisDeviceOnly)
    #expect(try account.open(password: try secret("geheim")).holds("other key"))
    #expect(code { _ = try account.open(password: try secret("Geheim")) } == -25293)
  }

  @Test func anItemKeepsWhatItWasMadeOf() throws {
    let account = try makeAccount("zoë", vault: "/a \"b\"\n/é", thisDeviceOnly: true)
    try test.store.add(account)
    #expect(try test.store.lookUp(try AccountName("zoë")) == account)
    let changed = try account.changing(
      secret: try secret("MARK-RECOVERY"), toPassword: try secret("new"), cost: .least)
    #expect(changed.vaultPath == account.vaultPath && changed.vaultID == account.vaultID)
    #expect(changed.scrypt.salt != account.scrypt.salt)
    #expect(try changed.open(password: try secret("new")).holds("MARK-RECOVERY"))
    #expect(code { _ = try changed.open(password: try secret("MARK-PASSWORD")) } == -25293)
  }

  @Test func noSecretIsInTheItem() throws {
    try test.store.add(try makeAccount("alice"))
    let text = try String(contentsOfFile: test.path("alice"), encoding: .utf8)
    for marker in ["MARK-PASSWORD", "MARK-RECOVERY"] {
      #expect(!text.contains(marker))
      #expect(!text.contains(Data(marker.utf8).base64EncodedString().prefix(12)))
    }
  }

  /// One way to spoil an item, and the error that finds it out.
  struct Tampering: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let code: Int32
    let apply: @Sendable (inout [String: Any]) -> Void

    init(
      _ name: String, code: Int32 = -25291,
      _ apply: @escaping @Sendable (inout [String: Any]) -> Void
    ) {
      testDescription = name
      self.code = code
      self.apply = apply
    }

    static func kdf(_ member: String, _ value: UInt64, code: Int32 = -25291) -> Tampering {
      Tampering("kdf.\(member) = \(value)", code: code) { item in
        var kdf = item["kdf"] as? [String: Any] ?? [:]
        kdf[member] = value
        item["kdf"] = kdf
      }
    }

    static func nested(_ object: String, _ member: String, _ value: String?) -> Tampering {
      Tampering("\(object).\(member) = \(value ?? "missing")") { item in
        var members = item[object] as? [String: Any] ?? [:]
        members[member] = value
        item[object] = members
      }
    }

    static func missing(_ member: String) -> Tampering {
      Tampering("no \(member)") { $0[member] = nil }
    }
  }

  static let tamperings: [Tampering] =
    ["format", "account", "vault", "thisDeviceOnly", "kdf", "secret"].map { .missing($0) } + [
      Tampering("format 2") { $0["format"] = 2 },
      Tampering("format text") { $0["format"] = "1" },
      Tampering("account") { $0["account"] = "bob" },
      Tampering("account in another spelling") { $0["account"] = "alice\u{200B}" },
      Tampering("thisDeviceOnly text") { $0["thisDeviceOnly"] = "no" },
      Tampering("secret not base64") { $0["secret"] = "%%%%" },
      Tampering("secret empty") { $0["secret"] = "" },
      Tampering("secret too long") { $0["secret"] = String(repeating: "A", count: 12 << 10) },
      .nested("vault", "path", "relative"), .nested("vault", "path", "/a\0b"),
      .nested("vault", "path", nil), .nested("vault", "path", ""),
      .nested("vault", "path", "/" + String(repeating: "a", count: 5000)),
      .nested("vault", "id", "QUJD"), .nested("vault", "id", nil),
      .nested("kdf", "name", "argon2"), .nested("kdf", "name", nil),
      .nested("kdf", "salt", nil), .nested("kdf", "salt", "QUJDRA=="),
      .nested("kdf", "salt", Data(count: 65).base64EncodedString()),
      .kdf("n", 0), .kdf("n", 1 << 13), .kdf("n", 1 << 21), .kdf("n", (1 << 14) + 1),
      .kdf("n", .max), .kdf("r", 0), .kdf("r", 33), .kdf("r", .max), .kdf("p", 0), .kdf("p", 17),
      .kdf("p", .max),
      .kdf("n", 1 << 15, code: -25293), .kdf("r", 2, code: -25293), .kdf("p", 2, code: -25293),
    ]

  @Test(arguments: tamperings) func aSpoiltMemberIsRefused(_ tampering: Tampering) throws {
    try test.store.add(try makeAccount("alice"))
    var item = try test.item("alice")
    tampering.apply(&item)
    try test.replaceItem("alice", with: item)
    let found = code {
      let account = try test.store.lookUp(try AccountName("alice"))
      _ = try account.open(password: try secret("MARK-PASSWORD"))
    }
    #expect(found == tampering.code)
  }

  @Test func aCostThatWouldEatTheMachineIsRefused() {
    #expect(Scrypt.Cost.standard.isReasonable && Scrypt.Cost.least.isReasonable)
    #expect(Scrypt.Cost(n: 1 << 20, r: 8, p: 1).isReasonable)
    // Each is within its own bounds.
    #expect(!Scrypt.Cost(n: 1 << 20, r: 32, p: 1).isReasonable)
    #expect(!Scrypt.Cost(n: 1 << 20, r: 8, p: 16).isReasonable)
  }

  @Test func everyByteOfTheSecretAndTheSaltCounts() throws {
    let account = try makeAccount("alice")
    let password = try secret("MARK-PASSWORD")
    for index in account.sealedSecret.indices {
      var altered = account.sealedSecret
      altered[index] ^= 0x01
      let item = Account(
        name: account.name, vaultID: account.vaultID, vaultPath: account.vaultPath,
        thisDeviceOnly: false, scrypt: account.scrypt, sealedSecret: altered)
      let found = code { _ = try item.open(password: password) }
      // The first two bytes are the version and the mode.
      #expect(found == (index < 2 ? -25291 : -25293), "byte \(index)")
    }
    for index in account.scrypt.salt.indices {
      var salt = account.scrypt.salt
      salt[index] ^= 0x80
      let item = Account(
        name: account.name, vaultID: account.vaultID, vaultPath: account.vaultPath,
        thisDeviceOnly: false, scrypt: Scrypt(cost: .least, salt: salt),
        sealedSecret: account.sealedSecret)
      #expect(code { _ = try item.open(password: password) } == -25293)
    }
  }

  @Test(arguments: ["", "{", "[]", "null", "{\"format\":1}", String(repeating: "[", count: 60000)])
  func whatIsNoItemIsRefused(_ text: String) throws {
    try test.store.add(try makeAccount("alice"))
    try text.write(toFile: test.path("alice"), atomically: false, encoding: .utf8)
    #expect(code { _ = try test.store.lookUp(try AccountName("alice")) } == -25291)
  }

  @Test func whatIsNoOrdinaryFileIsRefused() throws {
    try test.store.add(try makeAccount("alice"))
    let files = FileManager.default
    try files.createSymbolicLink(
      atPath: test.path("link"), withDestinationPath: test.path("alice"))
    try files.createDirectory(atPath: test.path("folder"), withIntermediateDirectories: false)
    #expect(mkfifo(test.path("fifo"), 0o600) == 0)
    try Data(count: 70000).write(to: URL(filePath: test.path("huge")))
    for user in ["link", "folder", "fifo", "huge"] {
      #expect(code { _ = try test.store.lookUp(try AccountName(user)) } == -25291, "\(user)")
    }
  }

  @Test(arguments: [
    "", ".", "..", "a/b", "/", "a\0", "a\nb", "\u{1B}[2J", "a\u{7F}", "a\u{85}", "a\u{2028}",
    String(repeating: "a", count: 201), String(repeating: "é", count: 101),
  ])
  func whatCantBeAFileIsNoUserName(_ text: String) {
    #expect(throws: AccountName.Invalid.self) { try AccountName(text) }
  }

  @Test(arguments: ["a", "Zoë", "...", ".hidden", "-x", "a b", "日本", "photo:vault", "💥", "%2e"])
  func otherNamesAreTaken(_ text: String) throws {
    let name = try AccountName(text)
    try test.store.add(try makeAccount(text))
    #expect(try test.store.names() == [name])
    #expect(try test.store.lookUp(name).name == name)
  }

  @Test func twoSpellingsOfALetterAreTwoAccounts() throws {
    try test.store.add(try makeAccount("\u{E9}", vault: "/composed"))
    try test.store.add(try makeAccount("e\u{301}", vault: "/decomposed"))
    #expect(try test.store.lookUp(try AccountName("\u{E9}")).vaultPath == "/composed")
    #expect(try test.store.lookUp(try AccountName("e\u{301}")).vaultPath == "/decomposed")
    #expect(try test.store.names().count == 2)
  }
}
