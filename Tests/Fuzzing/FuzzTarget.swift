import Platform
import SecretStore
import SecuredData
import VaultStorage

/// What reads bytes that somebody may have altered: none of it may trap, hang or believe a lie.
package enum FuzzTarget: String, CaseIterable, Sendable, CustomStringConvertible {
  case header, message, names, attributes, superblock, account, chunkIndex, recoveryKey

  package var description: String { rawValue }

  /// A promise that does not hold.
  package struct Broken: Error, CustomStringConvertible {
    package let description: String
    init(_ description: String) { self.description = description }
  }

  /// Valid samples.
  package var corpus: [[UInt8]] { Samples.all[self] ?? [] }

  /// Words that the format knows.
  package var dictionary: [[UInt8]] {
    switch self {
    case .header, .message:
      [[3, 1], [3, 0], [2, 1], [1, 0], Array("RNC".utf8), Array("AwE".utf8)]
    case .names:
      [
        ".securedData", ".long", ".long.name", ".photovault-", ".tmp", "directory.id",
        "vault.json", " (conflicted copy)", "..", "/", "~1", "_", "-", "=",
      ].map { Array($0.utf8) }
    case .attributes: [Array("user.photovault.".utf8), Array("user.".utf8), [0]]
    case .superblock, .account:
      [
        "\"format\":1", "\"names\":\"plain\"", "\"id\":\"", "\"mac\":\"", "{", "}", "[", "]",
        ":", ",", "\"", "\\u0000", "\\ud800", "1e999", "-0", "18446744073709551616", "null",
        "true", "\"n\":1048576", "\"r\":8", "\"p\":1", "\"kdf\":{", "\"vault\":{",
        "\"path\":\"/", "..", "9",
      ].map { Array($0.utf8) }
    case .chunkIndex: [[1], [0, 0, 0], [UInt8](repeating: 0xFF, count: 8)]
    case .recoveryKey: ["-", " ", "O", "l", "U", "Z", "\n", "--"].map { Array($0.utf8) }
    }
  }

  package func run(_ bytes: [UInt8]) throws {
    switch self {
    case .header: try runHeader(bytes)
    case .message: try runMessage(bytes)
    case .names: try runNames(bytes)
    case .attributes: try runAttributes(bytes)
    case .superblock: try runSuperblock(bytes)
    case .account: try runAccount(bytes)
    case .chunkIndex: try runChunkIndex(bytes)
    case .recoveryKey: try runRecoveryKey(bytes)
    }
  }

  private func runHeader(_ bytes: [UInt8]) throws {
    for size in [Int64(bytes.count), 82, .max, .min, 0, -1] {
      let start = Array(bytes.prefix(Format.passwordHeaderByteCount))
      let parsed = try? start.withUnsafeBytes { try Header.parse($0, messageSize: size) }
      guard let parsed else { continue }
      guard parsed.bytes == Array(bytes.prefix(parsed.byteCount)) else {
        throw Broken("a header reads as another one")
      }
      guard Format.fits(size, parsed) else { throw Broken("size \(size)") }
    }
  }

  private func runMessage(_ bytes: [UInt8]) throws {
    let samples = try Samples.made()
    let opened = try? SecuredData.decrypt(bytes) { header throws(SecuredDataError) in
      if case .keys = header.mode { return samples.itemKeys }
      return samples.keys.messageKeys
    }
    guard let opened else { return }
    // The HMAC of version 1 leaves the header's first bytes out.
    let known = corpus.contains {
      bytes.first == 1 ? $0.dropFirst(34) == bytes.dropFirst(34) : $0 == bytes
    }
    guard known, opened.count < bytes.count else { throw Broken("a forged message was opened") }
  }

  private func runNames(_ bytes: [UInt8]) throws {
    let keys = try Samples.made().keys
    let entryName = FileName(Array(bytes.prefix(255)))
    guard entryName.count > 0 else { return }
    for mode in [NamesMode.encrypted, .plain] {
      let codec = try NameCodec(keys: keys, mode: mode, directory: .plain, isRoot: true)
      for type in [UInt8(8), 4, 10, 1] {  // DT_REG, DT_DIR, DT_LNK, DT_FIFO
        let entry = RawEntry(name: entryName, type: type, inode: 1)
        guard let form = StoredForm(entry, mode: mode) else { continue }
        if let name = try codec.name(ofText: form.stem) {
          guard BlobName.isPossible(name) else { throw Broken("an impossible name") }
          guard try codec.spelling(FileName(name)).text[...] == form.stem else {
            throw Broken("two spellings of one name")
          }
        }
        if form.isLong,
          let name = try codec.name(ofCompanionText: bytes, hash: form.stem, kind: form.kind)
        {
          guard BlobName.isPossible(name) else { throw Broken("an impossible long name") }
        }
      }
    }
  }

  private func runAttributes(_ bytes: [UInt8]) throws {
    let attributes = ExtendedAttributes(keys: try Samples.made().keys)
    let half = bytes.count / 2
    if let name = try? attributes.name(stored: FileName(Array(bytes.prefix(255)))) {
      guard try attributes.storedName(name).bytes == Array(bytes.prefix(255)) else {
        throw Broken("two spellings of one attribute")
      }
    }
    let value = try? attributes.decode(
      stored: Array(bytes[half...]), name: FileName(Array(bytes[..<half].prefix(200))))
    guard let value else { return }
    guard value.count < bytes.count else { throw Broken("a value that is longer than stored") }
  }

  private func runSuperblock(_ bytes: [UInt8]) throws {
    guard let parsed = try? Superblock(parsing: bytes) else { return }
    let samples = try Samples.made()
    guard try parsed.isGenuine(samples.keys) else { return }
    guard parsed.names == .encrypted, parsed.id == Samples.vaultID, parsed.salts == Samples.salts
    else { throw Broken("an altered vault.json is genuine") }
  }

  private func runAccount(_ bytes: [UInt8]) throws {
    let name = try AccountName("alice")
    guard let account = try? AccountCoder.decode(bytes, name: name) else { return }
    let again = try AccountCoder.decode(try AccountCoder.encode(account), name: name)
    guard again == account, account.vaultPath.utf8.first == UInt8(ascii: "/") else {
      throw Broken("an account item that reads otherwise when it is written again")
    }
  }

  private func runChunkIndex(_ bytes: [UInt8]) throws {
    let samples = try Samples.made()
    let index = try ChunkIndex.decode(
      bytes, keys: samples.keys, header: Samples.header, hmac: Samples.hmac,
      ciphertextSize: Samples.ciphertextSize)
    guard index != nil else { return }
    guard bytes == corpus[0] else { throw Broken("a forged chunk index is believed") }
  }

  private func runRecoveryKey(_ bytes: [UInt8]) throws {
    var bytes = bytes
    let typed = try SecretBytes(wiping: &bytes)
    guard let key = try RecoveryKey.normalise(typed) else { return }
    let text = key.withUnsafeBytes { Array($0) }
    guard let again = try RecoveryKey.normalise(key), again.withUnsafeBytes({ Array($0) == text }),
      text.count == RecoveryKey.textByteCount
    else { throw Broken("a recovery key that reads otherwise when it is typed again") }
  }
}

extension Format {
  /// Whether a message of this size with this header has room for a block and whole blocks only.
  fileprivate static func fits(_ size: Int64, _ header: Header) -> Bool {
    let ciphertext = size - Int64(header.byteCount + hmacByteCount)
    return ciphertext >= Int64(blockByteCount) && ciphertext % Int64(blockByteCount) == 0
  }
}
