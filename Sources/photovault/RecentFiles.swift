import Glibc
import Platform

/// `recently-used.xbel`, the list of files that programs opened lately. Other programs replace it
/// whole at any moment, without a lock.
struct RecentFiles {
  /// Absolute.
  let path: String
  let places: MountedPlaces

  private static let temporaryName = FileName(".recently-used.xbel.photovault")
  private static let greatestSize = 64 << 20
  private static let tries = 10

  /// Takes out the entries of these places. What could not be done, as a sentence that names no
  /// photo. One process at a time, see `DesktopTraces`.
  func remove() -> String? {
    do throws(Errno) {
      for _ in 0..<Self.tries {
        switch try removeOnce() {
        case .done: return nil
        case .overtaken: continue
        case .refused(let why): return "\(path): \(why)"
        }
      }
      return "\(path): another program writes it all the time"
    } catch {
      return error == .noSuchEntry ? nil : "\(path): \(error)"
    }
  }

  private enum Outcome {
    case done
    /// Another program wrote the file meanwhile.
    case overtaken
    case refused(String)
  }

  private func removeOnce() throws(Errno) -> Outcome {
    let slash = path.lastIndex(of: "/") ?? path.startIndex
    let name = FileName(String(path[path.index(after: slash)...]))
    let directory = try Syscalls.open(
      FileName(String(path[..<slash]) + "/"), flags: O_RDONLY | O_DIRECTORY)
    // A rest of one that was killed.
    try? Syscalls.unlink(Self.temporaryName, in: directory.rawValue)

    let status = try Syscalls.status(of: name, in: directory.rawValue)
    // A link to the list, or one to /dev/null that keeps it from being written.
    if status.st_mode & S_IFMT == mode_t(Glibc.S_IFLNK), let target = Self.target(of: path) {
      return try RecentFiles(path: target, places: places).removeOnce()
    }
    guard status.st_mode & S_IFMT == mode_t(Glibc.S_IFREG), status.st_uid == geteuid() else {
      return .done
    }
    guard status.st_size <= Self.greatestSize else { return .refused("it is too long") }
    let file = try SmallFile.open(name, in: directory.rawValue, flags: O_RDONLY)
    let read = try Syscalls.status(file.rawValue)
    guard let document = try SmallFile.read(file, atMost: Int(status.st_size)) else {
      return .overtaken
    }
    guard let rest = BookmarkFile.without(places, document) else {
      // Half written, or not of this form.
      if !BookmarkFile.mentions(places, document) { return .done }
      return .refused("it is damaged and was left as it is")
    }
    if rest == document { return .done }
    try SmallFile.write(rest, as: Self.temporaryName, in: directory.rawValue, durably: true)
    do throws(Errno) {
      let new = try Syscalls.open(
        Self.temporaryName, in: directory.rawValue, flags: O_RDONLY | O_NOFOLLOW)
      try Syscalls.setMode(new.rawValue, read.st_mode & 0o7777)
      let isDone = try put(
        try Syscalls.status(new.rawValue), inPlaceOf: read, as: name, directory.rawValue)
      try? Syscalls.unlink(Self.temporaryName, in: directory.rawValue)
      return isDone ? .done : .overtaken
    } catch {
      try? Syscalls.unlink(Self.temporaryName, in: directory.rawValue)
      throw error
    }
  }

  /// Where a link leads in the end; nil if nowhere.
  private static func target(of path: String) -> String? {
    guard let found = realpath(path, nil) else { return nil }
    defer { free(found) }
    return String(cString: found)
  }

  /// False if the file was no longer `former`: then the newest of the others' versions stands.
  ///
  /// The two files change places, so that what was replaced is in our hands. If that is not what
  /// was read it goes back; if yet another version came in between, that one goes back.
  private func put(
    _ new: stat, inPlaceOf former: stat, as name: FileName, _ directory: CInt
  ) throws(Errno) -> Bool {
    var expected = former
    var placed = new
    var isFirst = true
    while true {
      do throws(Errno) {
        try Syscalls.rename(
          Self.temporaryName, in: directory, to: name, in: directory, flags: .exchange)
      } catch {
        guard isFirst, error == .invalidArgument || error == .noSystemCall else { throw error }
        // A file system without exchanges: the next best.
        guard Self.same(try Syscalls.status(of: name, in: directory), former) else { return false }
        try Syscalls.rename(Self.temporaryName, in: directory, to: name, in: directory)
        return true
      }
      let replaced = try Syscalls.status(of: Self.temporaryName, in: directory)
      if Self.same(replaced, expected) { return isFirst }
      expected = placed
      placed = replaced
      isFirst = false
    }
  }

  /// Not by the time of change: a rename changes that.
  private static func same(_ one: stat, _ other: stat) -> Bool {
    one.st_dev == other.st_dev && one.st_ino == other.st_ino && one.st_size == other.st_size
      && one.st_mtim.tv_sec == other.st_mtim.tv_sec
      && one.st_mtim.tv_nsec == other.st_mtim.tv_nsec
  }
}
