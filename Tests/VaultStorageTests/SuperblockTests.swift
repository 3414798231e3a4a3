import Foundation
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

@Suite struct SuperblockTests {
  private let genuine = Expected.values.superblocks["encrypted"] ?? ""

  private func parsed(_ text: String) throws -> Superblock {
    try Superblock(parsing: Array(text.utf8))
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func textIsThatOfTheSecondImplementation(_ mode: NamesMode) throws {
    let text = try #require(Expected.values.superblocks[mode.rawValue])
    let superblock = try parsed(text)
    #expect(try superblock.isGenuine(Expected.vaultKeys))
    let ours = try Superblock(
      id: Expected.bytes(Expected.values.vaultID), names: mode, keys: Expected.vaultKeys)
    #expect(ours == superblock)
    #expect(ours.text == Array(text.utf8))
  }

  @Test func everyMemberIsAuthenticated() throws {
    let changes = [
      ("\"id\":\"0", "\"id\":\"1"), ("\"encrypted\"", "\"plain\""),
      ("\"encryptionSalt\":\"0", "\"encryptionSalt\":\"1"),
      ("\"hmacSalt\":\"f", "\"hmacSalt\":\"e"),
    ]
    for (old, new) in changes {
      let altered = genuine.replacing(old, with: new)
      #expect(altered != genuine)
      #expect(try !parsed(altered).isGenuine(Expected.vaultKeys))
    }
    let mac = try #require(genuine.range(of: "\"mac\":\""))
    for offset in 0..<64 {
      var characters = Array(genuine.utf8)
      let index = genuine.utf8.distance(from: genuine.utf8.startIndex, to: mac.upperBound) + offset
      characters[index] = characters[index] == UInt8(ascii: "0") ? UInt8(ascii: "1") : 48
      #expect(try !Superblock(parsing: characters).isGenuine(Expected.vaultKeys))
    }
  }

  @Test func swappedSaltsAreNoticed() throws {
    let swapped = genuine.replacing("encryptionSalt", with: "x").replacing(
      "hmacSalt", with: "encryptionSalt"
    ).replacing("\"x\"", with: "\"hmacSalt\"")
    #expect(try !parsed(swapped).isGenuine(Expected.vaultKeys))
  }

  @Test func orderAndSpacesOfTheTextDontCount() throws {
    let object = try JSONSerialization.jsonObject(with: Data(genuine.utf8))
    let text = try JSONSerialization.data(withJSONObject: object, options: [.prettyPrinted])
    #expect(try Superblock(parsing: Array(text)).isGenuine(Expected.vaultKeys))
  }

  @Test func unknownFormatsSayTheirNumber() throws {
    for text in [
      genuine.replacing("\"format\":1", with: "\"format\":2"), #"{"format":2}"#,
    ] {
      do {
        _ = try parsed(text)
        Issue.record("format 2 was read")
      } catch StorageError.unsupportedFormat(let number) { #expect(number == 2) }
    }
  }

  @Test func whatIsNoSuperblockIsNoVault() throws {
    let wrong = [
      "", "{}", "[]", "null", "1", "{\"format\":1}", "{\"format\":\"1\"}", "not json",
      genuine.replacing("\"encrypted\"", with: "\"rot13\""),
      genuine.replacing("\"names\"", with: "\"nomes\""),
      genuine.replacing("00112233", with: "0011223"),
      genuine.replacing("ccddeeff", with: "CCDDEEFF"),
      genuine.replacing("f8f9", with: "zzzz"),
      String(genuine.dropLast(3)),
      genuine + String(repeating: " ", count: 5000),
      String(repeating: "[", count: 4000),
    ]
    for text in wrong {
      do {
        _ = try parsed(text)
        Issue.record("read: \(text)")
      } catch StorageError.notAVault { continue }
    }
  }

  @Test func randomTextNeverTraps() {
    var random = SystemRandomNumberGenerator()
    let original = Array(genuine.utf8)
    for _ in 0..<3000 {
      var text = original
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let index = Int.random(in: 0..<text.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: text[index] = UInt8.random(in: 0...255, using: &random)
        case 1: text.remove(at: index)
        default: text.insert(contentsOf: text[index...].prefix(9), at: index)
        }
      }
      let superblock = try? Superblock(parsing: text)
      if let superblock, (try? superblock.isGenuine(Expected.vaultKeys)) == true {
        // The same members in other words.
        #expect(superblock.id == Expected.bytes(Expected.values.vaultID))
        #expect(superblock.names == .encrypted)
      }
    }
  }
}
