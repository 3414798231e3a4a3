import FUSESession
import Glibc
import Platform

/// What desktop programs keep of a mount's photos elsewhere: thumbnails, the list of recent files.
///
/// A note in the user's state directory says what there may be, from the moment a mount stands
/// until all of it is removed. So what a killed process, a power cut or a lack of time left is
/// found by the next command. It is removed after the mount is gone, by processes that hold no
/// key: nothing of this delays a lock.
struct DesktopTraces: Codable, Sendable {
  /// The mount point, in each way that leads to it.
  private var places: [String]
  /// When the mount was made: seconds since 1970.
  private var since: Int
  private let thumbnails: [String]
  private let recentFiles: String

  /// How long one mount's traces may take.
  private static let patience = Duration.seconds(4)
  /// The clock may have been set meanwhile, and a thumbnailer may have finished after the last
  /// lock: so far back is looked while there is time.
  private static let margin = 24 * 3600
  private static let marginPatience = Duration.seconds(1)
  private static let clockStep = 60
  private static let greatestNote = 1 << 16

  // MARK: Notes

  /// Notes down that the mount at `mountPoint` leaves traces from now on.
  static func expect(of mountPoint: String) {
    do throws(CommandError) {
      let directory = try notesDirectory()
      try about(directory) { () throws(Errno) in
        _ = try DirectoryPath.make(directory)
        let folder = try lock(directory)
        var note = try DesktopTraces(mountPoint: mountPoint, now: time(nil))
        if let former = read(name(mountPoint), folder.rawValue) {
          note.since = min(note.since, former.since)
          note.places += former.places.filter { !note.places.contains($0) }
        }
        try note.write(as: name(mountPoint), folder.rawValue)
      }
    } catch {
      Log.warning("thumbnails of these photos will not be removed: \(error.message)")
    }
  }

  private init(mountPoint: String, now: Int) throws(Errno) {
    do throws(CommandError) {
      let home = try Home.userDirectory()
      func directory(_ variable: String, _ standard: String) throws(CommandError) -> String {
        let given = try Home.environment(variable)
        return given?.hasPrefix("/") == true ? given ?? "" : home + standard
      }
      thumbnails = [
        try directory("XDG_CACHE_HOME", "/.cache") + "/thumbnails", home + "/.thumbnails",
      ]
      recentFiles = try directory("XDG_DATA_HOME", "/.local/share") + "/recently-used.xbel"
      places = [mountPoint]
      // Programs start from the home directory as it is called, though a link may lead there.
      if let real = MountPoint.realPath(home), real != home, mountPoint.hasPrefix(real + "/") {
        places.append(home + mountPoint.dropFirst(real.count))
      }
      since = now
    } catch { throw .noSuchEntry }
  }

  private func write(as name: FileName, _ directory: CInt) throws(Errno) {
    let temporary = FileName(name.bytes + Array(".new".utf8))
    try? Syscalls.unlink(temporary, in: directory)
    // Not synced: it is worth no wait for the disk before the folder is ready.
    try SmallFile.write(
      JSONMessage.encode(self), as: temporary, in: directory, durably: false)
    try Syscalls.rename(temporary, in: directory, to: name, in: directory)
  }

  private static func read(_ name: FileName, _ directory: CInt) -> DesktopTraces? {
    guard let bytes = try? SmallFile.read(name, in: directory, atMost: greatestNote) else {
      return nil
    }
    return JSONMessage.decode(DesktopTraces.self, from: bytes)
  }

  private static func name(_ mountPoint: String) -> FileName {
    FileName(MountRegistry.name(mountPoint) + ".json")
  }

  private static func notesDirectory() throws(CommandError) -> String {
    try MountRegistry.stateDirectory() + "/photovault/traces"
  }

  /// One process of a user at a time; the lock goes with the descriptor.
  private static func lock(_ directory: String) throws(Errno) -> FileDescriptor {
    let folder = try Syscalls.open(
      FileName(directory), flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    try Syscalls.lockExclusively(folder.rawValue)
    return folder
  }

  // MARK: Removing

  /// Removes the traces of the mount at `mountPoint`, unless it stands again: then its own end
  /// does. Returns what could not be done, as sentences that name no photo.
  static func remove(of mountPoint: String) -> [String] {
    remove { $0 == name(mountPoint) }
  }

  /// The same for every mount that ended without it.
  static func removeRemains() -> [String] { remove { $0.hasSuffix(".json") } }

  /// How many mounts left traces that are still to be removed.
  static var remainCount: Int {
    guard let path = try? notesDirectory(),
      let folder = try? Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY),
      let entries = try? DirectoryEntries.read(folder.rawValue)
    else { return 0 }
    return entries.map(\.name).filter { $0.hasSuffix(".json") }
      .compactMap { read($0, folder.rawValue) }.filter { !$0.isMounted }.count
  }

  /// Throws where something is left.
  static func finish(_ left: [String]) throws(CommandError) {
    guard !left.isEmpty else { return }
    throw CommandError(
      .failed, "locked, but traces of the photos are left: \(left.joined(separator: "; "))",
      hint: "'photovault lock' tries again")
  }

  private static func remove(where isWanted: (FileName) -> Bool) -> [String] {
    guard let path = try? notesDirectory(), let folder = try? lock(path),
      let entries = try? DirectoryEntries.read(folder.rawValue)
    else { return [] }
    var left: [String] = []
    let deadline = ContinuousClock.now + patience
    for entry in entries where isWanted(entry.name) {
      guard let note = read(entry.name, folder.rawValue), !note.isMounted else { continue }
      let problems = note.remove(until: deadline)
      left += problems.filter { !left.contains($0) }
      if problems.isEmpty { try? Syscalls.unlink(entry.name, in: folder.rawValue) }
    }
    return left
  }

  private func remove(until deadline: ContinuousClock.Instant) -> [String] {
    let mounted = MountedPlaces(places)
    let recent = RecentFiles(path: recentFiles, places: mounted).remove()
    func remove(
      _ changed: Range<Int>, until deadline: ContinuousClock.Instant
    ) -> [String] {
      Thumbnails(roots: thumbnails, places: mounted, changed: changed, deadline: deadline).remove()
    }
    let begin = since - Self.clockStep
    let problems = (recent.map { [$0] } ?? []) + remove(begin..<Int.max, until: deadline)
    if problems.isEmpty {
      let end = min(deadline, .now + Self.marginPatience)
      _ = remove(begin - Self.margin..<begin, until: end)
    }
    return problems
  }

  private var isMounted: Bool {
    guard let table = try? MountTable.current() else { return false }
    return places.contains {
      table.top(at: FileName($0))?.type == MountTable.photovaultType
    }
  }
}
