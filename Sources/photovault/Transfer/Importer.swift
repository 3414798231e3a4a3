import Glibc
import Platform
import SecuredData
import Synchronization
import VaultStorage

struct ImportOptions: Sendable {
  var conflicts = ConflictPolicy.rename
  /// Sources go once they are safe in the vault.
  var moves = false
  var sortsByDate = false
  var namesByContent = false
  var skipsDuplicates = false
}

/// What an import did, for its last lines.
struct ImportTally: Sendable {
  var files = 0
  var bytes: Int64 = 0
  var folders = 0
  var links = 0
  /// There under the same name with the same contents.
  var present = 0
  /// Under the name of another file, which stays.
  var skipped = 0
  var renamed = 0
  var undated = 0
  var failed = 0
  /// Imported but for an extended attribute.
  var incomplete = 0
  /// Sources of a move that stay.
  var kept = 0
  var duplicates: [(path: FileName, twin: FileName)] = []
  /// The same, but left out.
  var leftOut: [(path: FileName, twin: FileName)] = []

  var isComplete: Bool { skipped + failed + incomplete + kept == 0 }
}

/// Puts files into a vault that nobody has mounted. Each is written, read back from the disk and
/// compared before it gets its name; a source is deleted after that only.
final class Importer: Sendable {
  let vault: Vault
  let options: ImportOptions
  let run: TransferRun
  let contents: VaultContents
  let tally = Mutex(ImportTally())

  private let tree: SourceTree
  private let top: TargetDirectory
  let password: BlobPassword?
  private let next = Atomic(0)
  /// How many sources have each stored size.
  let sizes: [Int64: Int]

  init(
    _ tree: SourceTree, into top: TargetDirectory, of vault: Vault, contents: VaultContents,
    password: BlobPassword?, options: ImportOptions
  ) {
    self.tree = tree
    self.top = top
    self.vault = vault
    self.contents = contents
    self.password = password
    self.options = options
    run = TransferRun(files: tree.fileCount, bytes: tree.byteCount)
    var sizes: [Int64: Int] = [:]
    for group in tree.groups {
      for file in group.files { sizes[file.storedSize, default: 0] += 1 }
    }
    self.sizes = sizes
  }

  /// On each thread.
  func work() {
    let batch = ImportBatch(self)
    while !run.isStopping {
      let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
      guard index < tree.groups.count else { break }
      let group = tree.groups[index]
      // Open while its files are looked at, one after the other.
      let source = try? group.files[0].directory?.open()
      withExtendedLifetime(source) { add(group, batch) }
      if batch.isFull { batch.finish() }
    }
    batch.finish()
  }

  func fail(_ path: FileName, _ failure: TransferFailure) {
    run.say("failed: \(path): \(failure.sentence)")
    tally.withLock { $0.failed += 1 }
    guard failure.isFinal, case .vault = failure else { return }
    run.fail(
      CommandError(
        .failed, "stopped: \(failure.sentence)",
        hint: "what was imported is safe; make room and run the same command again"))
  }

  // MARK: Where to

  private func add(_ group: SourceGroup, _ batch: ImportBatch) {
    let names =
      options.namesByContent ? zip(group.files, group.names).map { named($0, $1) } : group.names
    let target = options.sortsByDate ? dated(group) : group.files[0].target ?? top
    let directory: VaultDirectory
    do throws(StorageError) { directory = try target.open() } catch {
      for file in group.files {
        if case .system(.notADirectory) = error {
          fail(file.path, .other("a file has the name of its folder"))
        } else {
          fail(file.path, .vault(error))
        }
      }
      return
    }
    place(group.files, names, Place(target: target, directory: directory), batch)
  }

  /// The name with the extension that its contents ask for.
  private func named(_ file: SourceFile, _ name: SplitName) -> SplitName {
    guard file.kind != .symbolicLink,
      let content = try? file.content(password),
      let type = try? content.contentType(), !type.fits(file.name.lowercaseExtension)
    else { return name }
    return SplitName(base: name.base, tail: name.tail + Array(".\(type.rawValue)".utf8))
  }

  private func dated(_ group: SourceGroup) -> TargetDirectory {
    var date: PhotoDate?
    for file in group.files where date == nil && file.kind != .symbolicLink {
      // What can't be read is said when it is copied.
      guard let content = try? file.content(password) else {
        continue
      }
      date = try? content.dateTaken()
    }
    if date == nil {
      let status = try? group.files[0].status()
      date = PhotoDate(status?.st_mtim ?? timespec())
      tally.withLock { $0.undated += group.files.count }
    }
    guard let (year, month) = date?.components else { return top }
    return top.child(FileName(year)).child(FileName(month))
  }

  // MARK: Under which name

  struct Place {
    let target: TargetDirectory
    let directory: VaultDirectory
    /// Under names with a number, as their own were taken.
    var isNumbered = false

    func path(_ name: FileName) -> FileName { target.path.appending(name) }
  }

  typealias Found = (stored: StoredName, kind: EntryKind, status: stat)

  private enum Occupant {
    case nobody
    case same(Found)
    case other(Found)
    case unknown(TransferFailure)

    var isOther: Bool { if case .other = self { true } else { false } }
  }

  /// Finds names for a group: all its own, or all with the same number.
  private func place(
    _ files: [SourceFile], _ names: [SplitName], _ place: Place, _ batch: ImportBatch
  ) {
    var number = 0
    while true {
      number += 1
      let wanted = names.map { $0.numbered(number) }
      guard place.target.reserve(wanted) else {
        if options.conflicts != .skip { continue }
        for (file, name) in zip(files, wanted) { skip(file, place.path(name)) }
        return
      }
      let occupants = zip(files, wanted).map { occupant(of: $1, for: $0, place.directory) }
      let isTaken = zip(wanted, occupants).contains { name, occupant in
        // What this import itself has written is not replaced.
        occupant.isOther
          && (options.conflicts == .rename
            || (options.conflicts == .replace && place.target.wasWritten(name)))
      }
      if isTaken {
        place.target.release(wanted, wereWritten: false)
        continue
      }
      var place = place
      place.isNumbered = number > 1
      for (index, file) in files.enumerated() {
        add(file, as: wanted[index], place, occupants[index], batch)
      }
      return
    }
  }

  private func add(
    _ file: SourceFile, as name: FileName, _ place: Place, _ occupant: Occupant,
    _ batch: ImportBatch
  ) {
    do throws(TransferFailure) {
      switch occupant {
      case .unknown(let failure): throw failure
      case .same(let found): try present(file, as: name, found, place, batch)
      case .nobody: try copy(file, as: name, place, replacing: nil, batch)
      case .other(let found):
        if options.conflicts == .skip {
          place.target.release([name], wereWritten: false)
          return skip(file, place.path(name))
        }
        guard found.status.st_mode & S_IFMT != mode_t(Glibc.S_IFDIR) else {
          throw .other("a folder has its name")
        }
        try copy(file, as: name, place, replacing: found, batch)
      }
    } catch {
      place.target.release([name], wereWritten: false)
      fail(file.path, error)
    }
  }

  private func skip(_ file: SourceFile, _ name: FileName) {
    run.say("skipped: \(file.path): another file is there as '\(name)'")
    run.count(files: 1, bytes: file.size)
    tally.withLock { $0.skipped += 1 }
  }

  private func occupant(
    of name: FileName, for file: SourceFile, _ directory: VaultDirectory
  ) -> Occupant {
    do throws(TransferFailure) {
      let found = try TransferFailure.onVault { () throws(StorageError) in
        try directory.find(name)
      }
      guard let found else { return .nobody }
      return try isSame(file, found, directory) ? .same(found) : .other(found)
    } catch { return .unknown(error) }
  }

  private func isSame(
    _ file: SourceFile, _ found: Found, _ directory: VaultDirectory
  ) throws(TransferFailure) -> Bool {
    let type = found.status.st_mode & S_IFMT
    if file.kind == .symbolicLink {
      guard type == mode_t(Glibc.S_IFLNK) else { return false }
      let target = try file.linkTarget()
      let stored = try TransferFailure.inVault { () throws(Errno) in
        try Syscalls.readSymbolicLink(found.stored.entry, in: directory.fd.rawValue)
      }
      return (try? directory.decodeLinkTarget(stored)) == target
    }
    let content = try file.content(password)
    guard found.kind == .blob, Int64(found.status.st_size) == storedSize(of: content, file)
    else { return false }
    let known: BlobDigest
    do throws(StorageError) {
      let opened = try directory.openFile(found.stored)
      known = try BlobDigest(of: opened.rawValue, keys: vault.keys)
    } catch {
      // A damaged one is not the same.
      if case .blob = error { return false }
      throw .vault(error)
    }
    return try content.digest() == known.digest
  }

  func storedSize(of content: borrowing SourceContent, _ file: SourceFile) -> Int64 {
    let size = Int64(content.status.st_size)
    return file.kind == .blob ? size : VaultContents.storedSize(plaintextSize: size)
  }

  // MARK: The end

  /// Gives the directories what their sources have, the innermost first, and removes those that a
  /// move has emptied. No thread works any more.
  func finishDirectories(interrupted: Bool) {
    for directory in tree.directories.reversed() where directory.isImported {
      if let target = directory.target {
        if interrupted, !target.isKnown { continue }
        do throws(TransferFailure) { try finish(directory, target) } catch {
          fail(directory.path, error)
          continue
        }
        tally.withLock { $0.folders += 1 }
      } else if !directory.lostSomething.load(ordering: .relaxed) {
        continue
      }
      guard options.moves else { continue }
      // What still holds something stays.
      do throws(TransferFailure) {
        try directory.remove()
        directory.parent?.lostSomething.store(true, ordering: .relaxed)
      } catch {}
    }
    run.flush()
  }

  private func finish(
    _ directory: SourceDirectory, _ target: TargetDirectory
  ) throws(TransferFailure) {
    let opened: VaultDirectory
    do throws(StorageError) { opened = try target.open() } catch {
      if case .system(.notADirectory) = error { throw .other("a file has its name") }
      throw .vault(error)
    }
    let source = try directory.open()
    defer { withExtendedLifetime(source) {} }
    let missing = try setAttributes(
      directory.status, from: source.fd, on: opened.fd.rawValue)
    for attribute in missing {
      run.say("not kept: attribute \(attribute) of \(directory.path)")
      tally.withLock { $0.incomplete += 1 }
    }
    try TransferFailure.onVault { () throws(StorageError) in try opened.synchronize() }
  }
}
