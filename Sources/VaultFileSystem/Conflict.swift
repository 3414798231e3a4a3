import Glibc
import Platform
import Synchronization
import VaultStorage

/// Photos that another program (mostly one that syncs) put under the name of one that was being
/// changed here. Both are kept.
extension FileSystem {
  /// Before a commit takes `link`'s name: what is stored there under it gets a name of its own,
  /// `NAME (conflicted copy YYYY-MM-DD hh.mm.ss).EXT`, unless it is the `expected` version or the
  /// one that is being committed. The name itself stays taken until the commit, where the disk has
  /// hard links. The directory is locked.
  func keepForeign(
    _ link: Link, unless expected: BlobVersion?, _ written: WrittenBlob
  ) throws(FileSystemError) {
    let (node, directory) = try opened(link.parent)
    guard let found = try storedBlob(link, directory),
      let version = try version(of: found, in: directory),
      isForeign(version, expected, written)
    else { return }
    let name = try freeName(link.name, note: "conflicted copy", node, directory)
    let stored = try storing { () throws(StorageError) in
      let stored = try directory.storedName(name, kind: .blob)
      try directory.prepareForEntries()
      try directory.prepareCompanion(stored, for: name)
      return stored
    }
    var seal: LiftedSeal?
    do throws(FileSystemError) {
      seal = try Self.liftSeal(of: found.stored, link.name, directory, found.status)
      try calling { () throws(Errno) in
        _ = try Syscalls.linkOrRename(
          found.stored.entry, in: directory.fd.rawValue, as: stored.entry,
          in: directory.fd.rawValue)
      }
    } catch {
      directory.removeCompanion(stored)
      seal?.put(named: link.name, in: directory)
      throw error
    }
    seal?.put(named: name, in: directory)
    if let inode = table.find(BackingKey(found.status)) {
      inode.remove(link.name, in: link.parent)
      inode.add(Link(parent: link.parent, name: name, stored: stored), isOnlyOne: false)
    }
    node.touched.withLock { $0 = .now }
    node.listed.withLock { $0 = nil }
    invalidate(link.name, in: link.parent)
    Log.warning(
      "'\(Self.displayPath(link))' was changed here and by another program at once; "
        + "the other's version is kept as '\(name)'")
  }

  /// Neither what the file was opened with nor what is being committed, perhaps once more.
  func isForeign(
    _ version: BlobVersion, _ expected: BlobVersion?, _ written: WrittenBlob
  ) -> Bool { version != expected && version != BlobVersion(written.blob) }

  private static func displayPath(_ link: Link) -> String {
    let above = link.parent.displayPath
    return above.isEmpty ? link.name.description : "\(above)/\(link.name)"
  }

  private func storedBlob(
    _ link: Link, _ directory: VaultDirectory
  ) throws(FileSystemError) -> Found? {
    do throws(Errno) {
      let status = try Syscalls.status(of: link.stored.entry, in: directory.fd.rawValue)
      return Found(stored: link.stored, kind: .blob, status: status)
    } catch {
      if error == .noSuchEntry { return nil }
      throw .system(error)
    }
  }

  /// Which version is stored there; nil for what is no photo.
  func version(
    of found: Found, in directory: VaultDirectory
  ) throws(FileSystemError) -> BlobVersion? {
    guard found.kind == .blob, found.status.st_mode & S_IFMT == S_IFREG else { return nil }
    let file = try openStored(found.stored.entry, in: directory)
    let number = file.rawValue
    return try calling { () throws(Errno) in try BlobVersion(of: number) }
  }
}
