import Platform
import SecuredData

extension DirectoryID {
  /// Far more than an id, and no more than is worth a look.
  static let greatestAltered = 64

  /// The id with which the lost names can be decoded: in a copy that a sync program left beside
  /// it, or the present one but for one byte. Names are authenticated, so none is taken for
  /// another. nil where nothing helps.
  static func mended(
    _ directory: VaultDirectory, _ entries: [RawEntry], _ lost: [StoredForm]
  ) throws(StorageError) -> DirectoryID? {
    let samples = try self.samples(directory, lost)
    if samples.isEmpty { return nil }
    for candidate in try candidates(directory, entries) {
      for sample in samples {
        let name = try StorageError.inCrypto { () throws(CryptoFailure) in
          try directory.context.keys.names.withUnsafeBytes { key throws(CryptoFailure) in
            try SIV.decrypt(sample, associatedData: candidate, key: key)
          }
        }
        if let name, BlobName.isPossible(name) { return DirectoryID(candidate) }
      }
    }
    return nil
  }

  /// The encrypted names of some entries; one alone might itself be altered.
  private static func samples(
    _ directory: VaultDirectory, _ lost: [StoredForm]
  ) throws(StorageError) -> [[UInt8]] {
    var samples: [[UInt8]] = []
    for form in lost {
      var text: [UInt8]? = Array(form.stem)
      if let companion = form.companion {
        text = try StorageError.onDisk { () throws(Errno) in
          try SmallFile.read(
            companion, in: directory.fd.rawValue, atMost: BlobName.longestCompanion)
        }
      }
      if let text, let raw = Base64URL.decode(text[...]), raw.count > SIV.overhead {
        samples.append(raw)
      }
      if samples.count == 2 { break }
    }
    return samples
  }

  private static func candidates(
    _ directory: VaultDirectory, _ entries: [RawEntry]
  ) throws(StorageError) -> [[UInt8]] {
    var candidates: [[UInt8]] = []
    for entry in entries where entry.isRegular && entry.name.hasPrefix("directory") {
      let bytes = try StorageError.onDisk { () throws(Errno) in
        try SmallFile.read(entry.name, in: directory.fd.rawValue, atMost: greatestAltered)
      }
      guard let bytes else { continue }
      if bytes.count >= byteCount {
        candidates += [Array(bytes.prefix(byteCount)), Array(bytes.suffix(byteCount))]
      }
      if bytes.count == byteCount {
        for index in bytes.indices {
          for byte in UInt8.min...UInt8.max {
            var other = bytes
            other[index] = byte
            candidates.append(other)
          }
        }
      } else if bytes.count == byteCount - 1 {
        for byte in UInt8.min...UInt8.max { candidates.append(bytes + [byte]) }
      }
    }
    return candidates
  }
}

extension NameCodec {
  /// What a companion held that should begin with `hash`: found in another file, or the present
  /// text but for one byte or what was put behind it. The hash tells that it is right.
  func mended(
    companion altered: [UInt8]?, others: [[UInt8]], hash: ArraySlice<UInt8>, kind: EntryKind
  ) throws(StorageError) -> [UInt8]? {
    for text in others where try name(ofCompanionText: text, hash: hash, kind: kind) != nil {
      return text
    }
    guard let altered else { return nil }
    for count in 1...16 where count < altered.count {
      let text = Array(altered.dropLast(count))
      if try name(ofCompanionText: text, hash: hash, kind: kind) != nil { return text }
    }
    let bytes =
      mode == .plain
      ? Array(UInt8(1)...UInt8.max) : (0...UInt8.max).filter { Base64URL.value(of: $0) != nil }
    for index in altered.indices {
      for byte in bytes where byte != altered[index] {
        var text = altered
        text[index] = byte
        if try name(ofCompanionText: text, hash: hash, kind: kind) != nil { return text }
      }
    }
    return nil
  }
}
