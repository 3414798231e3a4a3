import FUSESession
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
    let (number, mode) = try Self.open(
      path, isNew: made, mayBeFilled: options.allowsNonEmpty)
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
      if isInPlace { rmdir(path) }
    } else if !isMounted, let formerMode {
      fchmod(directory.rawValue, formerMode)
    }
  }

  /// Calls `mount` with what to mount on, and protects the directory once the mount stands.
  ///
  /// Who can write to a directory above may put something else in this one's place meanwhile: a link,
  /// say. Where none of the `new` mounts is on the very directory that was looked at, under the name
  /// that the user gave, this throws: the caller lets go of the mount unanswered.
  mutating func mount(
    expecting new: NewMounts, _ mount: (FileName) throws(CommandError) -> Void
  ) throws(CommandError) {
    try mount(target)
    guard try new.contains(FileName(path)), isInPlace else { throw Self.replaced(path) }
    isMounted = true
    if formerMode != nil { fchmod(directory.rawValue, Self.lockedMode) }
  }

  /// Root's mount(2) gets the open directory, whatever its path leads to by then. For others
  /// fusermount3 mounts, which takes paths of its own process only.
  private var target: FileName {
    getuid() == 0 && geteuid() == 0
      ? FileName("/proc/\(getpid())/fd/\(directory.rawValue)") : FileName(path)
  }

  /// Whether the directory that was opened still has the name that it was opened by.
  private var isInPlace: Bool { Self.name(of: directory.rawValue) == FileName(path) }

  /// What the kernel calls an open directory now. Source: proc_pid_fd(5).
  private static func name(of directory: CInt) -> FileName? {
    try? Syscalls.readSymbolicLink(FileName("/proc/self/fd/\(directory)"), in: AT_FDCWD)
  }

  private static func replaced(_ path: String) -> CommandError {
    unusable(
      path, "something else was put in its place meanwhile",
      hint: "others can write to a directory above it: choose a place that only you can change")
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
    _ path: String, isNew: Bool, mayBeFilled: Bool
  ) throws(CommandError) -> (CInt, mode_t) {
    let directory = try opened(path)
    let number = directory.rawValue
    guard name(of: number) == FileName(path) else { throw replaced(path) }
    let status: stat
    let entries: [RawEntry]
    do throws(Errno) {
      status = try Syscalls.status(number)
      entries = mayBeFilled ? [] : try DirectoryEntries.read(number)
    } catch { throw unusable(path, error) }
    guard isTrusted(status.st_uid, isNew: isNew) else {
      throw unusable(
        path, "it belongs to another user",
        hint: "its owner could read what programs save there while it is locked: choose your own")
    }
    guard entries.isEmpty else {
      throw unusable(
        path, "it is not empty",
        hint: "choose another directory, or give -o nonempty to cover what is in it")
    }
    return (directory.release(), status.st_mode & 0o7777)
  }

  private static func opened(_ path: String) throws(CommandError) -> FileDescriptor {
    do throws(Errno) {
      return try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch {
      guard error == .notADirectory || error == .tooManySymbolicLinks else {
        throw unusable(path, error)
      }
      throw unusable(path, "it is not a directory", hint: "choose another one, or a new name")
    }
  }

  /// One that was made just now is ours, unless it was replaced; else root's own will do, and root
  /// may choose any.
  private static func isTrusted(_ owner: uid_t, isNew: Bool) -> Bool {
    owner == geteuid() || (!isNew && (owner == 0 || geteuid() == 0))
  }
}
