import Testing

@testable import Platform
@testable import VaultStorage

@Suite struct RecoveryKeyTests {
  private let shown = Expected.values.recoveryKey

  private func normalised(_ typed: String) throws -> String? {
    guard let key = try RecoveryKey.normalise(secretBytes(typed)) else { return nil }
    return revealed(key)
  }

  @Test func textIsThatOfTheSecondImplementation() throws {
    var bytes = Expected.bytes(Expected.values.secret)
    let secret = try SecretBytes(wiping: &bytes)
    #expect(revealed(try RecoveryKey.text(of: secret)) == shown)
  }

  @Test func allOnesFillTheLastDigitButForItsPadding() throws {
    var bytes = [UInt8](repeating: 0xFF, count: 32)
    let secret = try SecretBytes(wiping: &bytes)
    #expect(
      revealed(try RecoveryKey.text(of: secret)).hasSuffix("ZZZZ-ZZZG"))
  }

  @Test func generatedKeysDifferAndReadBackAsThemselves() throws {
    let first = revealed(try RecoveryKey.generate())
    let second = revealed(try RecoveryKey.generate())
    #expect(first != second)
    #expect(first.utf8.count == RecoveryKey.textByteCount)
    #expect(try normalised(first) == first)
    #expect(try normalised(second) == second)
  }

  @Test func typingIsForgiven() throws {
    #expect(try normalised(shown) == shown)
    #expect(try normalised(shown.lowercased()) == shown)
    #expect(try normalised(shown.replacing("-", with: "")) == shown)
    #expect(try normalised(shown.replacing("-", with: " ")) == shown)
    #expect(try normalised(" \t\(shown)\r\n") == shown)
    #expect(try normalised(shown.replacing("0", with: "O")) == shown)
    #expect(try normalised(shown.replacing("0", with: "o")) == shown)
    for lookAlike in ["I", "i", "l", "L"] {
      #expect(try normalised(shown.replacing("1", with: lookAlike)) == shown)
    }
  }

  @Test func whatIsNoKeyIsRefused() throws {
    #expect(try normalised("") == nil)
    #expect(try normalised("correct horse battery staple") == nil)
    #expect(try normalised(String(shown.dropLast())) == nil)
    #expect(try normalised(shown + "0") == nil)
    #expect(try normalised(shown.replacing("A", with: "U")) == nil)
    #expect(try normalised(shown.replacing("A", with: "ä")) == nil)
    // The last digit has one bit of the key: 0 or G.
    #expect(try normalised(shown.dropLast() + "1") == nil)
    #expect(try normalised(shown.dropLast() + "G") != nil)
  }

  @Test func anythingTypedIsAnswered() throws {
    var random = SystemRandomNumberGenerator()
    for _ in 0..<2000 {
      var bytes = (0..<Int.random(in: 0...80, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      let typed = try SecretBytes(wiping: &bytes)
      _ = try RecoveryKey.normalise(typed)
    }
  }
}
