import Glibc
import Platform

extension VaultDirectory {
  /// Removes what an interrupted write left here. Only for a directory in which nobody of this
  /// mount has written yet. What can't be removed is logged and stays.
  func removeLeftovers() {
    do throws(StorageError) {
      let entries = try rawEntries()
      for entry in entries where BlobName.isTemporary(entry.name) { removeLeftover(entry) }
    } catch {
      Log.warning("a directory of the vault could not be searched for leftovers: \(error)")
    }
  }

  private func removeLeftover(_ entry: RawEntry) {
    do throws(StorageError) {
      guard entry.type == UInt8(DT_DIR) else {
        return try StorageError.onDisk { () throws(Errno) in
          try Syscalls.unlink(entry.name, in: fd.rawValue)
        }
      }
      if try !LeftoverDirectory.remove(entry.name, in: fd.rawValue, mode: context.names) {
        try putBack(entry.name)
      }
    } catch {
      Log.warning("the leftover \(entry.name) of an interrupted write stays: \(error)")
    }
  }

  /// A directory that was being removed when another program put something into it: it shows
  /// again, under a name that says so, for its own is lost.
  private func putBack(_ temporary: FileName) throws(StorageError) {
    guard try canBeRead(temporary) else {
      Log.warning("\(temporary) in the vault is no directory of ours and is left alone")
      return
    }
    let mark = temporary.bytes.dropFirst(".photovault-".utf8.count).dropLast(".tmp".utf8.count)
    let name = FileName(Array("recovered directory ".utf8) + mark.prefix(32))
    let stored = try storedName(name, kind: .other)
    try StorageError.onDisk { () throws(Errno) in
      try Syscalls.renameToNewName(temporary, to: stored.entry, in: fd.rawValue)
    }
    Log.warning("a directory whose removal was interrupted is back as \"\(name)\"")
  }
}

extension VaultDirectory {
  /// Without its id the names in a directory are lost, and showing it would be no use.
  private func canBeRead(_ directory: FileName) throws(StorageError) -> Bool {
    if context.names == .plain { return true }
    return try StorageError.onDisk { () throws(Errno) in
      let directory = try Syscalls.open(
        directory, in: fd.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      return try DirectoryID.read(in: directory.rawValue) != nil
    }
  }
}

/// A directory that is to go, with what may be in it: `directory.id`, temporaries, companions.
enum LeftoverDirectory {
  private static let deepest = 8

  /// Whether all of `entries` may be deleted.
  static func holdsNothing(_ entries: [RawEntry], mode: NamesMode) -> Bool {
    entries.allSatisfy { isDisposable($0, mode: mode) }
  }

  private static func isDisposable(_ entry: RawEntry, mode: NamesMode) -> Bool {
    if BlobName.isTemporary(entry.name) { return true }
    guard entry.isRegular else { return false }
    // Where nothing else is, a companion belongs to no entry any more.
    if BlobName.hash(ofCompanion: entry.name) != nil { return true }
    return mode == .encrypted && entry.name == DirectoryID.fileName
  }

  /// Removes the directory; false, and nothing changed, when it holds something.
  static func remove(
    _ name: FileName, in parent: CInt, mode: NamesMode, depth: Int = 0
  ) throws(StorageError) -> Bool {
    let directory = try StorageError.onDisk { () throws(Errno) in
      try Syscalls.open(name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }
    let number = directory.rawValue
    let entries = try StorageError.onDisk { () throws(Errno) in try DirectoryEntries.read(number) }
    guard depth < deepest, holdsNothing(entries, mode: mode) else { return false }
    for entry in entries where entry.type == UInt8(DT_DIR) {
      guard try remove(entry.name, in: number, mode: mode, depth: depth + 1) else { return false }
    }
    empty(directory, mode: mode)
    try StorageError.onDisk { () throws(Errno) in try Syscalls.removeDirectory(name, in: parent) }
    return true
  }

  /// Deletes what may be deleted, `directory.id` last: as long as anything is here, it tells names.
  static func empty(_ directory: borrowing FileDescriptor, mode: NamesMode) {
    let number = directory.rawValue
    guard let entries = try? DirectoryEntries.read(number) else { return }
    for entry in entries where isDisposable(entry, mode: mode) {
      if entry.type == UInt8(DT_DIR) {
        _ = try? remove(entry.name, in: number, mode: mode)
      } else if entry.name != DirectoryID.fileName {
        try? Syscalls.unlink(entry.name, in: number)
      }
    }
    let rest = (try? DirectoryEntries.read(number)) ?? []
    if rest.allSatisfy({ $0.name == DirectoryID.fileName && mode == .encrypted }) {
      try? Syscalls.unlink(DirectoryID.fileName, in: number)
    }
  }

  /// Takes back a directory that was just made and never had its name.
  static func discard(_ name: FileName, in parent: CInt) {
    guard
      let directory = try? Syscalls.open(
        name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    else { return }
    try? Syscalls.unlink(DirectoryID.fileName, in: directory.rawValue)
    try? Syscalls.removeDirectory(name, in: parent)
  }
}
