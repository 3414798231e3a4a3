package import Platform

/// What an entry's name on the disk says before anything is decrypted.
package struct StoredForm: Sendable {
  let entry: RawEntry
  package let kind: EntryKind
  /// The short form's text, or the hash of a long one.
  package let stem: ArraySlice<UInt8>
  package let isLong: Bool
  /// What another program put behind the stem, such as ` (conflicted copy)`.
  let rest: ArraySlice<UInt8>

  /// Where nothing was put behind and no other entry claims the same name, the name can be found
  /// by computing; all others are irregular.
  var isPlainlyNamed: Bool { rest.isEmpty }

  var companion: FileName? {
    isLong ? FileName(Array(stem) + BlobName.companionSuffix) : nil
  }

  /// nil for what never shows: the vault's own files, temporaries, what was set aside, files that
  /// are no blobs.
  package init?(_ entry: RawEntry, mode: NamesMode) {
    let name = entry.name
    if BlobName.isTemporary(name) || name == BlobName.setAside { return nil }
    self.entry = entry
    kind = entry.isRegular ? .blob : .other
    var whole = name.bytes[...]
    if entry.isRegular {
      guard name.hasSuffix(".securedData"), name.count > BlobName.suffix.count else { return nil }
      whole = whole.dropLast(BlobName.suffix.count)
    } else if mode == .encrypted, name.hasSuffix(".securedData") {
      // In a blob's place: somebody else's fifo, say, which would stop whoever reads the photo.
      return nil
    }
    if mode == .plain {
      isLong = BlobName.looksLong(whole)
      stem = isLong ? whole.prefix(BlobName.hashCharacterCount) : whole
      rest = []
      return
    }
    let text = whole.prefix { Base64URL.value(of: $0) != nil }
    let tail = whole[text.endIndex...]
    stem = text
    isLong = text.count == BlobName.hashCharacterCount && tail.starts(with: BlobName.long)
    rest = isLong ? tail.dropFirst(BlobName.long.count) : tail
  }
}
