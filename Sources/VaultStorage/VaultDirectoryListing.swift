package import Platform
import Synchronization

extension VaultDirectory {
  /// An entry as it shows.
  package struct Listed: Sendable {
    package let name: FileName
    package let stored: StoredName
    package let kind: EntryKind
    /// DT_*, never DT_UNKNOWN.
    package let type: UInt8
    package let inode: UInt64
  }

  /// All entries that show, as they are now. What can't be decoded is left out.
  package func list() throws(StorageError) -> [Listed] { try survey().listed }

  /// All entries, and the stored names of those that can't be decoded.
  package func survey() throws(StorageError) -> (listed: [Listed], unreadable: [FileName]) {
    try survey(of: try rawEntries())
  }

  func survey(
    of entries: [RawEntry]
  ) throws(StorageError) -> (listed: [Listed], unreadable: [FileName]) {
    let forms = classify(entries)
    var result: [Listed] = []
    result.reserveCapacity(forms.regular.count + forms.irregular.count)
    var strangers = forms.irregular
    var unreadable: [FileName] = []
    for form in forms.regular {
      if let name = try name(of: form) {
        result.append(Listed(name, form))
      } else if context.names == .plain {
        strangers.append(form)
      } else {
        unreadable.append(form.entry.name)
      }
    }
    let irregular = try nameIrregular(strangers)
    for (name, form) in irregular.named { result.append(Listed(name, form)) }
    return (result, unreadable + irregular.unreadable)
  }

  func rawEntries() throws(StorageError) -> [RawEntry] {
    try StorageError.onDisk { () throws(Errno) in try DirectoryEntries.read(fd.rawValue) }
  }

  /// The irregular entries as last seen; looks for them the first time.
  func irregularEntries() throws(StorageError) -> [FileName: StoredName] {
    if let known = state.withLock({ $0.irregular }) { return known }
    let forms = classify(try rawEntries())
    var strangers = forms.irregular
    if context.names == .plain {
      for form in forms.regular where codec.isSuspect(form) {
        if try name(of: form) == nil { strangers.append(form) }
      }
    }
    var known: [FileName: StoredName] = [:]
    for (name, form) in try nameIrregular(strangers).named { known[name] = form.stored }
    return known
  }

  private func classify(
    _ entries: [RawEntry]
  ) -> (regular: [StoredForm], irregular: [StoredForm]) {
    var regular: [StoredForm] = []
    regular.reserveCapacity(entries.count)
    var irregular: [StoredForm] = []
    var others: Set<ArraySlice<UInt8>> = []
    for entry in entries {
      guard let form = StoredForm(entry, mode: context.names) else {
        continue
      }
      if !form.isPlainlyNamed {
        irregular.append(form)
        continue
      }
      if form.kind == .other { others.insert(form.stem) }
      regular.append(form)
    }
    if others.isEmpty { return (regular, irregular) }
    // A blob and, say, a directory of one name: the blob keeps it.
    var doubled: Set<ArraySlice<UInt8>> = []
    for form in regular where form.kind == .blob && others.contains(form.stem) {
      doubled.insert(form.stem)
    }
    if doubled.isEmpty { return (regular, irregular) }
    let isDoubled = { (form: StoredForm) in
      form.kind == .other && doubled.contains(form.stem)
    }
    return (regular.filter { !isDoubled($0) }, irregular + regular.filter(isDoubled))
  }

  /// nil when the entry is not of this vault, or its companion is missing.
  func name(of form: StoredForm) throws(StorageError) -> FileName? {
    if codec.isLiteral(form) { return nil }
    guard let companion = form.companion else {
      return try codec.name(ofText: form.stem).map { FileName($0) }
    }
    let text = try StorageError.onDisk { () throws(Errno) in
      try SmallFile.read(companion, in: fd.rawValue, atMost: BlobName.longestCompanion)
    }
    guard let text else { return nil }
    return try codec.name(ofCompanionText: text, hash: form.stem, kind: form.kind)
      .map { FileName($0) }
  }

  /// Gives each irregular entry a name that nothing else shows as, and remembers them.
  private func nameIrregular(
    _ forms: [StoredForm]
  ) throws(StorageError) -> (named: [(FileName, StoredForm)], unreadable: [FileName]) {
    var named: [(FileName, StoredForm)] = []
    var unreadable: [FileName] = []
    var taken: [FileName: StoredName] = [:]
    let inOrder = forms.sorted {
      $0.entry.name.bytes.lexicographicallyPrecedes($1.entry.name.bytes)
    }
    for form in inOrder {
      guard let base = try irregularBase(form) else {
        unreadable.append(form.entry.name)
        continue
      }
      var number = 1
      var shown = IrregularName.shown(base, rest: form.rest, number: number)
      while true {
        let isFree = try !isRegularEntry(shown)
        if isFree, taken[shown] == nil { break }
        number += 1
        shown = IrregularName.shown(base, rest: form.rest, number: number)
      }
      taken[shown] = form.stored
      named.append((shown, form))
    }
    state.withLock { $0.irregular = taken }
    return (named, unreadable)
  }

  private func irregularBase(_ form: StoredForm) throws(StorageError) -> [UInt8]? {
    if let name = try name(of: form) { return name.bytes }
    // With plain names a name of ours that turns out to be none is what it says.
    guard context.names == .plain else { return nil }
    let name = form.entry.name.bytes
    let literal = form.kind == .blob ? Array(name.dropLast(BlobName.suffix.count)) : name
    return BlobName.isPossible(literal) ? literal : nil
  }

  private func isRegularEntry(_ name: FileName) throws(StorageError) -> Bool {
    let spelling = try codec.spelling(name)
    for kind in [EntryKind.blob, .other] {
      let stored = try codec.stored(spelling, kind: kind)
      if try exists(stored.entry) { return true }
    }
    return false
  }
}

extension VaultDirectory.Listed {
  init(_ name: FileName, _ form: StoredForm) {
    self.init(
      name: name, stored: form.stored, kind: form.kind, type: form.entry.type,
      inode: form.entry.inode)
  }
}

extension StoredForm {
  var stored: StoredName { StoredName(entry: entry.name, companion: companion) }
}

extension NameCodec {
  /// With plain names: an entry of another hand whose name we would have put into the long form.
  func isLiteral(_ form: StoredForm) -> Bool {
    mode == .plain && !form.isLong && needsLongForm(form.stem, kind: form.kind)
  }

  func isSuspect(_ form: StoredForm) -> Bool { form.isLong || isLiteral(form) }
}

/// What a conflict copy shows as.
enum IrregularName {
  /// The decoded name and what the other program put behind it, cut to 255 bytes in the middle;
  /// `~2` and so on where that is taken.
  static func shown(_ base: [UInt8], rest: ArraySlice<UInt8>, number: Int) -> FileName {
    let counter = number > 1 ? Array("~\(number)".utf8) : []
    let tail = rest.suffix(BlobName.longest - counter.count - 1) + counter
    var head = base.prefix(BlobName.longest - tail.count)
    if head.count < base.count {
      // Not in the middle of a character of UTF-8, which has at most three bytes behind its first.
      for _ in 0..<3 where head.count > 1 && (head.last ?? 0) & 0xC0 == 0x80 { head.removeLast() }
      if head.count > 1, (head.last ?? 0) & 0x80 != 0 { head.removeLast() }
    }
    return FileName(Array(head + tail))
  }
}
