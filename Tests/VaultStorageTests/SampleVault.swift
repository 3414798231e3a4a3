import Foundation
import Glibc
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

/// A vault with a bit of everything, and hands that damage it.
///
///     photo (1,000 bytes, with an attribute)   film (400,000)   link
///     album/one (100)   album/two (400,000)   album/ and a long name (300)
struct SampleVault {
  static let names = ["photo", "film", "album/one", "album/two", "album/\(longName)"]
  static let longName = String(repeating: "n", count: 200)
  static let filmSize = 400_000

  let vault: TestVault
  /// Where each entry is on the disk, by the name it shows as.
  let stored: [String: String]
  let companion: String

  static func with<Result>(
    _ names: NamesMode = .encrypted, _ body: (SampleVault) throws -> Result
  ) throws -> Result {
    try TestVault.with(names) { vault in try body(SampleVault(vault)) }
  }

  private init(_ vault: TestVault) throws {
    self.vault = vault
    let opened = try vault.open()
    let root = opened.root
    let made = try root.makeDirectory(FileName("album"), mode: 0o755, owner: nil)
    let album = try root.open(child: made)
    func store(_ name: String, _ size: Int, in directory: VaultDirectory) throws -> StoredName {
      try Self.store(Self.bytes(size), as: name, in: directory, opened.keys)
    }
    let link = try root.storedName(FileName("link"), kind: .other)
    try Syscalls.makeSymbolicLink(
      to: try root.encodeLinkTarget(FileName("album/one")), as: link.entry, in: root.fd.rawValue)
    let long = try store(Self.longName, 300, in: album)
    // With plain names 200 bytes are not too long.
    companion = "\(made.entry.text)/\(long.companion?.text ?? "")"
    stored = [
      "photo": try store("photo", 1000, in: root).entry.text,
      "film": try store("film", Self.filmSize, in: root).entry.text,
      "link": link.entry.text, "album": made.entry.text,
      "album/one": "\(made.entry.text)/\(try store("one", 100, in: album).entry.text)",
      "album/two": "\(made.entry.text)/\(try store("two", Self.filmSize, in: album).entry.text)",
      "album/\(Self.longName)": "\(made.entry.text)/\(long.entry.text)",
    ]
    let attributes = ExtendedAttributes(keys: opened.keys)
    let name = FileName("user.title")
    try setAttribute(
      attributes.storedName(name).text, of: "photo",
      try attributes.encode(value: Array("A day".utf8), name: name))
  }

  private static let pattern = (0..<filmSize).map { UInt8(truncatingIfNeeded: $0) }

  static func bytes(_ count: Int) -> [UInt8] { Array(pattern[..<count]) }

  @discardableResult
  static func store(
    _ bytes: [UInt8], as name: String, in directory: VaultDirectory, _ keys: VaultKeys
  ) throws -> StoredName {
    let name = FileName(name)
    let stored = try directory.storedName(name, kind: .blob)
    let writer = try BlobWriter(in: directory, keys: keys)
    try bytes.withUnsafeBytes { try writer.append($0) }
    let replacing = try directory.find(name) != nil
    try AtomicReplace.publish(
      try writer.finish(),
      as: [AtomicReplace.Target(directory: directory, stored: stored, name: name)],
      replacing: replacing)
    return stored
  }

  // MARK: The disk

  func path(_ name: String) -> String { vault.path + "/" + (stored[name] ?? name) }

  func read(_ name: String) throws -> [UInt8] {
    try #require(FileManager.default.contents(atPath: path(name)).map { Array($0) })
  }

  /// In place, as programs do that don't know of attributes: these stay.
  func overwrite(_ name: String, _ bytes: [UInt8]) throws {
    let file = try FileHandle(forWritingTo: URL(filePath: path(name)))
    try file.truncate(atOffset: 0)
    try file.write(contentsOf: bytes)
    try file.close()
  }

  /// Changes one bit; `offset` counts from the end if it is negative.
  func flip(_ name: String, _ offset: Int) throws {
    var bytes = try read(name)
    bytes[offset < 0 ? bytes.count + offset : offset] ^= 1
    try overwrite(name, bytes)
  }

  func remove(_ name: String) throws { try FileManager.default.removeItem(atPath: path(name)) }

  func move(_ name: String, to other: String) throws {
    try FileManager.default.moveItem(atPath: path(name), toPath: path(other))
  }

  func attribute(_ attribute: String, of name: String) throws -> [UInt8] {
    let file = try Syscalls.open(FileName(path(name)), flags: O_RDONLY)
    return try Syscalls.extendedAttribute(file.rawValue, FileName(attribute))
  }

  func setAttribute(_ attribute: String, of name: String, _ value: [UInt8]?) throws {
    let file = try Syscalls.open(FileName(path(name)), flags: O_RDONLY)
    if let value {
      try Syscalls.setExtendedAttribute(file.rawValue, FileName(attribute), value)
    } else {
      try Syscalls.removeExtendedAttribute(file.rawValue, FileName(attribute))
    }
  }

  static let index = ChunkIndex.attribute.text
  static let seal = PlaceSeal.attribute.text

  /// Every stored photo, wherever it is.
  func blobCount() throws -> Int {
    let all = try #require(FileManager.default.enumerator(atPath: vault.path))
    return all.count { ($0 as? String)?.hasSuffix(".securedData") == true }
  }

  // MARK: What the program says

  func check() throws -> VaultCheck.Report {
    try VaultCheck.open(at: vault.path, repairing: false) { _ in Expected.vaultKeys }.run()
  }

  /// Kind and path, or stored path where there is none.
  func findings(_ report: VaultCheck.Report) -> [String] {
    report.findings.map { "\($0.kind.rawValue) \(($0.path ?? $0.storedPath).text)" }.sorted()
  }

  func findings() throws -> [String] { findings(try check()) }

  func repair() throws -> VaultCheck.Report {
    let check = try openForRepair()
    return try check.repair(try check.run())
  }

  func openForRepair() throws -> VaultCheck {
    try TestVault.onceClosed {
      try VaultCheck.open(at: vault.path, repairing: true) { _ in Expected.vaultKeys }
    }
  }

  /// What a mount shows and how many bytes of each can be read.
  func shown() throws -> [String: Int] {
    let opened = try vault.open()
    var shown: [String: Int] = [:]
    func add(_ directory: VaultDirectory, _ prefix: String) throws {
      for entry in try directory.list() {
        let name = prefix + entry.name.text
        if entry.type == UInt8(DT_DIR) {
          try add(try directory.open(child: entry.stored), name + "/")
        } else if entry.kind == .blob {
          let blob = try Blob(
            descriptor: try Syscalls.open(
              entry.stored.entry, in: directory.fd.rawValue, flags: O_RDONLY),
            keys: opened.keys, isWritable: false)
          var bytes = [UInt8](repeating: 0, count: Int(try blob.plaintextSize()))
          let count = try bytes.withUnsafeMutableBytes { try blob.read(into: $0, at: 0) }
          #expect(bytes == Self.bytes(count))
          shown[name] = count
        }
      }
    }
    try add(opened.root, "")
    return shown
  }

  static let everything = [
    "photo": 1000, "film": filmSize, "album/one": 100, "album/two": filmSize,
    "album/\(longName)": 300,
  ]
}
