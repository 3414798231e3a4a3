import Foundation
import Platform
import SecuredData
import Testing

@Suite struct EncryptorTests {
  private let password = Array("correct horse battery staple".utf8)

  @Test(arguments: [1, 3, 15, 16, 17, 31, 1000, 65_535, 65_536, 65_537, 200_000])
  func piecesOfAnySizeMakeTheSameMessage(_ pieceSize: Int) throws {
    let plaintext = patterned(200_003)
    let keys = try makeKeys(patterned(32), patterned(32))
    let header = Header(mode: .keys, iv: patterned(16))
    let encryptor = try Encryptor(keys: keys, header: header)
    var message: [UInt8] = []
    for start in stride(from: 0, to: plaintext.count, by: pieceSize) {
      try plaintext[start..<min(start + pieceSize, plaintext.count)].withUnsafeBytes {
        try encryptor.update($0, appendingTo: &message)
      }
    }
    try encryptor.finish(appendingTo: &message)
    #expect(message == (try SecuredData.encrypt(plaintext, keys: keys, header: header)))
  }

  @Test func emptyPiecesChangeNothing() throws {
    let keys = try makeKeys(patterned(32), patterned(32))
    let encryptor = try Encryptor(keys: keys, mode: .keys)
    var message: [UInt8] = []
    let nothing = UnsafeRawBufferPointer(start: nil, count: 0)
    try encryptor.update(nothing, appendingTo: &message)
    #expect(message == encryptor.header.bytes)
    try [1, 2, 3].withUnsafeBytes { try encryptor.update($0, appendingTo: &message) }
    try encryptor.update(nothing, appendingTo: &message)
    try encryptor.finish(appendingTo: &message)
    let plaintext = try SecuredData.decrypt(message, keys: keys)
    #expect(plaintext == [1, 2, 3].withUnsafeBytes(Array.init))
  }

  @Test func outputIsAppendedToWhatIsThere() throws {
    let keys = try makeKeys(patterned(32), patterned(32))
    let encryptor = try Encryptor(keys: keys, header: Header(mode: .keys, iv: patterned(16)))
    var output: [UInt8] = [9, 9, 9]
    try patterned(40).withUnsafeBytes { try encryptor.update($0, appendingTo: &output) }
    #expect(output.count == 3 + 18 + 32)
    try encryptor.finish(appendingTo: &output)
    #expect(output.prefix(3) == [9, 9, 9])
    #expect(try SecuredData.decrypt(Array(output.dropFirst(3)), keys: keys) == patterned(40))
  }

  @Test func everyMessageHasItsOwnIVAndSalts() throws {
    let keys = try makeKeys(patterned(32), patterned(32))
    let ivs = try (0..<1000).map { _ in try Encryptor(keys: keys, mode: .keys).header.iv }
    #expect(Set(ivs).count == ivs.count)
    let salts = try (0..<1000).map { _ in try Salts.random() }
    #expect(Set(salts).count == salts.count)
    #expect(Set(salts.map(\.encryptionSalt) + salts.map(\.hmacSalt)).count == 2 * salts.count)
  }

  @Test func aPasswordOpensWhatItMade() throws {
    let message = try SecuredData.encrypt(patterned(1000), password: password)
    #expect(message.count == Int(Format.messageSize(plaintextSize: 1000)))
    #expect(message[0] == 3 && message[1] == 1)
    #expect(try SecuredData.decrypt(message, password: password) == patterned(1000))
    #expect(throws: SecuredDataError.notAuthenticated) {
      try SecuredData.decrypt(message, password: Array("another".utf8))
    }
    #expect(throws: SecuredDataError.wrongMode) {
      try SecuredData.decrypt(message, keys: try makeKeys(patterned(32), patterned(32)))
    }
  }

  @Test func freshMessagesOpenInTheSecondImplementation() throws {
    var vectors: [String] = []
    for size in [0, 1, 15, 16, 17, 4095, 4096, 70_000] {
      let message = try SecuredData.encrypt(patterned(size), password: password)
      vectors.append(
        try SecondImplementation.write(
          message, ["password": hex(password), "plaintext-size": "\(size)"]))
    }
    let keys = try makeKeys(patterned(32), patterned(64).suffix(32))
    for size in [0, 16, 70_000] {
      let message = try SecuredData.encrypt(patterned(size), keys: keys)
      let fields = [
        "encryption-key": hex(patterned(32)), "hmac-key": hex(patterned(64).suffix(32)),
        "plaintext-size": "\(size)",
      ]
      vectors.append(try SecondImplementation.write(message, fields))
    }
    defer { for path in vectors { try? FileManager.default.removeItem(atPath: path) } }
    #expect(try SecondImplementation.verify(vectors))
    let altered = try SecondImplementation.write(
      try SecuredData.encrypt([1], password: password),
      ["password": hex(password), "plaintext": "02"])
    defer { try? FileManager.default.removeItem(atPath: altered) }
    #expect(try !SecondImplementation.verify([altered]))
  }
}

/// `generate-vectors.py`, which shares nothing with the code under test.
enum SecondImplementation {

  /// A file as in Vectors; returns its path.
  static func write(_ message: [UInt8], _ fields: [String: String]) throws -> String {
    let path = NSTemporaryDirectory() + "photovault-\(UUID().uuidString).vector"
    let text = fields.map { "\($0): \($1)\n" }.joined()
    try Data(Array("\(text)\n".utf8) + message).write(to: URL(fileURLWithPath: path))
    return path
  }

  static func verify(_ paths: [String]) throws -> Bool {
    let script = URL(fileURLWithPath: #filePath)
      .deletingLastPathComponent().appendingPathComponent("generate-vectors.py")
    return run(["python3", script.path, "verify"] + paths) == 0
  }

  private static func run(_ arguments: [String]) -> Int32 {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = arguments
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    do { try process.run() } catch { return -1 }
    process.waitUntilExit()
    return process.terminationStatus
  }
}
