import SecuredData
import Testing

/// Both directions against messages that a second implementation made.
@Suite struct VectorTests {
  @Test func theFilesAreThere() {
    #expect(Vector.all.count > 150)
    #expect(Set(Vector.all.map(\.expected.firstWord)).count == 9)
  }

  @Test(arguments: Vector.all.filter(\.isStored))
  func aStoredMessageGivesItsPlaintextOrItsFailure(_ vector: Vector) {
    #expect(
      outcome { () throws(SecuredDataError) in try vector.decrypt(vector.message) }
        == vector.expectedOutcome)
  }

  @Test(arguments: Vector.all.filter { $0.header?.version == 3 })
  func encryptingGivesTheMessageToTheByte(_ vector: Vector) throws {
    let header = try #require(vector.header)
    let plaintext = vector.plaintext
    #expect(hex(try SHA256.hash(plaintext)) == vector["plaintext-sha256"])
    let keys = try vector.keys(version: 3)
    let message = try SecuredData.encrypt(plaintext, keys: keys, header: header)
    #expect(message.count == vector.messageSize)
    #expect(hex(try SHA256.hash(message)) == vector["message-sha256"])
    if vector.isStored { #expect(message == vector.message) }
    #expect(try vector.decrypt(message) == plaintext)
  }

  /// Large messages of old versions aren't stored, so they are made from the parts first.
  @Test(arguments: Vector.all.filter { !$0.isStored && ($0.header?.version ?? 3) < 3 })
  func aLargeMessageOfAnOldVersionGivesItsPlaintext(_ vector: Vector) throws {
    let header = try #require(vector.header)
    let keys = try vector.keys(version: header.version)
    let message = try seal(pad(vector.plaintext), header: header, keys: keys)
    #expect(hex(try SHA256.hash(message)) == vector["message-sha256"])
    #expect(try vector.decrypt(message) == vector.plaintext)
  }

  @Test func sizesAreWhatTheMessagesHave() {
    for vector in Vector.all where vector.header != nil {
      guard let size = Int64(vector["plaintext-size"]) else { continue }
      let passwordSize = Format.messageSize(plaintextSize: size)
      let expected = vector.fields["password"] == nil ? passwordSize - 16 : passwordSize
      #expect(Int64(vector.messageSize) == expected, "\(vector.name)")
    }
  }
}

extension String {
  fileprivate var firstWord: Substring { prefix { $0 != " " } }
}

extension Vector {
  fileprivate var expectedOutcome: Result<[UInt8], SecuredDataError> {
    let number = UInt8(expected.drop { $0 != " " }.dropFirst()) ?? 0
    switch expected.firstWord {
    case "plaintext": return .success(plaintext)
    case "wrongSize": return .failure(.wrongSize(Int64(messageSize)))
    case "version4Draft": return .failure(.version4Draft)
    case "base64Text": return .failure(.base64Text)
    case "plainPicture":
      return .failure(.plainPicture(String(expected.drop { $0 != " " }.dropFirst())))
    case "unknownVersion": return .failure(.unknownVersion(number))
    case "unknownOptions": return .failure(.unknownOptions(number))
    case "wrongMode": return .failure(.wrongMode)
    case "notAuthenticated": return .failure(.notAuthenticated)
    default: return .failure(.outOfMemory)
    }
  }
}

func outcome(
  _ body: () throws(SecuredDataError) -> [UInt8]
) -> Result<[UInt8], SecuredDataError> {
  do throws(SecuredDataError) { return .success(try body()) } catch { return .failure(error) }
}
