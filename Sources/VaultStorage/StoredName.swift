package import Platform

/// How a vault spells names on the disk.
package enum NamesMode: String, Sendable {
  case encrypted
  case plain
}

/// The two forms of a stored entry: blobs end in `.securedData`, the rest has no suffix.
package enum EntryKind: Sendable {
  case blob
  /// A directory, symbolic link, fifo, socket or device.
  case other
}

/// What an entry is called on the disk.
package struct StoredName: Hashable, Sendable {
  /// `MzQ1.securedData`, `Zm9v`, `aHc4.long.securedData`, `aHc4.long`.
  package let entry: FileName
  /// `aHc4.long.name` for a name in long form: the file beside it that holds the name.
  package let companion: FileName?

  package init(entry: FileName, companion: FileName?) {
    self.entry = entry
    self.companion = companion
  }
}
