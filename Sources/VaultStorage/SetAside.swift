import Glibc
import Platform

/// `.photovault-damaged/N/` beside `vault.json`: what the N-th repair could not put right. Entries
/// lie there under their stored path and with the `directory.id` that their names need, so that
/// nothing is lost; `note.txt` says what is there and why. No mount shows or touches it.
final class SetAside {
  private let root: CInt
  private var run: (folder: SharedDescriptor, number: Int)?
  private var noteSize: Int64 = 0

  private static let note = FileName("note.txt")
  private static let greatestID = 4096
  private static let introduction = """
    What 'photovault check --repair' could not put right. Nothing here shows in the mounted folder,
    and photovault neither changes nor deletes it while the vault exists. Each line below names the
    stored path that something had, from the vault's directory on, and what became of it. When you
    have put back a good copy from a backup, or need none, this folder can be deleted.


    """

  /// `root` is the vault's directory.
  init(root: CInt) { self.root = root }

  /// Where this run's things are, in the vault's directory.
  private func folderName(_ number: Int) -> String { "\(BlobName.setAside)/\(number)" }

  /// Moves the entry at `path`, whole. Returns where to.
  func move(_ path: [FileName], reason: String) throws(StorageError) -> String {
    guard let entry = path.last else { throw .system(.invalidArgument) }
    let (source, target) = try folder(for: path.dropLast())
    if let companion = BlobName.companion(ofEntry: entry) {
      try copy(companion, from: source.rawValue, to: target.rawValue)
    }
    try StorageError.onDisk { () throws(Errno) in
      try Self.rename(entry, from: source.rawValue, to: target.rawValue)
      try Syscalls.synchronize(target.rawValue)
    }
    return try noted(path, reason)
  }

  /// Keeps bytes that belonged to the entry at `path`. Returns where.
  func keep(
    _ bytes: [UInt8], as name: FileName, of path: [FileName], reason: String
  ) throws(StorageError) -> String {
    let (_, target) = try folder(for: path.dropLast())
    try StorageError.onDisk { () throws(Errno) in
      try SmallFile.write(bytes, as: name, in: target.rawValue, durably: true)
    }
    return try noted(path, "\(reason): kept as \(name)")
  }

  /// Keeps a copy of the `directory.id` in the directory at `path`; moves what is none.
  func keepID(of path: [FileName]) throws(StorageError) {
    let (source, target) = try folder(for: path[...])
    try StorageError.onDisk { () throws(Errno) in
      let isKept = try Syscalls.exists(DirectoryID.fileName, in: target.rawValue)
      guard !isKept, try Syscalls.exists(DirectoryID.fileName, in: source.rawValue) else { return }
      try Self.rename(DirectoryID.fileName, from: source.rawValue, to: target.rawValue)
    }
    _ = try noted(path + [DirectoryID.fileName], "replaced")
  }

  /// Writes down what was done to the entry at `path`. Returns this run's folder.
  func noted(_ path: [FileName], _ what: String) throws(StorageError) -> String {
    let run = try begin()
    let place = FileName(Array(path.map(\.bytes).joined(separator: [0x2F])))
    let text = (noteSize == 0 ? Self.introduction : "") + "\(place): \(what)\n"
    let bytes = Array(text.utf8)
    try StorageError.onDisk { () throws(Errno) in
      let file = try Syscalls.open(
        Self.note, in: run.folder.rawValue, flags: O_WRONLY | O_CREAT | O_NOFOLLOW, mode: 0o600)
      try bytes.withBytes { bytes throws(Errno) in
        try Syscalls.write(file.rawValue, bytes, at: noteSize)
      }
      try Syscalls.synchronize(file.rawValue)
    }
    noteSize += Int64(bytes.count)
    return folderName(run.number)
  }

  /// Everything below `.photovault-damaged` but notes and ids.
  static func count(in root: CInt) throws(StorageError) -> Int {
    try StorageError.onDisk { () throws(Errno) in
      try count(BlobName.setAside, in: root, depth: 0)
    }
  }

  private static func count(
    _ name: FileName, in parent: CInt, depth: Int
  ) throws(Errno) -> Int {
    let folder: FileDescriptor
    do throws(Errno) {
      folder = try Syscalls.open(
        name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    } catch {
      if [.noSuchEntry, .notADirectory, .tooManySymbolicLinks].contains(error) { return 0 }
      throw error
    }
    let number = folder.rawValue
    var count = 0
    for entry in try DirectoryEntries.read(number) {
      if entry.type == UInt8(DT_DIR) {
        count += try self.count(entry.name, in: number, depth: depth + 1)
      } else if entry.name != DirectoryID.fileName, depth != 1 || entry.name != note,
        BlobName.hash(ofCompanion: entry.name) == nil
      {
        count += 1
      }
    }
    return count
  }

  /// This run's folder, made when it is first needed.
  private func begin() throws(StorageError) -> (folder: SharedDescriptor, number: Int) {
    if let run { return run }
    let made = try StorageError.onDisk { () throws(Errno) in
      let all = SharedDescriptor(try Self.directory(BlobName.setAside, in: root))
      var number = 1
      while try Syscalls.exists(FileName("\(number)"), in: all.rawValue) { number += 1 }
      let folder = SharedDescriptor(
        try Self.directory(FileName("\(number)"), in: all.rawValue))
      try Syscalls.synchronize(all.rawValue)
      return (folder: folder, number: number)
    }
    run = made
    return made
  }

  /// The directory at `path` in the vault and its like in this run's folder, with what names need.
  private func folder(
    for path: ArraySlice<FileName>
  ) throws(StorageError) -> (source: SharedDescriptor, target: SharedDescriptor) {
    var target = try begin().folder
    return try StorageError.onDisk { () throws(Errno) in
      var source = SharedDescriptor(try Syscalls.duplicate(root))
      try Self.copyID(from: source.rawValue, to: target.rawValue)
      for name in path {
        source = SharedDescriptor(
          try Syscalls.open(
            name, in: source.rawValue, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW))
        target = SharedDescriptor(try Self.directory(name, in: target.rawValue))
        try Self.copyID(from: source.rawValue, to: target.rawValue)
      }
      return (source, target)
    }
  }

  /// Opens the directory, made if need be.
  private static func directory(
    _ name: FileName, in parent: CInt
  ) throws(Errno) -> FileDescriptor {
    do throws(Errno) { try Syscalls.makeDirectory(name, in: parent, mode: 0o700) } catch {
      if error != .exists { throw error }
    }
    return try Syscalls.open(name, in: parent, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  }

  private static func copyID(from source: CInt, to target: CInt) throws(Errno) {
    guard
      let bytes = try SmallFile.read(DirectoryID.fileName, in: source, atMost: greatestID),
      try !Syscalls.exists(DirectoryID.fileName, in: target)
    else { return }
    try SmallFile.write(bytes, as: DirectoryID.fileName, in: target, durably: true)
  }

  private func copy(
    _ companion: FileName, from source: CInt, to target: CInt
  ) throws(StorageError) {
    try StorageError.onDisk { () throws(Errno) in
      guard
        let bytes = try SmallFile.read(companion, in: source, atMost: Self.greatestID),
        try !Syscalls.exists(companion, in: target)
      else { return }
      try SmallFile.write(bytes, as: companion, in: target, durably: true)
    }
  }

  private static func rename(_ name: FileName, from source: CInt, to target: CInt) throws(Errno) {
    do throws(Errno) {
      try Syscalls.rename(name, in: source, to: name, in: target, flags: .noReplace)
    } catch {
      guard error == .invalidArgument || error == .noSystemCall else { throw error }
      if try Syscalls.exists(name, in: target) { throw .exists }
      try Syscalls.rename(name, in: source, to: name, in: target)
    }
  }
}

extension BlobName {
  /// The companion of a stored name in long form, also of a conflict copy; nil for a short one.
  static func companion(ofEntry entry: FileName) -> FileName? {
    let stem = entry.bytes.prefix(hashCharacterCount + long.count)
    guard looksLong(stem), self.hash(ofCompanion: entry) == nil else { return nil }
    return FileName(entry.bytes.prefix(hashCharacterCount) + companionSuffix)
  }
}
