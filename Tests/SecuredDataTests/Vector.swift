import Foundation
import Platform
import SecuredData
import Testing

/// One file of Vectors, which `generate-vectors.py` wrote: what a message is and what becomes of it.
struct Vector: Sendable, CustomTestStringConvertible {
  let name: String
  let fields: [String: String]
  /// Empty where only the size and the SHA-256 are stored.
  let message: [UInt8]

  var testDescription: String { name }

  /// "plaintext" or the name of the failure, with what it carries behind a space.
  var expected: String { self["expect"] }
  var isStored: Bool { message.count == messageSize }
  var messageSize: Int { Int(self["message-size"]) ?? -1 }

  subscript(_ field: String) -> String { fields[field] ?? "" }

  func bytes(_ field: String) -> [UInt8] { hex(self[field]) }

  /// The plaintext that goes with an expectation of "plaintext".
  var plaintext: [UInt8] {
    fields["plaintext"].map(hex) ?? patterned(Int(self["plaintext-size"]) ?? 0)
  }

  /// Opens with what the file gives: a password or keys.
  func decrypt(_ message: [UInt8]) throws(SecuredDataError) -> [UInt8] {
    if fields["password"] != nil {
      return try SecuredData.decrypt(message, password: bytes("password"))
    }
    return try SecuredData.decrypt(message, keys: try keys(version: 3))
  }

  /// The header and keys that made the message.
  var header: Header? {
    guard let version = UInt8(self["version"]), fields["iv"] != nil else { return nil }
    guard fields["password"] != nil else {
      return Header(version: version, mode: .keys, iv: bytes("iv"))
    }
    let salts = Salts(encryptionSalt: bytes("encryption-salt"), hmacSalt: bytes("hmac-salt"))
    return Header(version: version, mode: .password(salts), iv: bytes("iv"))
  }

  func keys(version: UInt8) throws(SecuredDataError) -> MessageKeys {
    if case .password(let salts) = header?.mode {
      return try derive(bytes("password"), salts, version)
    }
    return try makeKeys(bytes("encryption-key"), bytes("hmac-key"))
  }

  static let all: [Vector] = {
    let folder = Bundle.module.resourceURL?.appendingPathComponent("Vectors")
    let files = folder.flatMap {
      try? FileManager.default.contentsOfDirectory(at: $0, includingPropertiesForKeys: nil)
    }
    return (files ?? [])
      .filter { $0.pathExtension == "vector" }
      .sorted { $0.path < $1.path }
      .compactMap(Vector.init)
  }()

  init?(_ file: URL) {
    guard let data = try? Data(contentsOf: file),
      let gap = data.firstRange(of: Data("\n\n".utf8))
    else { return nil }
    name = file.deletingPathExtension().lastPathComponent
    var fields: [String: String] = [:]
    for line in String(decoding: data[..<gap.lowerBound], as: UTF8.self).split(separator: "\n") {
      guard let colon = line.firstRange(of: ": ") else { return nil }
      fields[String(line[..<colon.lowerBound])] = String(line[colon.upperBound...])
    }
    self.fields = fields
    message = Array(data[gap.upperBound...])
  }
}

/// The plaintext by the rule that `plaintext()` in generate-vectors.py has, too.
func patterned(_ count: Int) -> [UInt8] {
  [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
    for index in 0..<count {
      buffer[index] = UInt8(truncatingIfNeeded: index &* 31 &+ (index >> 8) &* 17 &+ 7)
    }
    initialized = count
  }
}

func hex(_ text: String) -> [UInt8] {
  let digits = text.filter { !$0.isWhitespace }
  return stride(from: 0, to: digits.count, by: 2).compactMap { position in
    let start = digits.index(digits.startIndex, offsetBy: position)
    return UInt8(digits[start...].prefix(2), radix: 16)
  }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}

func makeKeys(
  _ encryptionKey: [UInt8], _ hmacKey: [UInt8]
) throws(SecuredDataError) -> MessageKeys {
  do {
    return try encryptionKey.withUnsafeBytes { encryptionKey in
      try hmacKey.withUnsafeBytes { try MessageKeys(encryptionKey: encryptionKey, hmacKey: $0) }
    }
  } catch let error as SecuredDataError { throw error } catch { throw .outOfMemory }
}

func derive(
  _ password: [UInt8], _ salts: Salts, _ version: UInt8 = 3
) throws(SecuredDataError) -> MessageKeys {
  do {
    return try password.withUnsafeBytes {
      try MessageKeys.derived(from: $0, salts: salts, version: version)
    }
  } catch let error as SecuredDataError { throw error } catch { throw .outOfMemory }
}

/// A message with any header and any padded plaintext, which `Encryptor` would not write.
func seal(_ padded: [UInt8], header: Header, keys: MessageKeys) throws -> [UInt8] {
  var ciphertext = padded
  let cipher = try keys.withEncryptionKey { key in
    try header.iv.withUnsafeBytes { try CBC(.encrypt, key: key, iv: $0) }
  }
  try ciphertext.withUnsafeMutableBytes { try cipher.update(UnsafeRawBufferPointer($0), into: $0) }
  let covered = header.version == 1 ? ciphertext : header.bytes + ciphertext
  let hmac = try keys.withHMACKey { key in
    try covered.withUnsafeBytes { try HMACSHA256.authenticate($0, key: key) }
  }
  return header.bytes + ciphertext + hmac
}

func pad(_ plaintext: [UInt8]) -> [UInt8] {
  let count = 16 - plaintext.count % 16
  return plaintext + [UInt8](repeating: UInt8(count), count: count)
}
