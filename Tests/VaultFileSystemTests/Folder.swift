import Foundation
import Glibc
import Platform
import SecuredData
import Testing
import VaultFileSystem

@testable import VaultStorage

/// A vault in a directory of its own and its file system, used by path as programs do.
final class Folder {
  let directory: String
  var fileSystem: FileSystem
  private let template: Template

  static let me = Caller(user: geteuid(), group: getegid(), umask: 0o022)

  init(names: NamesMode = .encrypted, at parent: String = NSTemporaryDirectory()) throws {
    directory = "\(parent)/photovault-\(UUID().uuidString)"
    template = try (names == .encrypted ? Template.encrypted : Template.plain).get()
    try template.make(at: directory)
    fileSystem = FileSystem(vault: try template.open(directory))
  }

  deinit { try? FileManager.default.removeItem(atPath: directory) }

  /// Opens the vault anew: nothing of what was in memory remains.
  func remount() throws {
    // The one-mounter lock goes with the old vault, so it has to go first.
    fileSystem = FileSystem(vault: try template.open(directory, readOnly: true))
    // A thread of the write pool may hold the old vault for a moment more, and so its lock.
    for _ in 0..<200 {
      do {
        fileSystem = FileSystem(vault: try template.open(directory))
        return
      } catch StorageError.alreadyOpen { usleep(10_000) }
    }
    throw StorageError.alreadyOpen
  }

  /// What `photovault check` says.
  func check() throws -> VaultCheck.Report { try template.check(directory) }

  func node(_ path: String) throws -> NodeID {
    var node: NodeID = 1
    for part in path.split(separator: "/") {
      node = try fileSystem.lookup(FileName(String(part)), in: node).nodeID
    }
    return node
  }

  func create(_ name: String, flags: CInt = O_RDWR) throws -> UInt64 {
    try fileSystem.create(
      FileName(name), in: 1, mode: 0o640, flags: flags | O_CREAT, caller: Self.me
    ).1.handle
  }

  func open(_ path: String, flags: CInt) throws -> UInt64 {
    try fileSystem.open(try node(path), flags: flags).handle
  }

  func write(_ handle: UInt64, _ bytes: [UInt8], at offset: Int64 = 0) throws {
    let count = try bytes.withUnsafeBytes { try fileSystem.write(handle, $0, at: offset) }
    #expect(count == bytes.count)
  }

  /// close(2): what it says, and then the release that nobody hears.
  func close(_ handle: UInt64) throws {
    defer { fileSystem.release(handle) }
    try fileSystem.flush(handle)
  }

  func store(_ bytes: [UInt8], as name: String) throws {
    let handle = try create(name, flags: O_RDWR | O_TRUNC)
    do { try write(handle, bytes) } catch {
      fileSystem.release(handle)
      throw error
    }
    try close(handle)
  }

  func read(_ handle: UInt64, _ count: Int, at offset: Int64 = 0) throws -> [UInt8] {
    var bytes = [UInt8](repeating: 0xEE, count: count)
    let got = try bytes.withUnsafeMutableBytes {
      try fileSystem.read(handle, into: $0, at: offset)
    }
    return Array(bytes[..<got])
  }

  func contents(_ path: String) throws -> [UInt8] {
    let node = try node(path)
    let size = Int(try fileSystem.attributes(node).st_size)
    let handle = try fileSystem.open(node, flags: O_RDONLY).handle
    defer { fileSystem.release(handle) }
    var result: [UInt8] = []
    while result.count <= size {
      let part = try read(handle, 131_072, at: Int64(result.count))
      if part.isEmpty { break }
      result += part
    }
    return result
  }

  func names(_ path: String = "") throws -> [String] {
    let handle = try fileSystem.openDirectory(try node(path)).handle
    defer { fileSystem.releaseDirectory(handle) }
    var names: [String] = []
    try fileSystem.readDirectory(handle, from: 0, withAttributes: false) { entry in
      names.append(entry.name.description)
      return true
    }
    return names.filter { $0 != "." && $0 != ".." }.sorted()
  }

  /// What the disk has, `vault.json` and `directory.id` left out.
  func stored() throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: directory)
      .filter { $0 != "vault.json" && $0 != "directory.id" }.sorted()
  }
}

/// Bytes that differ at every place, from a seed.
func pattern(_ count: Int, seed: UInt64 = 1) -> [UInt8] {
  var state = seed &* 0xD1B5_4A32_D192_ED03 | 1
  // Eight at a time: this is not optimized code.
  let words = (count + 7) / 8
  let bytes = [UInt64](unsafeUninitializedCapacity: words) { buffer, filled in
    var index = 0
    while index < words {
      state ^= state << 13
      state ^= state >> 7
      state ^= state << 17
      buffer[index] = state
      index += 1
    }
    filled = words
  }
  return bytes.withUnsafeBytes { Array($0.prefix(count)) }
}

func errno(of body: () throws -> Void) -> Errno? {
  do {
    try body()
    return nil
  } catch {
    return (error as? FileSystemError)?.errno ?? Errno(-1)
  }
}
