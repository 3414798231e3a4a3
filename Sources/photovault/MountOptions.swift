/// What `mount` is told about the mount itself; long options and their `-o` spelling mean the same.
struct MountOptions: Codable, Equatable, Sendable {
  /// Seconds without use until the folder locks while no program has a file of it open; 0: never.
  var idleSeconds = 600
  /// The same, whoever has a file open.
  var forcedIdleSeconds = 0
  var isReadOnly = false
  var locksWithScreen = true
  /// Count blanking alone as a screen lock.
  var locksWhenBlank = false
  var locksOnSuspend = true
  /// How long a lock waits for programs that are writing.
  var lockGraceSeconds = 3
  var excludesFromBackup = false
  var keepsThumbnails = false
  /// Leave the mode of a mount point that existed before as it is.
  var keepsMountPointMode = false
  var allowsNonEmpty = false
  /// libfuse's and the kernel's own.
  var passedOn: [String] = []

  static let specs: [OptionSpec] = [
    OptionSpec(
      "idle", value: "DURATION",
      help: "lock when unused for: 90s, 1h, 0 = never (10m)"),
    OptionSpec(
      "idle-force", value: "DURATION", help: "... even if a program has a file open (never)"),
    OptionSpec("on-screen-lock", value: "lock|ignore", help: "when the screen locks"),
    OptionSpec(
      "screen-lock-means", value: "lock|blank", help: "whether blanking alone is a screen lock"),
    OptionSpec("on-suspend", value: "lock|ignore", help: "when the machine suspends"),
    OptionSpec(
      "lock-grace", value: "DURATION", help: "time to finish writing before a lock (3s)"),
    OptionSpec("read-only", help: "nothing in the folder can be changed"),
    OptionSpec("exclude-from-backup", help: "ask backup programs to leave the folder out"),
    OptionSpec("keep-thumbnails", help: "keep thumbnails of these photos at lock"),
    OptionSpec(
      "keep-mount-point-mode", help: "leave the mount point writable while locked"),
  ]

  private static let greatestLockGrace = 60

  init() {}

  init(_ arguments: Arguments) throws(CommandError) {
    idleSeconds = try Self.seconds(arguments, "idle") ?? idleSeconds
    forcedIdleSeconds = try Self.seconds(arguments, "idle-force") ?? forcedIdleSeconds
    isReadOnly = arguments.has("read-only")
    keepsMountPointMode = arguments.has("keep-mount-point-mode")
    lockGraceSeconds = try Self.seconds(arguments, "lock-grace") ?? lockGraceSeconds
    guard lockGraceSeconds <= Self.greatestLockGrace else {
      throw CommandError(
        .usage, "--lock-grace is at most \(Self.greatestLockGrace)s",
        hint: "programs could write to a locked folder for so long; before sleep it is 3s at "
          + "most, as the system grants 5s")
    }
    locksWithScreen = try Self.choice(arguments, "on-screen-lock", "lock", "ignore") ?? true
    locksWhenBlank = try Self.choice(arguments, "screen-lock-means", "blank", "lock") ?? false
    locksOnSuspend = try Self.choice(arguments, "on-suspend", "lock", "ignore") ?? true
    excludesFromBackup = arguments.has("exclude-from-backup")
    keepsThumbnails = arguments.has("keep-thumbnails")
  }

  /// nil without the option, else whether it has its first value.
  private static func choice(
    _ arguments: Arguments, _ option: String, _ yes: String, _ no: String
  ) throws(CommandError) -> Bool? {
    guard let value = arguments.value(of: option) else { return nil }
    guard value == yes || value == no else {
      throw .usage("--\(option) is \(yes) or \(no), not \(value)", "mount")
    }
    return value == yes
  }

  private static func seconds(
    _ arguments: Arguments, _ option: String
  ) throws(CommandError) -> Int? {
    guard let text = arguments.value(of: option) else { return nil }
    guard let seconds = seconds(text) else {
      throw .usage("--\(option) is a duration such as 90s, 10m or 1h, not \(text)", "mount")
    }
    return seconds
  }

  /// `90s`, `10m`, `1h`; `0` needs no unit.
  static func seconds(_ text: String) -> Int? {
    if text == "0" { return 0 }
    let units: [Character: Int] = ["s": 1, "m": 60, "h": 3600]
    guard let unit = text.last.flatMap({ units[$0] }) else { return nil }
    let digits = text.dropLast()
    guard !digits.isEmpty, digits.utf8.allSatisfy({ (48...57).contains($0) }),
      let number = Int(digits)
    else { return nil }
    let (seconds, overflows) = number.multipliedReportingOverflow(by: unit)
    return overflows ? nil : seconds
  }
}
