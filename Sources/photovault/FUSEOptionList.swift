import Platform

/// One `-o` list, taken apart: `idle=10m,password-file=F,allow_other`.
struct FUSEOptionList {
  /// Options of ours as words of the command line.
  private(set) var words: [FileName] = []
  private(set) var passedOn: [String] = []
  private(set) var allowsNonEmpty = false
  /// Whose mount it is, where root makes it.
  private(set) var owner: String?

  /// mount(8)'s own, in /etc/fstab for others to read, or what holds anyway.
  private static let ignored: Set<String> = [
    "rw", "defaults", "auto", "noauto", "user", "nouser", "users", "owner", "group", "nofail",
    "_netdev", "relatime", "norelatime", "strictatime", "nodiratime", "lazytime", "nolazytime",
    "default_permissions", "auto_unmount",
  ]
  /// What libfuse and the kernel understand.
  private static let fuse: Set<String> = [
    "allow_other", "allow_root", "dev", "nodev", "suid", "nosuid", "exec", "noexec", "atime",
    "noatime", "sync", "async", "dirsync", "max_read",
  ]

  /// `known`: the options of the command, by their long names.
  init(_ lists: [String], known: [OptionSpec]) throws(CommandError) {
    for option in lists.flatMap(Self.split) where !option.isEmpty {
      let name = String(option.prefix { $0 != "=" })
      let longName = name.replacing("_", with: "-")
      if known.contains(where: { $0.name == longName && $0.name.count > 1 }) {
        words.append(FileName("--" + longName + option.dropFirst(name.count)))
      } else if name == "ro" {
        words.append(FileName("--read-only"))
      } else if name == "setuid" {
        owner = String(option.dropFirst(name.count + 1))
      } else if name == "nonempty" {
        allowsNonEmpty = true
      } else if Self.fuse.contains(name) {
        passedOn.append(option)
      } else if !Self.ignored.contains(name), !name.hasPrefix("x-"), !name.hasPrefix("comment") {
        throw .usage("unknown option -o \(name)", "mount")
      }
    }
  }

  /// At commas, unless a backslash stands before one.
  private static func split(_ list: String) -> [String] {
    var options = [""]
    var isEscaped = false
    for character in list {
      if isEscaped || (character != "," && character != "\\") {
        options[options.count - 1].append(character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else {
        options.append("")
      }
    }
    return options
  }
}
