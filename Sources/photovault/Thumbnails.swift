import Glibc
import Platform

/// The pictures that file managers keep of files they have shown.
/// Source: the freedesktop.org Thumbnail Managing Standard.
///
/// A thumbnail is called by the MD5 of its file's URI, and names the URI inside. Here the insides
/// are looked at: that finds those of photos that were renamed or deleted since, whatever way of
/// escaping the URI was hashed in, and costs the less the fewer are new.
struct Thumbnails {
  /// Directories like `~/.cache/thumbnails`.
  let roots: [String]
  let places: MountedPlaces
  /// Only what changed in the cache then, in seconds since 1970.
  let changed: Range<Int>
  let deadline: ContinuousClock.Instant

  private static let greatestDepth = 2  // fail/PROGRAM/

  /// What could not be done, as sentences; none names a photo.
  func remove() -> [String] {
    var uris = PNGText(keyword: "Thumb::URI")
    var problems: [String] = []
    for root in roots {
      do throws(Errno) {
        let directory = try Syscalls.open(FileName(root), flags: O_RDONLY | O_DIRECTORY)
        try remove(in: directory.rawValue, depth: 0, &uris)
      } catch {
        if error == .noSuchEntry { continue }
        let why = error == .timedOut ? "there were too many to look at" : "\(error)"
        problems.append("thumbnails in \(root): \(why)")
      }
    }
    return problems
  }

  private func remove(
    in directory: CInt, depth: Int, _ uris: inout PNGText
  ) throws(Errno) {
    // Another user's directory is not ours to clean, whoever put a link to it here.
    guard try Syscalls.status(directory).st_uid == geteuid() else { return }
    var failure: Errno?
    for entry in try DirectoryEntries.read(directory) {
      if ContinuousClock.now > deadline { throw .timedOut }
      do throws(Errno) {
        if entry.type == UInt8(DT_DIR), depth < Self.greatestDepth {
          let inner = try Syscalls.open(
            entry.name, in: directory, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
          try remove(in: inner.rawValue, depth: depth + 1, &uris)
        } else if entry.isRegular, try isOfMount(entry.name, directory, &uris) {
          try Syscalls.unlink(entry.name, in: directory)
        }
      } catch {
        if error == .timedOut { throw error }
        // Others tidy up here, too.
        if error != .noSuchEntry { failure = error }
      }
    }
    if let failure { throw failure }
  }

  private func isOfMount(
    _ name: FileName, _ directory: CInt, _ uris: inout PNGText
  ) throws(Errno) -> Bool {
    let status = try Syscalls.status(of: name, in: directory)
    // The time of the last change of the inode: no program sets it back.
    guard changed.contains(status.st_ctim.tv_sec), status.st_uid == geteuid() else { return false }
    let file = try SmallFile.open(name, in: directory, flags: O_RDONLY)
    guard let uri = try uris.value(in: file.rawValue) else { return false }
    return places.contain(uri[...])
  }
}

extension Errno {
  fileprivate static let timedOut = Errno(ETIMEDOUT)
}
