import Glibc
import Platform

/// A program that keeps a mount busy.
struct Holder: Codable, Equatable, Sendable {
  let pid: Int32
  let program: String
  /// What it holds, as paths; at most a few.
  let paths: [String]

  private static let greatestPathCount = 8

  /// Who holds something of `mount`, as far as this user may see: other users' programs show only
  /// to root. The mount's own process and this one don't count. Asks nothing of the mount itself.
  /// Source: proc(5).
  static func all(of mount: MountRecord) -> [Holder] {
    let place = Array(mount.mountPoint.utf8)
    return numbers(in: "/proc").compactMap { pid in
      pid == mount.process || pid == getpid() ? nil : holder(pid, place)
    }
  }

  /// As a part of a message.
  static func sentence(of mount: MountRecord) -> String {
    sentence(all(of: mount), mount.mountPoint)
  }

  /// "darktable (5678) holds IMG_1.jpg", "bash (123) is in it".
  func sentence(_ mountPoint: String) -> String {
    let names = names(in: mountPoint).prefix(2)
    let what = names.isEmpty ? "is in it" : "holds \(names.joined(separator: ", "))"
    return "\(program) (\(pid)) \(what)"
  }

  /// The last parts of the paths, without the mount point itself.
  func names(in mountPoint: String) -> [String] {
    paths.filter { $0 != mountPoint }.map { path in
      path.split(separator: "/").last.map(String.init) ?? path
    }
  }

  static func sentence(_ holders: [Holder], _ mountPoint: String) -> String {
    if holders.isEmpty { return "a program holds files" }
    let shown = holders.prefix(5).map { $0.sentence(mountPoint) }.joined(separator: "; ")
    return holders.count > 5 ? "\(shown); and \(holders.count - 5) more" : shown
  }

  private static func holder(_ pid: Int32, _ place: [UInt8]) -> Holder? {
    let process = "/proc/\(pid)"
    var paths: [[UInt8]] = []
    func add(_ path: [UInt8]?) {
      guard let path, path.starts(with: place), paths.count < greatestPathCount,
        path.count == place.count || path[place.count] == UInt8(ascii: "/"), !paths.contains(path)
      else { return }
      paths.append(path)
    }
    for descriptor in numbers(in: process + "/fd") { add(link("\(process)/fd/\(descriptor)")) }
    for name in ["cwd", "root", "exe"] { add(link("\(process)/\(name)")) }
    for path in mappedFiles(process) { add(path) }
    if paths.isEmpty { return nil }
    let name = contents(process + "/comm").split(separator: 10).first ?? []
    return Holder(
      pid: pid, program: String(decoding: name, as: UTF8.self),
      paths: paths.map { String(decoding: $0, as: UTF8.self) })
  }

  private static func numbers(in directory: String) -> [Int32] {
    guard
      let directory = try? Syscalls.open(FileName(directory), flags: O_RDONLY | O_DIRECTORY),
      let entries = try? DirectoryEntries.read(directory.rawValue)
    else { return [] }
    return entries.compactMap { Int32($0.name.description) }
  }

  private static func link(_ path: String) -> [UInt8]? {
    (try? Syscalls.readSymbolicLink(FileName(path), in: AT_FDCWD))?.bytes
  }

  /// "address perms offset dev inode   path"
  private static func mappedFiles(_ process: String) -> [[UInt8]] {
    contents(process + "/maps").split(separator: 10).compactMap { line in
      line.firstIndex(of: UInt8(ascii: "/")).map { Array(line[$0...]) }
    }
  }

  private static func contents(_ path: String) -> [UInt8] {
    guard let file = try? Syscalls.open(FileName(path), flags: O_RDONLY) else { return [] }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 15)
    while true {
      let count = read(file.rawValue, &chunk, chunk.count)
      if count <= 0 { return bytes }
      bytes += chunk[..<count]
    }
  }
}
