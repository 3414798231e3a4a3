import Glibc
import Platform
import Synchronization

/// A directory that is imported, or whose files are. For any thread at once.
///
/// What is in it is reached through its descriptor, and that through the one above: links that
/// somebody puts into the path meanwhile lead nowhere.
///
/// Locks: `state`, then that of the directory above; held while it is opened.
final class SourceDirectory: Sendable {
  typealias OpenDirectory = ExportTarget.OpenDirectory

  /// For messages; the topmost one is opened by it.
  let path: FileName
  let parent: SourceDirectory?
  /// Where its files go; nil where their dates say that.
  let target: TargetDirectory?
  /// Whether the directory itself is imported: false for the contents of one.
  let isImported: Bool
  let status: stat
  /// Something in it was imported and then removed.
  let lostSomething = Atomic(false)
  private let state = ConditionLock(State())

  private struct State {
    /// Who works in it keeps it open.
    weak var opened: OpenDirectory?
  }

  init(
    path: FileName, parent: SourceDirectory?, target: TargetDirectory?, isImported: Bool,
    status: stat
  ) {
    self.path = path
    self.parent = parent
    self.target = target
    self.isImported = isImported
    self.status = status
  }

  /// Throws `.changed` where another directory has its name by now.
  func open() throws(TransferFailure) -> OpenDirectory {
    try state.withLock { state throws(TransferFailure) in
      if let known = state.opened { return known }
      let descriptor = try openNow()
      let number = descriptor.rawValue
      let now = try TransferFailure.onOutside { () throws(Errno) in
        try Syscalls.status(number)
      }
      guard now.st_dev == status.st_dev, now.st_ino == status.st_ino else { throw .changed }
      let opened = OpenDirectory(descriptor)
      state.opened = opened
      return opened
    }
  }

  private func openNow() throws(TransferFailure) -> FileDescriptor {
    let flags = O_RDONLY | O_DIRECTORY
    guard let parent else {
      // The contents of what a link leads to may be meant, so one is followed.
      return try TransferFailure.onOutside { () throws(Errno) in
        try Syscalls.open(path, flags: isImported ? flags | O_NOFOLLOW : flags)
      }
    }
    let above = try parent.open()
    defer { withExtendedLifetime(above) {} }
    return try TransferFailure.onOutside { () throws(Errno) in
      try Syscalls.open(path.lastComponent, in: above.fd, flags: flags | O_NOFOLLOW)
    }
  }

  /// Throws ENOTEMPTY where something is in it.
  func remove() throws(TransferFailure) {
    let above = try parent?.open()
    defer { withExtendedLifetime(above) {} }
    try TransferFailure.onOutside { () throws(Errno) in
      try Syscalls.removeDirectory(
        above == nil ? path : path.lastComponent, in: above?.fd ?? AT_FDCWD)
    }
  }
}

struct SourceFile: Sendable {
  enum Kind: Sendable {
    case file
    case symbolicLink
    /// An encrypted file that is decrypted on its way.
    case blob
  }

  let path: FileName
  let directory: SourceDirectory?
  let target: TargetDirectory?
  let kind: Kind
  let size: Int64
  /// What it is called in the vault.
  let name: FileName

  /// Calls `body` with a directory's descriptor and what the file is called in it.
  func inPlace<Result: ~Copyable>(
    _ body: (CInt, FileName) throws(TransferFailure) -> Result
  ) throws(TransferFailure) -> Result {
    guard let directory else { return try body(AT_FDCWD, path) }
    let opened = try directory.open()
    defer { withExtendedLifetime(opened) {} }
    return try body(opened.fd, path.lastComponent)
  }

  func content(_ password: BlobPassword?) throws(TransferFailure) -> SourceContent {
    try inPlace { directory, name throws(TransferFailure) in
      try SourceContent(
        directory: directory, name, password: kind == .blob ? password : nil)
    }
  }

  func status() throws(TransferFailure) -> stat {
    try inPlace { directory, name throws(TransferFailure) in
      try TransferFailure.onOutside { () throws(Errno) in
        try Syscalls.status(of: name, in: directory)
      }
    }
  }

  /// Of a symbolic link.
  func linkTarget() throws(TransferFailure) -> FileName {
    try inPlace { directory, name throws(TransferFailure) in
      try TransferFailure.onOutside { () throws(Errno) in
        try Syscalls.readSymbolicLink(name, in: directory)
      }
    }
  }

  /// Whether the same contents under another name are worth a word: an empty file, or the sidecars
  /// of two pictures, may well be alike.
  var mayBeDuplicate: Bool {
    size > 0 && SourceKind(name.lowercaseExtension) != .sidecar
  }

  /// The size that its blob will have, exactly or nearly.
  var storedSize: Int64 {
    kind == .blob ? size : VaultContents.storedSize(plaintextSize: size)
  }
}

/// Files that stay together: one, or a picture and what belongs to it.
struct SourceGroup: Sendable {
  /// Pictures first.
  let files: [SourceFile]
  let names: [SplitName]

  init(_ file: SourceFile) {
    files = [file]
    names = [SplitName(file.name)]
  }

  init(_ files: [SourceFile], base: [UInt8]) {
    self.files = files
    names = files.map { SplitName(base: base, tail: Array($0.name.bytes.dropFirst(base.count))) }
  }
}

/// All that is to be imported, found before the first byte is copied.
struct SourceTree {
  /// Those above before those below.
  private(set) var directories: [SourceDirectory] = []
  private(set) var groups: [SourceGroup] = []
  /// What can't be imported, and why.
  private(set) var problems: [(path: FileName, reason: String)] = []
  private(set) var fileCount = 0
  private(set) var byteCount: Int64 = 0

  private let opensBlobs: Bool
  /// Sources that were named already.
  private var seen: Set<FileName> = []

  /// `opensBlobs`: `.securedData` files are decrypted.
  init(opensBlobs: Bool) { self.opensBlobs = opensBlobs }

  /// Adds one source as `cp -r` would take it. `target` nil: sorted by date.
  mutating func add(_ path: FileName, to target: TargetDirectory?) {
    let takesContents = path.meansContents
    let status: stat
    do throws(Errno) {
      status =
        takesContents
        ? try Syscalls.statusBehindLinks(of: path)
        : try Syscalls.status(of: path, in: AT_FDCWD)
    } catch { return refuse(path, error) }
    guard seen.insert(path).inserted else { return }
    if isDirectory(status) {
      var bytes = path.bytes
      while bytes.count > 1, bytes.last == UInt8(ascii: "/") { bytes.removeLast() }
      let name = FileName(bytes).lastComponent
      let inner = takesContents ? target : target?.child(name)
      walk(
        SourceDirectory(
          path: FileName(bytes), parent: nil, target: inner, isImported: !takesContents,
          status: status))
    } else if takesContents {
      refuse(path, .notADirectory)
    } else {
      let name = path.lastComponent
      if let file = file(path, name, status, nil, target) { add(SourceGroup(file)) }
    }
  }

  /// Puts single sources of one call together: `import alice IMG_1.jpg IMG_1.xmp`.
  mutating func groupSingles() {
    let singles = groups.filter { $0.files[0].directory == nil }
    groups.removeAll { $0.files[0].directory == nil }
    var order: [FileName] = []
    var byDirectory: [FileName: [SourceFile]] = [:]
    for file in singles.flatMap(\.files) {
      let end = file.path.bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0
      let directory = FileName(Array(file.path.bytes[..<end]))
      if byDirectory[directory] == nil { order.append(directory) }
      byDirectory[directory, default: []].append(file)
    }
    for directory in order { groups += Self.grouped(byDirectory[directory] ?? []) }
  }

  private mutating func walk(_ top: SourceDirectory) {
    var waiting = [top]
    while let directory = waiting.popLast() {
      let entries: [(name: FileName, status: stat)]
      do throws(TransferFailure) { entries = try Self.entries(of: directory) } catch {
        problems.append((directory.path, error.sentence))
        continue
      }
      directories.append(directory)
      var files: [SourceFile] = []
      var inner: [SourceDirectory] = []
      for (name, status) in entries {
        let path = directory.path.appending(name)
        if isDirectory(status) {
          inner.append(
            SourceDirectory(
              path: path, parent: directory, target: directory.target?.child(name),
              isImported: true, status: status))
        } else if let file = file(path, name, status, directory, directory.target) {
          files.append(file)
        }
      }
      for group in Self.grouped(files) { add(group) }
      waiting += inner.reversed()
    }
  }

  private static func entries(
    of directory: SourceDirectory
  ) throws(TransferFailure) -> [(name: FileName, status: stat)] {
    // As deep as a path can name: whoever goes deeper has no good in mind.
    guard directory.path.count < Int(PATH_MAX) else { throw .outside(.nameTooLong) }
    let opened = try directory.open()
    defer { withExtendedLifetime(opened) {} }
    var result: [(name: FileName, status: stat)] = []
    try TransferFailure.onOutside { () throws(Errno) in
      for entry in try DirectoryEntries.read(opened.fd) {
        do throws(Errno) {
          result.append((entry.name, try Syscalls.status(of: entry.name, in: opened.fd)))
        } catch { if error != .noSuchEntry { throw error } }
      }
    }
    return result.sorted { $0.name.bytes.lexicographicallyPrecedes($1.name.bytes) }
  }

  private mutating func file(
    _ path: FileName, _ name: FileName, _ status: stat, _ directory: SourceDirectory?,
    _ target: TargetDirectory?
  ) -> SourceFile? {
    switch status.st_mode & S_IFMT {
    case mode_t(Glibc.S_IFREG):
      let stem = name.bytes.dropLast(MessageCommand.suffix.utf8.count)
      let isBlob = opensBlobs && name.hasSuffix(".securedData") && !stem.isEmpty
      return SourceFile(
        path: path, directory: directory, target: target, kind: isBlob ? .blob : .file,
        size: Int64(status.st_size), name: isBlob ? FileName(Array(stem)) : name)
    case mode_t(Glibc.S_IFLNK):
      return SourceFile(
        path: path, directory: directory, target: target, kind: .symbolicLink, size: 0, name: name)
    default:
      problems.append((path, "neither file, folder nor link"))
      return nil
    }
  }

  private mutating func add(_ group: SourceGroup) {
    groups.append(group)
    fileCount += group.files.count
    byteCount += group.files.reduce(0) { $0 + $1.size }
  }

  private mutating func refuse(_ path: FileName, _ error: Errno) {
    problems.append((path, TransferFailure.outside(error).sentence))
  }

  private func isDirectory(_ status: stat) -> Bool {
    status.st_mode & S_IFMT == mode_t(Glibc.S_IFDIR)
  }

  // MARK: Sidecars

  /// Files of one directory: a picture with its sidecars and its film (a live photo) is one group.
  static func grouped(_ files: [SourceFile]) -> [SourceGroup] {
    let plain = files.filter { $0.kind != .symbolicLink }
    let names = Set(plain.map(\.name))
    let kinds = plain.map { SourceKind($0.name.lowercaseExtension) }
    let pictures = Set(
      zip(plain, kinds).filter { $0.1 == .picture }.map { SplitName($0.0.name).base })
    let films = Set(zip(plain, kinds).filter { $0.1 == .film }.map { SplitName($0.0.name).base })

    // The base of the group that each file belongs to, for those that bring others along.
    var bases: [FileName: [UInt8]] = [:]
    for (file, kind) in zip(plain, kinds) {
      let stem = SplitName(file.name).base
      if kind == .sidecar {
        // IMG_1.jpg.xmp belongs to IMG_1.jpg alone, and IMG_1.xmp to all of that name.
        if names.contains(FileName(stem)) {
          bases[file.name] = SplitName(FileName(stem)).base
        } else if pictures.contains(stem) || films.contains(stem) {
          bases[file.name] = stem
        }
      } else if kind == .film, pictures.contains(stem), file.name.lowercaseExtension == "mov" {
        bases[file.name] = stem
      }
    }
    let wanted = Set(bases.values)
    var groups: [SourceGroup] = []
    var members: [[UInt8]: [SourceFile]] = [:]
    for file in files {
      let stem = SplitName(file.name).base
      if file.kind != .symbolicLink, let base = bases[file.name] {
        members[base, default: []].append(file)
      } else if file.kind != .symbolicLink, wanted.contains(stem),
        [.picture, .film].contains(SourceKind(file.name.lowercaseExtension))
      {
        members[stem, default: []].append(file)
      } else {
        groups.append(SourceGroup(file))
      }
    }
    for (base, files) in members.sorted(by: { $0.key.lexicographicallyPrecedes($1.key) }) {
      let sorted = files.sorted { rank($0) < rank($1) }
      groups.append(SourceGroup(sorted, base: base))
    }
    return groups
  }

  private static func rank(_ file: SourceFile) -> Int {
    switch SourceKind(file.name.lowercaseExtension) {
    case .picture: 0
    case .film: 1
    case .sidecar, .other: 2
    }
  }
}
