import Glibc
import Platform
import VaultFileSystem

/// One operation's way through a path. Source: path_resolution(7).
struct Walk {
  private let fileSystem: FileSystem
  /// One for each count the file system gave, in order.
  private(set) var lookups: [NodeID] = []
  private var followed = 0

  static let root: NodeID = 1
  private static let linkLimit = 40  // MAXSYMLINKS of the kernel

  init(_ fileSystem: FileSystem) { self.fileSystem = fileSystem }

  /// Where a path leads.
  struct Place {
    /// From the root to the directory that holds the last name.
    var parents: [NodeID]
    /// nil when the path ends in `.`, `..` or nothing: then `entry` is the last of `parents`.
    var name: FileName?
    /// nil when there is no such entry.
    var node: NodeID?
    var status = stat()
    var endsInSlash = false

    var parent: NodeID { parents.last ?? Walk.root }
    var kind: mode_t { status.st_mode & S_IFMT }
    var isDirectory: Bool { kind == S_IFDIR }
  }

  mutating func count(_ entry: Entry) { lookups.append(entry.nodeID) }

  /// The lookups so far become somebody else's to give back.
  mutating func takeLookups() -> [NodeID] {
    defer { lookups = [] }
    return lookups
  }

  mutating func locate(_ path: Path, follows: Bool) throws(FileSystemError) -> Place {
    var place = Place(parents: [Self.root], name: nil, node: Self.root)
    place.status = try fileSystem.attributes(Self.root)
    var rest = Self.components(path.bytes)
    place.endsInSlash = path.bytes.last == 0x2F
    while !rest.isEmpty {
      let part = rest.removeFirst()
      try enter(&place)
      if part == FileName(".") { continue }
      if part == FileName("..") {
        if place.parents.count > 1 { place.parents.removeLast() }
        place.node = place.parent
        place.status = try fileSystem.attributes(place.parent)
        continue
      }
      try look(up: part, &place)
      guard place.node != nil else {
        if rest.isEmpty { return place }
        throw FileSystemError(.noSuchEntry)
      }
      if place.kind == S_IFLNK, follows || !rest.isEmpty || place.endsInSlash {
        try follow(&place, &rest)
      }
    }
    if place.endsInSlash, place.node != nil, !place.isDirectory {
      throw FileSystemError(.notADirectory)
    }
    return place
  }

  /// The place becomes a directory that is searched.
  private func enter(_ place: inout Place) throws(FileSystemError) {
    guard place.isDirectory, let node = place.node else { throw FileSystemError(.notADirectory) }
    if place.name != nil { place.parents.append(node) }
    place.name = nil
  }

  private mutating func look(
    up name: FileName, _ place: inout Place
  ) throws(FileSystemError) {
    place.name = name
    do throws(FileSystemError) {
      let entry = try fileSystem.lookup(name, in: place.parent)
      count(entry)
      place.node = entry.nodeID
      place.status = entry.attributes
    } catch {
      guard error.errno == .noSuchEntry else { throw error }
      place.node = nil
    }
  }

  private mutating func follow(
    _ place: inout Place, _ rest: inout [FileName]
  ) throws(FileSystemError) {
    followed += 1
    guard followed <= Self.linkLimit, let node = place.node else {
      throw FileSystemError(.tooManySymbolicLinks)
    }
    let target = try fileSystem.readSymbolicLink(node).bytes
    // Outside of the file system; the checks have nothing there.
    if target.first == 0x2F { throw FileSystemError(.noSuchEntry) }
    if rest.isEmpty, target.last == 0x2F { place.endsInSlash = true }
    rest = Self.components(target) + rest
    place.node = place.parent
    place.name = nil
    place.status = try fileSystem.attributes(place.parent)
  }

  private static func components(_ path: [UInt8]) -> [FileName] {
    path.split(separator: 0x2F).map { FileName(Array($0)) }
  }

  /// An entry that has to be there.
  mutating func existing(_ path: Path, follows: Bool) throws(FileSystemError) -> (Place, NodeID) {
    let place = try locate(path, follows: follows)
    guard let node = place.node else { throw FileSystemError(.noSuchEntry) }
    return (place, node)
  }

  /// A place for a new entry.
  mutating func free(
    _ path: Path, isDirectory: Bool = false
  ) throws(FileSystemError) -> (NodeID, FileName) {
    let place = try locate(path, follows: false)
    guard place.node == nil, let name = place.name else { throw FileSystemError(.exists) }
    if place.endsInSlash, !isDirectory { throw FileSystemError(.noSuchEntry) }
    return (place.parent, name)
  }
}
