package import Platform

/// One thing in a vault that is not as it should be.
package struct VaultFinding: Sendable {
  /// The raw values are a promise to readers of `check --json`.
  package enum Kind: String, Sendable, CaseIterable {
    /// A blob that is not as it was written.
    case blob
    /// A symbolic link's target.
    case link
    /// An extended attribute's name or value.
    case attribute
    /// A chunk index that was altered. The photo itself is good.
    case index
    /// A good blob with the index of another one: it was put in that one's place from outside.
    case replaced
    /// A good blob that was not stored under this name.
    case moved
    /// The name file of a name in long form: the photo is there, its name is not.
    case companion
    /// A stored name that is not of this directory.
    case name
    /// A `directory.id` that is missing or not the one its names were encrypted with.
    case directory
    /// What the disk did not give.
    case unreadable
    /// What an interrupted write left.
    case leftover
    /// A name file that no entry needs.
    case orphan
    /// A file of another program, neither shown nor touched.
    case stranger
  }

  package enum Repair: Sendable, Equatable {
    /// Not asked for, or nothing to be done about it.
    case none
    /// As it was; what was done.
    case mended(String)
    /// The contents are as they were, under another name (nil: several); the folder in the vault's
    /// directory whose note tells the stored name of before.
    case renamed(to: FileName?, String)
    /// Moved out of the way; where to, in the vault's directory.
    case setAside(String)
    case failed(String)
  }

  package let kind: Kind
  /// In the mounted folder; nil where the name is lost.
  package let path: FileName?
  /// In the vault's directory; empty for that directory itself.
  package let storedPath: FileName
  package let reason: String
  package internal(set) var repair = Repair.none

  /// What this is about, from the vault's directory on.
  let components: [FileName]

  /// Whether something that was stored can't be had any more, or not in safety.
  package var isDamage: Bool {
    switch kind {
    case .leftover, .orphan, .stranger: false
    default: true
    }
  }

  init(_ kind: Kind, _ place: EntryPlace, _ reason: String) {
    self.kind = kind
    self.reason = reason
    path = place.path
    storedPath = place.storedPath
    components = place.components
  }
}

/// Where an entry is: on the disk and, if its name is known, in the mounted folder.
struct EntryPlace: Sendable {
  let components: [FileName]
  /// nil where a name on the way is lost.
  let path: FileName?

  static let root = EntryPlace(components: [], path: FileName(""))

  var storedPath: FileName { FileName(Array(components.map(\.bytes).joined(separator: [0x2F]))) }

  func entry(_ stored: FileName, shownAs name: FileName?) -> EntryPlace {
    let shown: FileName? =
      if let path, let name {
        path.count == 0 ? name : FileName(path.bytes + [0x2F] + name.bytes)
      } else {
        nil
      }
    return EntryPlace(components: components + [stored], path: shown)
  }
}

/// How much a check has seen.
package struct VaultCounts: Sendable, Equatable {
  /// Names of blobs; hard links count each.
  package var files = 0
  /// Bytes of blobs that were read.
  package var bytes: Int64 = 0
  package var directories = 0
  /// Blobs without a chunk index that had use for one. No damage.
  package var unindexed = 0
  /// Blobs that don't say where they belong. No damage.
  package var unsealed = 0
  /// Files that an earlier repair put out of the way.
  package var setAside = 0
}
