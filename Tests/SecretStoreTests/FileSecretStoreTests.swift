import Foundation
import Glibc
import Platform
import Synchronization
import Testing

@testable import SecretStore

@Suite struct FileSecretStoreTests {
  let test: TestStore
  let alice: AccountName

  init() throws {
    test = try TestStore()
    alice = try AccountName("alice")
  }

  @Test func theErrorsAreTheKeychains() {
    let numbers: [(SecretStoreError, Int32)] = [
      (.duplicateItem, -25299), (.itemNotFound, -25300), (.userCancelled, -128),
      (.authenticationFailed, -25293), (.interactionNotAllowed, -25308),
      (.notAvailable(.damaged("")), -25291),
    ]
    for (error, number) in numbers { #expect(error.code == number) }
  }

  @Test func theFourVerbsAnswerAsTheKeychainDoes() throws {
    let store = test.store
    let first = try makeAccount("alice")
    #expect(try store.names() == [])
    #expect(code { _ = try store.lookUp(alice) } == -25300)
    #expect(code { try store.delete(alice) } == -25300)
    #expect(code { _ = try store.update(first, to: first) } == -25300)

    try store.add(first)
    #expect(code { try store.add(try makeAccount("alice", vault: "/other")) } == -25299)
    #expect(try store.lookUp(alice) == first)

    let second = try makeAccount("alice", vault: "/other")
    #expect(try store.update(first, to: second))
    #expect(try store.lookUp(alice) == second)
    #expect(try !store.update(first, to: first), "the item is no longer the first")
    #expect(try store.lookUp(alice) == second)

    try store.delete(alice)
    #expect(try store.names() == [])
    #expect(code { try store.delete(alice) } == -25300)
  }

  @Test func othersCantReadIt() throws {
    try FileManager.default.createDirectory(
      atPath: test.directory, withIntermediateDirectories: true,
      attributes: [.posixPermissions: 0o755])
    try test.store.add(try makeAccount("alice"))
    var status = stat()
    #expect(lstat(test.directory, &status) == 0 && status.st_mode & 0o7777 == 0o700)
    #expect(lstat(test.path("alice"), &status) == 0 && status.st_mode & 0o7777 == 0o600)
    chmod(test.path("alice"), 0o644)
    let old = try test.store.lookUp(alice)
    #expect(try test.store.update(old, to: try makeAccount("alice", vault: "/other")))
    #expect(lstat(test.path("alice"), &status) == 0 && status.st_mode & 0o7777 == 0o600)
  }

  @Test func onlyAccountsAreListed() throws {
    for user in ["b", "a", "c.json"] { try test.store.add(try makeAccount(user)) }
    try "x".write(toFile: test.directory + "/note.txt", atomically: false, encoding: .utf8)
    try "x".write(toFile: test.directory + "/.json", atomically: false, encoding: .utf8)
    #expect(try test.store.names().map(\.text) == ["a", "b", "c.json"])
  }

  @Test func backupsSkipTheDirectoryWhileAnAccountIsForThisDeviceOnly() throws {
    let tag = test.directory + "/CACHEDIR.TAG"
    try test.store.add(try makeAccount("bob"))
    #expect(!FileManager.default.fileExists(atPath: tag))
    try test.store.add(try makeAccount("alice", thisDeviceOnly: true))
    let text = try String(contentsOfFile: tag, encoding: .utf8)
    // Source: https://bford.info/cachedir/
    #expect(text.hasPrefix("Signature: 8a477f597d28d172789f06886806bc55\n"))
    try test.store.delete(try AccountName("bob"))
    #expect(FileManager.default.fileExists(atPath: tag))
    try test.store.delete(alice)
    #expect(!FileManager.default.fileExists(atPath: tag))
  }

  @Test func oneOfManyAddsWins() throws {
    let accounts = try (0..<8).map { try makeAccount("alice", vault: "/vaults/\($0)") }
    let winners = Mutex<[String]>([])
    let store = test.store
    DispatchQueue.concurrentPerform(iterations: accounts.count) { index in
      let code = code { try store.add(accounts[index]) }
      if code == 0 { winners.withLock { $0.append(accounts[index].vaultPath) } }
      #expect(code == 0 || code == -25299)
    }
    let won = winners.withLock { $0 }
    #expect(won.count == 1)
    #expect(try store.lookUp(alice).vaultPath == won.first)
  }

  @Test func noUpdateIsLost() throws {
    let store = test.store
    let base = try makeAccount("alice", vault: "/0")
    try store.add(base)
    let (threads, turns) = (6, 15)
    DispatchQueue.concurrentPerform(iterations: threads) { _ in
      for _ in 0..<turns {
        var isDone = false
        while !isDone {
          do {
            let old = try store.lookUp(base.name)
            let count = try #require(Int(old.vaultPath.dropFirst()))
            let new = Account(
              name: old.name, vaultID: old.vaultID, vaultPath: "/\(count + 1)",
              thisDeviceOnly: false, scrypt: old.scrypt, sealedSecret: old.sealedSecret)
            isDone = try store.update(old, to: new)
          } catch {
            Issue.record(error)
            isDone = true
          }
        }
      }
    }
    #expect(try store.lookUp(alice).vaultPath == "/\(threads * turns)")
    #expect(try test.files() == [".lock", "alice.json"])
  }
}
