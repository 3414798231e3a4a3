import Glibc
import Platform
import SecuredData

/// One directory of a vault as a check sees it: what shows, what should but can't, and the rest.
struct DirectoryScan {
  let directory: VaultDirectory
  /// What is the vault's, with or without its name.
  let entries: [Entry]
  let leftovers: [FileName]
  let orphans: [FileName]
  let strangers: [FileName]
  let fault: Fault?

  struct Entry: Sendable {
    let stored: FileName
    /// DT_*, never DT_UNKNOWN.
    let type: UInt8
    let name: FileName?
    /// Why there is no name; nil also where it is the directory's fault.
    let lost: Loss?
  }

  struct Loss: Sendable {
    let kind: VaultFinding.Kind
    var sentence: String {
      kind == .companion
        ? "its name file is missing or altered; the rest is good"
        : "its name was not made for this folder; the rest is good"
    }
  }

  /// What is wrong with `directory.id`.
  enum Fault: Sendable {
    case mendable(DirectoryID)
    case lost

    func sentence(_ count: Int) -> String {
      let what = "directory.id is missing or altered"
      switch self {
      case .mendable: return "\(what), and can be put right"
      case .lost: return "\(what): the names of \(count) entries are lost"
      }
    }
  }

  /// The entries whose names are lost.
  var lost: [Entry] { entries.filter { $0.name == nil } }

  init(
    _ descriptor: consuming FileDescriptor, isRoot: Bool, context: VaultContext
  ) throws(StorageError) {
    let known = try Self.knownID(descriptor, context)
    let id = if let known { known } else { try DirectoryID.random() }
    let directory = try VaultDirectory(
      fd: descriptor, id: id, isRoot: isRoot, context: context)
    let entries = try directory.rawEntries()
    let survey = try Survey(directory, entries)
    guard context.names == .encrypted, !survey.lost.isEmpty, survey.listed.isEmpty else {
      self.init(directory, entries, survey, nil)
      return
    }
    if let mended = try DirectoryID.mended(directory, entries, survey.lost) {
      let duplicate = try StorageError.onDisk { () throws(Errno) in
        try directory.fd.duplicate()
      }
      let right = try VaultDirectory(fd: duplicate, id: mended, isRoot: isRoot, context: context)
      self.init(right, entries, try Survey(right, entries), .mendable(mended))
    } else {
      // One name alone may itself be what is wrong.
      let isLost = known == nil || survey.lost.count > 1
      self.init(directory, entries, survey, isLost ? .lost : nil)
    }
  }

  private init(
    _ directory: VaultDirectory, _ raw: [RawEntry], _ survey: Survey, _ fault: Fault?
  ) {
    self.directory = directory
    self.fault = fault
    let isLost = if case .lost = fault { true } else { false }
    entries =
      survey.listed.map {
        Entry(stored: $0.stored.entry, type: $0.type, name: $0.name, lost: nil)
      }
      + survey.lost.map {
        Entry(
          stored: $0.entry.name, type: $0.entry.type, name: nil,
          lost: isLost ? nil : Loss(kind: $0.isLong ? .companion : .name))
      }
    leftovers = raw.map(\.name).filter { BlobName.isTemporary($0) }
    let mode = directory.context.names
    var needed: Set<ArraySlice<UInt8>> = []
    for entry in raw {
      if let form = StoredForm(entry, mode: mode), form.isLong { needed.insert(form.stem) }
    }
    var orphans: [FileName] = []
    var strangers = survey.strangers
    for entry in raw where StoredForm(entry, mode: mode) == nil {
      if BlobName.isTemporary(entry.name) || directory.isOwnFile(entry) { continue }
      if entry.isRegular, let hash = BlobName.hash(ofCompanion: entry.name) {
        // Names of a folder without its id may be told when that is found.
        if !isLost, !needed.contains(hash) { orphans.append(entry.name) }
      } else {
        strangers.append(entry.name)
      }
    }
    self.orphans = orphans
    self.strangers = strangers
  }

  /// nil where `directory.id` is missing or no id.
  private static func knownID(
    _ descriptor: borrowing FileDescriptor, _ context: VaultContext
  ) throws(StorageError) -> DirectoryID? {
    if context.names == .plain { return .plain }
    let number = descriptor.rawValue
    return try StorageError.onDisk { () throws(Errno) in try DirectoryID.read(in: number) }
  }

  private struct Survey {
    let listed: [VaultDirectory.Listed]
    let lost: [StoredForm]
    let strangers: [FileName]

    init(_ directory: VaultDirectory, _ entries: [RawEntry]) throws(StorageError) {
      let survey = try directory.survey(of: entries)
      var unreadable = Set(survey.unreadable)
      var lost: [StoredForm] = []
      var strangers: [FileName] = []
      if !unreadable.isEmpty {
        // Not what another program is just moving.
        unreadable.formIntersection(try directory.survey().unreadable)
      }
      let mode = directory.context.names
      for entry in entries {
        guard let form = StoredForm(entry, mode: mode) else { continue }
        if mode == .plain {
          // With plain names it shows as it is spelt.
          if form.isLong, try directory.name(of: form) == nil { lost.append(form) }
        } else if unreadable.contains(entry.name) {
          if try directory.isOurs(entry) { lost.append(form) } else { strangers.append(entry.name) }
        }
      }
      let names = Set(lost.map(\.entry.name))
      listed =
        names.isEmpty ? survey.listed : survey.listed.filter { !names.contains($0.stored.entry) }
      self.lost = lost
      self.strangers = strangers
    }
  }
}

extension VaultDirectory {
  /// The vault's own files, which are no entries.
  fileprivate func isOwnFile(_ entry: RawEntry) -> Bool {
    if codec.isRoot, entry.name == BlobName.superblock || entry.name == BlobName.setAside {
      return true
    }
    return context.names == .encrypted && entry.isRegular && entry.name == DirectoryID.fileName
  }

  /// Whether an entry whose name tells nothing is the vault's by what it holds: `.stfolder` and
  /// `lost+found` are not.
  fileprivate func isOurs(_ entry: RawEntry) throws(StorageError) -> Bool {
    if entry.isRegular { return true }
    do throws(StorageError) {
      switch entry.type {
      case UInt8(DT_LNK):
        let target = try StorageError.onDisk { () throws(Errno) in
          try Syscalls.readSymbolicLink(entry.name, in: fd.rawValue)
        }
        _ = try decodeLinkTarget(target)
        return true
      case UInt8(DT_DIR):
        let inner = try StorageError.onDisk { () throws(Errno) in
          try Syscalls.open(
            entry.name, in: fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        }
        let number = inner.rawValue
        return try StorageError.onDisk { () throws(Errno) in
          if try DirectoryID.read(in: number) != nil { return true }
          return try DirectoryEntries.read(number).contains {
            $0.isRegular && $0.name.hasSuffix(".securedData")
          }
        }
      default: return false
      }
    } catch {
      switch error {
      case .damagedMetadata, .system: return false
      default: throw error
      }
    }
  }
}
