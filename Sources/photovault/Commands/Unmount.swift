import FUSESession
import Glibc
import Platform
import SecretStore

/// `photovault unmount USER|MOUNTPOINT`: in order; returns when all is saved and the keys are gone.
enum UnmountCommand: Command {
  static let name = "unmount"
  static let summary = "lock a vault in order"
  static let usage = "USER|MOUNTPOINT"
  static let options = [
    OptionSpec("all", help: "every mounted vault"),
    OptionSpec("force", help: "cut off programs that hold files; what they wrote is saved"),
  ]

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let force = arguments.has("force")
    if arguments.has("all") {
      _ = try arguments.positionals(0...0, of: self)
      return try MountedVaults.end(try MountedVaults.all(), force: force)
    }
    let word = try arguments.positionals(1...1, of: self)[0]
    return try MountedVaults.end(try MountedVaults.named(word), force: force)
  }
}

/// `photovault lock [USER...]`: what a screen lock does.
enum Lock: Command {
  static let name = "lock"
  static let summary = "lock vaults at once, whoever holds files; no name: all of them"
  static let usage = "[USER...]"

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let words = arguments.positionals
    // Before looking for mounts: one that comes up meanwhile finds it. A full disk must not keep the
    // others from being locked.
    var failure: CommandError?
    for user in words.isEmpty ? [nil] : words.map(Optional.some) {
      do throws(CommandError) { try LockMark.leave(for: user) } catch { failure = error }
    }
    var mounts = words.isEmpty ? try MountedVaults.all() : []
    for word in words {
      do throws(CommandError) { mounts += try MountedVaults.named(word) } catch {
        // Locked already, unless it is the name of nobody.
        guard try isAccount(word, arguments) else { throw error }
      }
    }
    let code = try MountedVaults.end(mounts, force: true)
    if words.isEmpty { try DesktopTraces.finish(DesktopTraces.removeRemains()) }
    if let failure { throw failure }
    return code
  }
}

extension Lock {
  private static func isAccount(
    _ word: String, _ arguments: Arguments
  ) throws(CommandError) -> Bool {
    guard let name = try? Accounts.name(word) else { return false }
    let kind = try? Accounts.store(try Home(arguments)).kind(of: name)
    return kind.flatMap { $0 } != nil
  }
}

/// The mounts of this user, by their records.
enum MountedVaults {
  struct Place {
    let record: MountRecord
    let registry: MountRegistry
  }

  static func all() throws(CommandError) -> [Place] {
    var places: [Place] = []
    for registry in try MountRegistry.all() {
      places += registry.records().map { Place(record: $0, registry: registry) }
    }
    return places
  }

  /// `word`: a user name, or a mount point. Throws where nothing is mounted.
  static func named(_ word: String) throws(CommandError) -> [Place] {
    let all = try all()
    let byUser = all.filter { $0.record.user == word }
    guard byUser.count < 2 else {
      throw CommandError(
        .failed, "'\(word)' is mounted more than once",
        hint: "say which: \(byUser.map(\.record.mountPoint).joined(separator: ", "))")
    }
    if !byUser.isEmpty { return byUser }
    if let path = try? MountPoint.resolve(word, user: "") {
      let byPlace = all.filter { $0.record.mountPoint == path }
      if !byPlace.isEmpty { return byPlace }
      // A dead one that nobody wrote down, or whose record is lost.
      if MountPoint.isDead(path) {
        try MountPoint.clearStaleMount(path)
        try DesktopTraces.finish(DesktopTraces.remove(of: path))
        return []
      }
    }
    throw CommandError(
      .failed, "nothing is mounted as '\(word)'", hint: "'photovault status' lists what is")
  }

  /// Tries all, reports each failure, and returns the first one's exit code.
  static func end(_ places: [Place], force: Bool) throws(CommandError) -> ExitCode {
    var first: CommandError?
    for place in places {
      do throws(CommandError) { try end(place, force: force) } catch {
        if let earlier = first { Terminal.error(earlier) }
        first = error
      }
    }
    if let first { throw first }
    return .done
  }

  private static func end(_ place: Place, force: Bool) throws(CommandError) {
    try endMount(place, force: force)
    // The mount's watcher does it as well: whoever comes second waits and finds it done.
    try DesktopTraces.finish(DesktopTraces.remove(of: place.record.mountPoint))
  }

  private static func endMount(_ place: Place, force: Bool) throws(CommandError) {
    if let mount = LiveMount(place.record, place.registry) {
      return try force ? mount.lock() : mount.unmount()
    }
    // Its process was killed: what it left is cleared.
    try MountPoint.clearStaleMount(place.record.mountPoint)
    if place.record.mountPointWasMade { rmdir(place.record.mountPoint) }
    place.registry.remove(place.record.mountPoint)
  }
}
