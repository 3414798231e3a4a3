import Glibc
import Platform
import SecuredData

extension VaultCheck {
  /// Puts right what `report` found, as far as nothing is lost by it; the rest is moved out of the
  /// way (`SetAside`) or gets a new name. Stops where `tick` says false, between two findings.
  /// Returns the report with what was done. Only for a check that was opened for it.
  package func repair(
    _ report: Report, _ tick: (VaultFinding) -> Bool = { _ in true }
  ) throws(StorageError) -> Report {
    precondition(isRepairing)
    return try VaultRepair(self).run(report, tick)
  }
}

/// One run of repairs, by one thread, under the vault's lock.
private final class VaultRepair {
  private let context: VaultContext
  private let root: SharedDescriptor
  private let setAside: SetAside
  private var attributeCount = 0
  /// Numbers of recovered names used up, by directory.
  private var recovered: [[FileName]: Int] = [:]

  init(_ check: VaultCheck) {
    context = check.context
    root = check.root
    setAside = SetAside(root: check.root.rawValue)
  }

  func run(
    _ report: VaultCheck.Report, _ tick: (VaultFinding) -> Bool
  ) throws(StorageError) -> VaultCheck.Report {
    var report = report
    // First the ids that can be put right: the names in those directories count from then on.
    for index in report.findings.indices where report.findings[index].kind == .directory {
      report.findings[index].repair = attempt {
        () throws(StorageError) in try mendID(report.findings[index].components)
      }
    }
    for place in report.unindexed where rebuild(place.components) {
      report.counts.unindexed -= 1
    }
    for place in report.unsealed where (try? seal(place.components, place.path)) == true {
      report.counts.unsealed -= 1
    }
    for index in order(report.findings) {
      let finding = report.findings[index]
      if finding.repair == .none {
        report.findings[index].repair = attempt { () throws(StorageError) in
          try repair(finding)
        }
      }
      if !tick(report.findings[index]) {
        report.isComplete = false
        break
      }
    }
    try StorageError.onDisk { () throws(Errno) in try Syscalls.synchronize(root.rawValue) }
    report.counts.setAside = try SetAside.count(in: root.rawValue)
    return report
  }

  /// From the inside out, for a directory's own name changes last. In a directory names whose files
  /// may be in a leftover go before the leftovers.
  private func order(_ findings: [VaultFinding]) -> [Int] {
    func depth(_ finding: VaultFinding) -> Int {
      finding.components.count + (finding.kind == .directory ? 1 : 0)
    }
    func rank(_ finding: VaultFinding) -> Int {
      switch finding.kind {
      case .blob, .link, .attribute, .index, .replaced, .moved, .unreadable, .stranger: 0
      case .companion: 1
      case .name: 2
      case .leftover, .orphan: 3
      case .directory: 4
      }
    }
    return findings.indices.sorted { left, right in
      let (one, other) = (findings[left], findings[right])
      return (-depth(one), rank(one), left) < (-depth(other), rank(other), right)
    }
  }

  private func attempt(
    _ body: () throws(StorageError) -> VaultFinding.Repair
  ) -> VaultFinding.Repair {
    do throws(StorageError) { return try body() } catch {
      if case .system(let reason) = error { return .failed("\(reason)".lowercasedFirst) }
      return .failed("\(error)")
    }
  }

  private func repair(_ finding: VaultFinding) throws(StorageError) -> VaultFinding.Repair {
    let path = finding.components
    switch finding.kind {
    case .blob, .link: return try move(path, finding.reason)
    case .attribute: return try keepAttributes(path)
    case .index, .replaced:
      return rebuild(path) ? .mended("the index was made anew") : .failed("the disk refused")
    case .moved:
      return try seal(path, finding.path)
        ? .mended("it belongs here now") : .failed("the disk refused")
    case .companion: return try mendCompanion(path)
    case .name: return try giveName(path)
    case .directory: return try replaceID(path)
    case .leftover: return try removeLeftover(path)
    case .orphan: return try removeOrphan(path)
    case .unreadable, .stranger: return .none
    }
  }

  /// The directory at `path` as it is now.
  private func scan(_ path: some Collection<FileName>) throws(StorageError) -> DirectoryScan {
    var descriptor = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.duplicate(root.rawValue)
    }
    for name in path {
      let parent = descriptor.rawValue
      descriptor = try StorageError.onDisk { () throws(Errno) in
        try Syscalls.open(name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      }
    }
    return try DirectoryScan(descriptor, isRoot: path.isEmpty, context: context)
  }

  private func entry(
    _ path: [FileName]
  ) throws(StorageError) -> (directory: VaultDirectory, stored: FileName) {
    guard let stored = path.last else { throw .system(.invalidArgument) }
    return (try directory(path.dropLast()), stored)
  }

  /// Without a look at what is in it.
  private func directory(
    _ path: ArraySlice<FileName>
  ) throws(StorageError) -> VaultDirectory {
    var descriptor = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.duplicate(root.rawValue)
    }
    for name in path {
      let parent = descriptor.rawValue
      descriptor = try StorageError.onDisk { () throws(Errno) in
        try Syscalls.open(name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      }
    }
    let number = descriptor.rawValue
    var id = DirectoryID.plain
    if context.names == .encrypted {
      let known = try StorageError.onDisk { () throws(Errno) in try DirectoryID.read(in: number) }
      id = if let known { known } else { try .random() }
    }
    return try VaultDirectory(
      fd: descriptor, id: id, isRoot: path.isEmpty, context: context)
  }
}

// MARK: Contents

extension VaultRepair {
  private func move(
    _ path: [FileName], _ reason: String
  ) throws(StorageError) -> VaultFinding.Repair {
    let (directory, stored) = try entry(path)
    let folder = try setAside.move(path, reason: reason)
    // A copy of the name file went along.
    directory.removeCompanion(
      StoredName(entry: stored, companion: BlobName.companion(ofEntry: stored)))
    return .setAside(folder)
  }

  /// Verifies the blob once more and gives it the index that it should have.
  private func rebuild(_ path: [FileName]) -> Bool {
    do throws(StorageError) {
      let (directory, stored) = try entry(path)
      let file = try StorageError.onDisk { () throws(Errno) in
        try BlobSize.open(stored, in: directory.fd.rawValue)
      }
      let number = file.rawValue
      return try BlobInspection.Whole(number, context.keys, withTags: true) { _ in }
        .storeIndex(on: number)
    } catch { return false }
  }

  /// Says that the photo belongs where it is, which shows as `shown`. False where the disk holds
  /// no seal.
  private func seal(_ path: [FileName], _ shown: FileName?) throws(StorageError) -> Bool {
    guard let name = shown?.lastComponent else { return false }
    let (directory, stored) = try entry(path)
    return try seal(stored, as: name, in: directory)
  }

  @discardableResult
  private func seal(
    _ stored: FileName, as name: FileName, in directory: VaultDirectory
  ) throws(StorageError) -> Bool {
    let file = try StorageError.onDisk { () throws(Errno) in
      try BlobSize.open(stored, in: directory.fd.rawValue)
    }
    let number = file.rawValue
    let header = try Blob.header(of: number).header
    guard let size = BlobSize.plaintextSize(of: number, keys: context.keys) else { return false }
    let status = try StorageError.onDisk { () throws(Errno) in try Syscalls.status(number) }
    let seal = try PlaceSeal(
      header, PlaceSeal.Told(size: size, status), of: name, in: directory)
    seal.put(on: number)
    if case .right = try seal.standing(on: number) { return true }
    return false
  }

  private func keepAttributes(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let file: FileDescriptor
    if path.isEmpty {
      file = try StorageError.onDisk { () throws(Errno) in try Syscalls.duplicate(root.rawValue) }
    } else {
      let (directory, stored) = try entry(path)
      file = try StorageError.onDisk { () throws(Errno) in
        try BlobSize.open(stored, in: directory.fd.rawValue)
      }
    }
    let number = file.rawValue
    var folder = ""
    for name in try BlobInspection.damagedAttributes(of: number, context.keys) {
      guard let value = try BlobInspection.attribute(name, of: number) else { continue }
      attributeCount += 1
      folder = try setAside.keep(
        value, as: FileName("attribute-\(attributeCount)"), of: path, reason: "\(name)")
      try StorageError.onDisk { () throws(Errno) in
        try BlobAttribute.remove(name, from: number)
      }
    }
    return folder.isEmpty
      ? .mended("put right with another of its names") : .setAside(folder)
  }
}

// MARK: Names

extension VaultRepair {
  private func mendCompanion(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let (directory, stored) = try entry(path)
    guard let companion = BlobName.companion(ofEntry: stored) else { return try giveName(path) }
    let fd = directory.fd.rawValue
    func text(_ name: FileName) throws(StorageError) -> [UInt8]? {
      try StorageError.onDisk { () throws(Errno) in
        try SmallFile.read(
          name, in: fd, atMost: BlobName.longestCompanion + DirectoryID.greatestAltered)
      }
    }
    var others: [[UInt8]] = []
    for entry in try directory.rawEntries()
    where entry.isRegular && !entry.name.hasSuffix(".securedData") && entry.name != companion {
      if let text = try text(entry.name) { others.append(text) }
    }
    let kind = try kind(of: stored, in: fd)
    let mended = try directory.codec.mended(
      companion: try text(companion), others: others,
      hash: companion.bytes.prefix(BlobName.hashCharacterCount), kind: kind)
    guard let mended else {
      let result = try giveName(path)
      // It tells nothing any more, but who knows.
      if try directory.exists(companion) {
        _ = try setAside.move(path.dropLast() + [companion], reason: "does not tell its name")
      }
      return result
    }
    let temporary = try directory.temporaryName()
    try StorageError.onDisk { () throws(Errno) in
      try SmallFile.replace(
        companion, with: mended, in: fd, temporary: temporary, overwriting: true)
    }
    return .mended("its name is back")
  }

  private func kind(of stored: FileName, in directory: CInt) throws(StorageError) -> EntryKind {
    let mode = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.status(of: stored, in: directory).st_mode
    }
    return mode & mode_t(Glibc.S_IFMT) == mode_t(Glibc.S_IFREG) ? .blob : .other
  }

  /// A name such as "recovered file 1" for what has lost its own.
  private func giveName(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let (directory, stored) = try entry(path)
    let status = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.status(of: stored, in: directory.fd.rawValue)
    }
    let what =
      switch status.st_mode & mode_t(Glibc.S_IFMT) {
      case mode_t(Glibc.S_IFREG): "file"
      case mode_t(Glibc.S_IFDIR): "folder"
      default: "link"
      }
    let kind: EntryKind = what == "file" ? .blob : .other
    try directory.prepareForEntries()
    let parent = Array(path.dropLast())
    var number = recovered[parent] ?? 0
    var name: FileName
    repeat {
      number += 1
      name = FileName("recovered \(what) \(number)")
    } while try directory.find(name) != nil
    recovered[parent] = number
    let target = try directory.storedName(name, kind: kind)
    // Written down first: the old stored name tells the true one if its id is found again.
    let folder = try setAside.noted(path, "is now \(target.entry)")
    try StorageError.onDisk { () throws(Errno) in
      try Syscalls.renameToNewName(stored, to: target.entry, in: directory.fd.rawValue)
    }
    if kind == .blob, status.st_nlink == 1 {
      try seal(target.entry, as: name, in: directory)
    }
    return .renamed(to: name, folder)
  }

  private func mendID(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let scan = try scan(path)
    guard case .mendable(let id) = scan.fault else { return .none }
    try setAside.keepID(of: path)
    try id.write(in: scan.directory.fd.rawValue, overwriting: true)
    return .mended("the id of the folder is right again")
  }

  /// For names that are lost: a new id, and new names under it.
  private func replaceID(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let scan = try scan(path)
    guard case .lost = scan.fault else { return .mended("nothing was left to do") }
    let fd = scan.directory.fd.rawValue
    try setAside.keepID(of: path)
    try DirectoryID.random().write(in: fd, overwriting: true)
    var folder = ""
    for entry in scan.lost {
      if case .renamed(_, let place) = try giveName(path + [entry.stored]) { folder = place }
    }
    // The names in them were encrypted with the old id.
    for entry in try scan.directory.rawEntries()
    where entry.isRegular && BlobName.hash(ofCompanion: entry.name) != nil {
      folder = try setAside.move(path + [entry.name], reason: "needs the former directory.id")
    }
    return .renamed(to: nil, folder)
  }

  private func removeLeftover(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let (directory, stored) = try entry(path)
    directory.removeLeftovers()
    return try directory.exists(stored) ? .failed("it stays") : .mended("it was removed")
  }

  private func tellsItsName(
    _ companion: FileName, in directory: VaultDirectory
  ) throws(StorageError) -> Bool {
    let text = try StorageError.onDisk { () throws(Errno) in
      try SmallFile.read(
        companion, in: directory.fd.rawValue, atMost: BlobName.longestCompanion)
    }
    guard let text, let hash = BlobName.hash(ofCompanion: companion) else { return false }
    // Whose name it was does not matter: one kind is shorter by the suffix of blobs.
    return try directory.codec.name(ofCompanionText: text, hash: hash, kind: .blob) != nil
  }

  /// Of an entry that is gone; one that tells nothing may be of a folder whose id was another.
  private func removeOrphan(_ path: [FileName]) throws(StorageError) -> VaultFinding.Repair {
    let (directory, companion) = try entry(path)
    guard try tellsItsName(companion, in: directory) else {
      return .setAside(try setAside.move(path, reason: "does not tell a name of this folder"))
    }
    directory.removeCompanion(StoredName(entry: companion, companion: companion))
    return try directory.exists(companion)
      ? .mended("it is needed again") : .mended("it was removed")
  }
}
