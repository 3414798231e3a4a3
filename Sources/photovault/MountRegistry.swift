import Glibc
import Platform

/// What is known of a mount while its process lives, and until somebody cleans up behind it.
struct MountRecord: Codable, Sendable {
  let user: String
  let mountPoint: String
  let vault: String
  let process: Int32
  /// Seconds since 1970.
  let since: Int
  let mountPointWasMade: Bool
  /// How long a lock waits for programs that are writing.
  let lockGraceSeconds: Int
}

/// The mounts of this user: a record and a control socket each, in a directory nobody else may
/// enter.
struct MountRegistry: Sendable {
  let path: String

  /// Where new mounts are written down: `$XDG_RUNTIME_DIR/photovault`, else the like in
  /// `/run/user/UID`, else in `~/.local/state`. Made as needed.
  static func own() throws(CommandError) -> MountRegistry {
    for parent in try runtimeDirectories() where isOwnDirectory(parent, privately: false) {
      let path = parent + "/photovault"
      if mkdir(path, 0o700) == 0 || errno == EEXIST, isOwnDirectory(path, privately: true) {
        // On a full disk it is found in this environment only.
        try? MountRegistry.state().notePlace(path)
        return MountRegistry(path: path)
      }
    }
    return try state()
  }

  /// The one that is the same in every environment. Made as needed.
  static func state() throws(CommandError) -> MountRegistry {
    let path = try stateDirectory() + "/photovault"
    try MountPoint.makeDirectories(path)
    guard isOwnDirectory(path, privately: true) else {
      throw CommandError(.failed, "\(path) must be this user's alone", hint: "chmod 700 \(path)")
    }
    return MountRegistry(path: path)
  }

  /// Every place a mount of this user may be written down: it may have been made with another
  /// environment, such as at boot.
  static func all() throws(CommandError) -> [MountRegistry] {
    let parents = try runtimeDirectories() + [stateDirectory()]
    var seen: Set<String> = []
    return (parents.map { $0 + "/photovault" } + ((try? state())?.notedPlaces() ?? []))
      .filter { isOwnDirectory($0, privately: true) && seen.insert($0).inserted }
      .map { MountRegistry(path: $0) }
  }

  private static let placePrefix = "registry-"

  /// Writes down where else mounts of this user are written down.
  private func notePlace(_ path: String) throws(CommandError) {
    if notedPlaces().contains(path) { return }
    try about(self.path) { () throws(Errno) in
      let directory = try open()
      let name = Self.placePrefix + Self.name(path)
      try SmallFile.replace(
        FileName(name), with: Array(path.utf8), in: directory.rawValue,
        temporary: FileName("\(name).\(getpid())"), overwriting: true)
    }
  }

  private func notedPlaces() -> [String] {
    guard let directory = try? open(),
      let entries = try? DirectoryEntries.read(directory.rawValue)
    else { return [] }
    return entries.map(\.name).filter { $0.hasPrefix("registry-") }.compactMap { name in
      (try? SmallFile.read(name, in: directory.rawValue, atMost: Int(PATH_MAX)))
        .flatMap { $0.map { String(decoding: $0, as: UTF8.self) } }
    }
  }

  func records() -> [MountRecord] {
    guard let directory = try? open(),
      let entries = try? DirectoryEntries.read(directory.rawValue)
    else { return [] }
    return entries.map(\.name).filter { $0.hasSuffix(".json") }
      .compactMap { read($0, in: directory.rawValue) }
      .sorted { $0.mountPoint < $1.mountPoint }
  }

  func add(_ record: MountRecord) throws(CommandError) {
    let name = Self.name(record.mountPoint) + ".json"
    try about("\(path)/\(name)") { () throws(Errno) in
      let directory = try open()
      let temporary = FileName(name + ".new")
      try? Syscalls.unlink(temporary, in: directory.rawValue)
      try SmallFile.replace(
        FileName(name), with: JSONMessage.encode(record), in: directory.rawValue,
        temporary: temporary, overwriting: true)
    }
  }

  /// The record and the socket.
  func remove(_ mountPoint: String) {
    let name = path + "/" + Self.name(mountPoint)
    unlink(name + ".json")
    unlink(name + ".socket")
  }

  func record(of mountPoint: String) -> MountRecord? {
    guard let directory = try? open() else { return nil }
    return read(FileName(Self.name(mountPoint) + ".json"), in: directory.rawValue)
  }

  /// The name of a mount point's control socket, in `path`.
  static func socketName(_ mountPoint: String) -> String { name(mountPoint) + ".socket" }

  private func read(_ name: FileName, in directory: CInt) -> MountRecord? {
    guard let bytes = try? SmallFile.read(name, in: directory, atMost: Self.greatestRecord)
    else { return nil }
    return JSONMessage.decode(MountRecord.self, from: bytes)
  }

  func open() throws(Errno) -> FileDescriptor {
    try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  private static let greatestRecord = 1 << 16

  /// FNV-1a: a file name for any text. One user's mounts are few.
  static func name(_ mountPoint: String) -> String {
    let hash = mountPoint.utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { hash, byte in
      (hash ^ UInt64(byte)) &* 0x100_0000_01b3
    }
    return String(hash, radix: 16)
  }

  private static func runtimeDirectories() throws(CommandError) -> [String] {
    var directories: [String] = []
    if let given = try Home.environment("XDG_RUNTIME_DIR"), given.hasPrefix("/") {
      directories.append(given)
    }
    return directories + ["/run/user/\(getuid())"]
  }

  static func stateDirectory() throws(CommandError) -> String {
    if let given = try Home.environment("XDG_STATE_HOME"), given.hasPrefix("/") { return given }
    return try Home.userDirectory() + "/.local/state"
  }

  private static func isOwnDirectory(_ path: String, privately: Bool) -> Bool {
    var status = stat()
    return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
      && status.st_uid == getuid() && (!privately || status.st_mode & 0o77 == 0)
  }
}
