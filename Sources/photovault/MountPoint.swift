import Glibc
import Platform

/// The directory that shows the photos while unlocked.
///
/// One that `mount` makes is removed at unmount. One that was there is left with mode 0500, so
/// that no program saves plaintext beneath it while locked; its former mode is not kept: the
/// mount covers it, so it would only ever show while locked. Both are given that mode through a
/// descriptor as soon as the mount stands, so it holds whatever becomes of this process.
struct MountPoint: ~Copyable {
  private static let lockedMode: mode_t = 0o500
  private static let openMode: mode_t = 0o700

  let path: String
  /// Whether a mount made the directory, this one or one that ended without removing it.
  let wasMade: Bool
  private let directory: FileDescriptor
  /// nil: the mode is not to be touched.
  private let formerMode: mode_t?
  private var isMounted = false

  /// Makes `path` (see `resolve`) ready to be mounted on. `wasMadeBefore`: by a mount that ended
  /// without removing it.
  init(_ path: String, _ options: MountOptions, wasMadeBefore: Bool) throws(CommandError) {
    let made = mkdir(path, Self.openMode) == 0
    if !made, errno != EEXIST { throw Self.unusable(path, .current) }
    let (number, mode) = try Self.open(path, mayBeFilled: options.allowsNonEmpty)
    directory = FileDescriptor(owning: number)
    self.path = path
    wasMade = made || wasMadeBefore
    if options.keepsMountPointMode && !wasMade {
      formerMode = nil
    } else if fchmod(self.directory.rawValue, Self.openMode) == 0 {
      formerMode = mode
    } else {
      // Not ours: the most that can be done is to say so.
      if access(path, W_OK) == 0 {
        Log.warning("\(path) stays writable while locked: \(Errno.current)")
      }
      formerMode = nil
    }
  }

  /// Once the mount is gone, or could not be made: removes what was made; a directory on which
  /// nothing was mounted gets its mode back.
  deinit {
    if wasMade {
      rmdir(path)
    } else if !isMounted, let formerMode {
      fchmod(directory.rawValue, formerMode)
    }
  }

  /// Once the mount stands.
  mutating func protect() {
    isMounted = true
    if formerMode != nil { fchmod(directory.rawValue, Self.lockedMode) }
  }

  static func unusable(_ path: String, _ why: String, hint: String) -> CommandError {
    CommandError(.mountPointUnusable, "cannot mount at \(path): \(why)", hint: hint)
  }

  static func unusable(_ path: String, _ error: Errno) -> CommandError {
    let cause = CommandError("cannot mount at \(path)", error)
    return CommandError(.mountPointUnusable, cause.message, hint: cause.hint)
  }

  /// A descriptor of the directory, for the caller to close, and its mode.
  private static func open(
    _ path: String, mayBeFilled: Bool
  ) throws(CommandError) -> (CInt, mode_t) {
    do throws(Errno) {
      let directory = try Syscalls.open(
        FileName(path), flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
      let mode = try Syscalls.status(directory.rawValue).st_mode & 0o7777
      let entries = mayBeFilled ? [] : try DirectoryEntries.read(directory.rawValue)
      if entries.isEmpty { return (directory.release(), mode) }
    } catch {
      guard error == .notADirectory || error == .tooManySymbolicLinks else {
        throw unusable(path, error)
      }
      throw unusable(path, "it is not a directory", hint: "choose another one, or a new name")
    }
    throw unusable(
      path, "it is not empty",
      hint: "choose another directory, or give -o nonempty to cover what is in it")
  }
}
