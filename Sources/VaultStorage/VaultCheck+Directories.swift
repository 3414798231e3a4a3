import Glibc
import Platform
import Synchronization

/// The walk over the directories.
extension VaultCheck {
  /// Directories ahead of the threads that read their files.
  private static let batchLimit = 8

  private struct Visit {
    /// nil for the vault's own directory.
    let parent: VaultDirectory?
    let place: EntryPlace
  }

  func walk() {
    var visits = [Visit(parent: nil, place: .root)]
    while let visit = visits.popLast(), !isStopped.load(ordering: .relaxed) {
      do throws(StorageError) { try scan(visit, &visits) } catch {
        guard case .system(let reason) = error else {
          fail(error)
          break
        }
        // Gone or something else by now: another program was here.
        if visit.parent != nil, [.noSuchEntry, .notADirectory].contains(reason) { continue }
        add(.unreadable, visit.place, "\(reason)".lowercasedFirst)
      }
    }
    state.withLock { $0.isWalking = false }
  }

  private func scan(_ visit: Visit, _ visits: inout [Visit]) throws(StorageError) {
    let place = visit.place
    let descriptor = try open(visit)
    let isRoot = visit.parent == nil
    let scan = try DirectoryScan(descriptor, isRoot: isRoot, context: context)
    seen.directories.add(1, ordering: .relaxed)
    if let fault = scan.fault { add(.directory, place, fault.sentence(scan.lost.count)) }
    report(scan, place)
    let fd = scan.directory.fd.rawValue
    let attributes = try BlobInspection.damagedAttributes(of: fd, context.keys)
    if !attributes.isEmpty { addAttributes(attributes.count, place) }
    if isRoot { try countSetAside(fd) }

    var items: [Batch.Item] = []
    for entry in scan.entries {
      if entry.type != UInt8(DT_DIR) {
        items.append(entry)
        continue
      }
      let inner = place.entry(entry.stored, shownAs: entry.name)
      if let lost = entry.lost { add(lost.kind, inner, lost.sentence) }
      visits.append(Visit(parent: scan.directory, place: inner))
    }
    if items.isEmpty { return }
    let batch = Batch(scan.directory, place, items)
    state.withLock(
      when: { $0.batches.count < Self.batchLimit || $0.isStopped }, { $0.batches.append(batch) })
  }

  private func open(_ visit: Visit) throws(StorageError) -> FileDescriptor {
    try StorageError.onDisk { () throws(Errno) in
      guard let parent = visit.parent, let stored = visit.place.components.last else {
        return try Syscalls.duplicate(root.rawValue)
      }
      return try Syscalls.open(
        stored, in: parent.fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
  }

  private func report(_ scan: DirectoryScan, _ place: EntryPlace) {
    for name in scan.leftovers {
      add(.leftover, place.entry(name, shownAs: nil), "left by a write that was interrupted")
    }
    for name in scan.orphans {
      add(.orphan, place.entry(name, shownAs: nil), "the name of an entry that is gone")
    }
    for name in scan.strangers {
      add(.stranger, place.entry(name, shownAs: nil), "not the vault's; left alone")
    }
  }

  func addAttributes(_ count: Int, _ place: EntryPlace) {
    let words = count == 1 ? "an extended attribute" : "\(count) extended attributes"
    add(.attribute, place, "\(words) of it can't be decoded; the contents are good")
  }

  private func countSetAside(_ root: CInt) throws(StorageError) {
    let count = try SetAside.count(in: root)
    seen.setAside.store(count, ordering: .relaxed)
  }
}

extension VaultCheck {
  /// Names and sizes only, for who wants to know how long it takes.
  func measure() {
    var files = 0
    var bytes: Int64 = 0
    var visits: [(parent: SharedDescriptor, name: FileName)] = [(root, FileName("."))]
    while let visit = visits.popLast(), !isStopped.load(ordering: .relaxed) {
      guard
        let directory = try? Syscalls.open(
          visit.name, in: visit.parent.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      else { continue }
      let shared = SharedDescriptor(directory)
      for entry in (try? DirectoryEntries.read(shared.rawValue)) ?? [] {
        guard let form = StoredForm(entry, mode: context.names) else { continue }
        if entry.type == UInt8(DT_DIR) {
          visits.append((shared, entry.name))
        } else if form.kind == .blob,
          let status = try? Syscalls.status(of: entry.name, in: shared.rawValue)
        {
          files += 1
          bytes += Int64(status.st_size)
        }
      }
    }
    seen.expectedBytes.store(bytes, ordering: .relaxed)
    seen.expectedFiles.store(files, ordering: .releasing)
  }
}
