import Glibc
import Platform
import VaultFileSystem

/// What programs see of a folder, down to the last byte.
struct Snapshot: Equatable, CustomStringConvertible {
  struct Entry: Equatable {
    let mode: mode_t
    /// A file's bytes, a link's target.
    var content: [UInt8] = []
    var attributes: [FileName: [UInt8]] = [:]
    /// Where a test set it: those times are all long ago.
    var modified: Int?
  }

  private(set) var entries: [String: Entry] = [:]

  init(_ folder: Folder) throws { try add("", folder) }

  private mutating func add(_ path: String, _ folder: Folder) throws {
    for name in try folder.names(path) {
      let path = path.isEmpty ? name : path + "/" + name
      let node = try folder.node(path)
      let status = try folder.fileSystem.attributes(node)
      var entry = Entry(mode: status.st_mode)
      if status.st_mtim.tv_sec < 1_000_000_000 { entry.modified = status.st_mtim.tv_sec }
      switch status.st_mode & S_IFMT {
      case S_IFREG:
        entry.content = try folder.contents(path)
        for name in try folder.fileSystem.extendedAttributeNames(node) {
          entry.attributes[name] = try folder.fileSystem.extendedAttribute(node, name)
        }
      case S_IFLNK: entry.content = try folder.fileSystem.readSymbolicLink(node).bytes
      case S_IFDIR: try add(path, folder)
      default: break
      }
      entries[path] = entry
    }
  }

  var description: String {
    entries.sorted { $0.key < $1.key }.map { path, entry in
      let name = path.count > 24 ? path.prefix(20) + "...\(path.count)" : path[...]
      return "\(name): \(String(entry.mode, radix: 8)), \(entry.content.count) bytes"
        + (entry.content.first.map { " from \($0) on" } ?? "")
        + (entry.attributes.isEmpty ? "" : ", \(entry.attributes.count) attributes")
        + (entry.modified.map { ", of \($0)" } ?? "")
    }.joined(separator: "; ")
  }
}
