import Foundation
import Glibc
import Platform
import Testing

@testable import SecretStore

/// What both stores do about one another, and what needs no Secret Service: there is none here.
@Suite struct AccountStoresTests {
  let test: TestStore
  let alice: AccountName
  let stores: AccountStores
  let passwords: RememberedPasswords

  init() throws {
    test = try TestStore()
    alice = try AccountName("alice")
    let keyring = Keyring(hasBus: false) { Issue.record("asked to unlock nothing") }
    stores = AccountStores(directory: test.directory, keyring: keyring)
    passwords = RememberedPasswords(directory: test.directory, keyring: keyring)
  }

  private func writeReference(_ text: String, user: String = "alice") throws {
    try stores.add(makeAccount("other"))
    try Data(text.utf8).write(to: URL(filePath: "\(test.directory)/\(user).secret-service"))
  }

  private static let reference =
    #"{"format":1,"account":"alice","vault":{"id":"AQIDBAUGBwg=","path":"/vaults/one"}}"#

  /// The failure of the Secret Service that `body` ends with.
  private func failure(_ body: () throws -> Void) -> SecretStoreError.KeyringFailure? {
    do { try body() } catch {
      if case .notAvailable(.keyring(let failure))? = error as? SecretStoreError { return failure }
    }
    return nil
  }

  @Test func withoutABusNothingIsAdded() throws {
    #expect(failure { try stores[.secretService].add(makeAccount("alice")) } == .noBus)
    #expect(failure { try stores.secretService.prepareToAdd() } == .noBus)
    #expect(try stores.kind(of: alice) == nil)
    #expect(!FileManager.default.fileExists(atPath: test.directory))
  }

  @Test func aReferenceIsAnAccountOfTheOtherStore() throws {
    try writeReference(Self.reference)
    #expect(try stores.kind(of: alice) == .secretService)
    #expect(try stores.names() == [alice, AccountName("other")])
    #expect(try stores[.secretService].names() == [alice])
    #expect(try stores.secretService.reference(alice).vaultPath == "/vaults/one")
    #expect(try stores.secretService.reference(alice).vaultID == Array(1...8))
    #expect(code { try stores.add(makeAccount("alice")) } == -25299)
    #expect(failure { _ = try stores.lookUp(alice) } == .noBus)
    #expect(failure { try stores.delete(alice) } == .noBus)
    #expect(try stores.kind(of: alice) == .secretService, "it stays while its item may be there")
  }

  @Test func anAccountInAFileNeedsNoBus() throws {
    let account = try makeAccount("alice")
    try stores.add(account)
    #expect(try stores.kind(of: alice) == .file)
    #expect(try stores.lookUp(alice) == account)
    let changed = try makeAccount("alice", vault: "/moved")
    #expect(try stores.update(account, to: changed))
    try stores.delete(alice)
    #expect(code { _ = try stores.lookUp(alice) } == -25300)
  }

  @Test(arguments: [
    "", "{}", #"{"format":2,"account":"alice","vault":{"id":"AQIDBAUGBwg=","path":"/one"}}"#,
    #"{"format":1,"account":"bob","vault":{"id":"AQIDBAUGBwg=","path":"/one"}}"#,
    #"{"format":1,"account":"alice","vault":{"id":"AQ==","path":"/one"}}"#,
    #"{"format":1,"account":"alice","vault":{"id":"AQIDBAUGBwg=","path":"one"}}"#,
    #"{"format":1,"account":"alice","vault":{"id":"AQIDBAUGBwg=","path":"/a\u0000b"}}"#,
    String(repeating: " ", count: 40 << 10) + reference,
  ])
  func aReferenceThatIsNoneIsDamage(_ text: String) throws {
    try writeReference(text)
    #expect(code { _ = try stores.lookUp(alice) } == -25291)
    #expect(failure { _ = try stores.lookUp(alice) } == nil)
    #expect(try stores.kind(of: alice) == .secretService)
  }

  @Test func whatIsWrittenIsRead() throws {
    let reference = KeyringReference(try makeAccount("alice", vault: #"/va"ult/é"#))
    #expect(try KeyringReference(reference.encoded(), name: alice) == reference)
  }

  @Test func whoRemembersNothingAsksNobody() throws {
    let account = try makeAccount("alice")
    #expect(try !passwords.holdsOne(for: alice))
    try passwords.forget(alice)
    try stores.add(account)
    #expect(code { _ = try passwords.lookUp(account) } == -25300)
    try passwords.forget(alice)
    #expect(failure { try passwords.keep(secret("MARK"), for: account) } == .noBus)
    #expect(try !passwords.holdsOne(for: alice))
  }

  @Test func aPasswordOfAnotherVaultIsNotTheAccounts() throws {
    let account = try makeAccount("alice")
    try stores.add(account)
    let file = URL(filePath: "\(test.directory)/alice.remembered")
    try Data("0102\n".utf8).write(to: file)
    #expect(try passwords.holdsOne(for: alice))
    #expect(code { _ = try passwords.lookUp(account) } == -25300)
    try Data("0102030405060708090a0b0c0d0e0f10\n".utf8).write(to: file)
    #expect(failure { _ = try passwords.lookUp(account) } == .noBus)
    #expect(failure { try passwords.forget(alice) } == .noBus)
    #expect(try passwords.holdsOne(for: alice), "it is not forgotten")
    // A file that says nothing keeps nobody from forgetting.
    try Data("?".utf8).write(to: file)
    try passwords.forget(alice)
    #expect(try !passwords.holdsOne(for: alice))
  }

  @Test func everyByteSurvivesItsDigits() throws {
    var bytes = (0...255).map { UInt8($0) }
    let expected = bytes
    let digits = try Hexadecimal.encode(try SecretBytes(wiping: &bytes))
    #expect(digits.withUnsafeBytes { Array($0.prefix(4)) } == Array("0001".utf8))
    #expect(digits.withUnsafeBytes { Array($0.suffix(4)) } == Array("feff".utf8))
    let back = try Hexadecimal.decode(digits)
    #expect(back.withUnsafeBytes { Array($0) } == expected)
    #expect(Hexadecimal.bytes(Hexadecimal.digits(expected)) == expected)
  }

  @Test(arguments: ["0", "0g", "g0", "0G", "0 ", "AB", "0/", "0:", "0`", "é"])
  func otherTextIsNoBytes(_ text: String) throws {
    #expect(Hexadecimal.bytes(Array(text.utf8)) == nil)
    #expect(throws: Errno.invalidArgument) { _ = try Hexadecimal.decode(try secret(text)) }
  }
}
