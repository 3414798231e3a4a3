import Glibc
import Platform
import Testing
import VaultFileSystem

/// One way to change a folder. Each step is all or nothing.
struct FaultScenario: Sendable, CustomTestStringConvertible {
  typealias Step = @Sendable (Folder) throws -> Void

  let testDescription: String
  let prepare: Step
  let steps: [Step]
  /// Other ways to end than between two steps: what happens instead of all steps.
  private(set) var otherEnds: [Step] = []
  /// The same where nothing can undo what was begun.
  private(set) var endsOfCrashes: [Step] = []
  /// An empty file is stored by the last close, of whose failure nobody can be told.
  private(set) var isToldOfErrors = true

  private init(_ name: String, _ prepare: @escaping Step = { _ in }, _ steps: Step...) {
    testDescription = name
    self.prepare = prepare
    self.steps = steps
  }

  private func silent() -> FaultScenario {
    var copy = self
    copy.isToldOfErrors = false
    return copy
  }

  private func or(_ ends: Step..., afterCrash: [Step] = []) -> FaultScenario {
    var copy = self
    copy.otherEnds = ends
    copy.endsOfCrashes = afterCrash
    return copy
  }

  static let old = pattern(150_000, seed: 11)
  static let new = pattern(200_000, seed: 12)
  private static let film = pattern(1_500_000, seed: 13)
  private static let long = String(repeating: "n", count: 250)
  private static let otherLong = String(repeating: "o", count: 250)

  private static let hasPhoto: Step = { try $0.store(old, as: "photo") }
  private static let hasLong: Step = { try $0.store(old, as: long) }
  private static let hasTwo: Step = {
    try $0.store(old, as: "photo")
    try $0.store(Array(new[..<999]), as: "second")
  }
  private static let hasAttributes: Step = {
    try $0.store(old, as: "photo")
    try $0.set("user.title", to: [1, 2, 3], of: "photo")
    try $0.change("photo") { $0.mode = 0o604 }
  }

  static let all: [FaultScenario] = files + names + others + attributes

  private static let files = [
    FaultScenario("new", { _ in }, { try $0.store(new, as: "photo") }),
    FaultScenario("new and empty", { _ in }, { try $0.store([], as: "photo") }).silent(),
    FaultScenario("new and big", { _ in }, { try $0.store(film, as: "photo") }),
    FaultScenario(
      "new and synchronized", { _ in },
      { folder in
        try folder.withFile(folder.create("photo")) {
          try folder.write($0, new)
          try folder.fileSystem.synchronize($0, dataOnly: false)
        }
      }),
    FaultScenario(
      "in a new directory", { _ in },
      { _ = try $0.makeDirectory("album") },
      { folder in
        let album = try folder.node("album")
        let handle = try folder.fileSystem.create(
          FileName("photo"), in: album, mode: 0o600, flags: O_WRONLY, caller: Folder.me
        ).1.handle
        try folder.withFile(handle) {
          try folder.write($0, new)
          try folder.fileSystem.synchronize($0, dataOnly: false)
        }
      }),
    FaultScenario("overwritten", hasPhoto, { try $0.store(new, as: "photo") }),
    FaultScenario("overwritten, big", hasPhoto, { try $0.store(film, as: "photo") }),
    FaultScenario("emptied", hasPhoto, { try $0.store([], as: "photo") }).silent(),
    FaultScenario(
      "overwritten and synchronized", hasPhoto,
      { folder in
        try folder.withFile(folder.open("photo", flags: O_WRONLY | O_TRUNC)) {
          try folder.write($0, new)
          try folder.fileSystem.synchronize($0, dataOnly: false)
        }
      }),
    FaultScenario(
      "edited", hasPhoto, { try $0.edit("photo", Array(new[..<1000]), at: 100) }),
    FaultScenario(
      "edited twice", hasPhoto, { try $0.edit("photo", Array(new[..<1000]), at: 100) },
      { try $0.edit("photo", Array(new[..<70_000]), at: 90_000) }),
    FaultScenario(
      "appended to", hasPhoto,
      { try $0.edit("photo", Array(new[..<1000]), at: Int64(old.count)) }),
    FaultScenario("shortened", hasPhoto, { try $0.change("photo") { $0.size = 70_000 } }),
    FaultScenario("shortened to nothing", hasPhoto, { try $0.change("photo") { $0.size = 0 } }),
    FaultScenario("made longer", hasPhoto, { try $0.change("photo") { $0.size = 300_000 } }),
    FaultScenario(
      "zeroes in it", hasPhoto,
      { folder in
        try folder.withFile(folder.open("photo", flags: O_RDWR)) {
          try folder.fileSystem.allocate($0, mode: 0x03, offset: 5000, length: 60_000)
        }
      }),
    FaultScenario(
      "edited, of two names",
      {
        try $0.store(old, as: "photo")
        try $0.link("photo", as: "other")
      }, { try $0.edit("photo", Array(new[..<1000]), at: 100) }
    ).or {
      // One name has the new version already. Each is whole.
      try $0.unlink("photo")
      try $0.store(old, as: "photo")
      try $0.edit("photo", Array(new[..<1000]), at: 100)
    },
    FaultScenario("a long name", { _ in }, { try $0.store(new, as: long) }),
    FaultScenario("a long name overwritten", hasLong, { try $0.store(new, as: long) }),
    FaultScenario(
      "a long name edited", hasLong, { try $0.edit(long, Array(new[..<1000]), at: 100) }),
  ]

  private static let names = [
    FaultScenario(
      "saved by rename", hasPhoto, { try $0.store(new, as: "photo~") },
      { try $0.rename("photo~", "photo") }),
    FaultScenario(
      "renamed while it is written", hasPhoto,
      { folder in
        try folder.withFile(folder.create("photo~")) {
          try folder.write($0, new)
          try folder.rename("photo~", "photo")
        }
      }
    ).or { try $0.store(new, as: "photo~") },
    FaultScenario("renamed", hasPhoto, { try $0.rename("photo", "other") }),
    FaultScenario("renamed to a long name", hasPhoto, { try $0.rename("photo", long) }),
    FaultScenario("renamed from a long name", hasLong, { try $0.rename(long, "photo") }),
    FaultScenario("from long name to long name", hasLong, { try $0.rename(long, otherLong) }),
    FaultScenario(
      "a long name over another",
      {
        try $0.store(old, as: long)
        try $0.store(new, as: otherLong)
      }, { try $0.rename(long, otherLong) }),
    FaultScenario("exchanged", hasTwo, { try $0.rename("photo", "second", .exchange) }),
    FaultScenario(
      "exchanged with a long name",
      {
        try $0.store(old, as: long)
        try $0.store(new, as: "photo")
      }, { try $0.rename("photo", long, .exchange) }),
    FaultScenario("linked", hasPhoto, { try $0.link("photo", as: "other") }),
    FaultScenario("linked by a long name", hasPhoto, { try $0.link("photo", as: long) }),
    FaultScenario("removed", hasPhoto, { try $0.unlink("photo") }),
    FaultScenario("a long name removed", hasLong, { try $0.unlink(long) }),
    FaultScenario(
      "from directory to directory",
      {
        _ = try $0.makeDirectory("album")
        try $0.store(old, as: "photo")
      },
      { folder in
        try folder.fileSystem.rename(
          FileName("photo"), in: 1, to: FileName(long), in: try folder.node("album"), flags: [])
      }),
  ]

  /// What is stored in another form under the same name shows beside it.
  private static let asideAndOver: Step = {
    try $0.rename("link", "link~2")
    try $0.rename("photo", "link")
  }

  private static let others = [
    FaultScenario("directory", { _ in }, { _ = try $0.makeDirectory("album") }),
    FaultScenario("directory of a long name", { _ in }, { _ = try $0.makeDirectory(long) }),
    FaultScenario(
      "directory removed", { _ = try $0.makeDirectory("album") },
      { try $0.fileSystem.removeDirectory(FileName("album"), in: 1) }),
    FaultScenario(
      "directory of a long name removed", { _ = try $0.makeDirectory(long) },
      { try $0.fileSystem.removeDirectory(FileName(long), in: 1) }),
    FaultScenario(
      "directory renamed", { _ = try $0.makeDirectory("album") },
      { try $0.rename("album", long) }),
    FaultScenario(
      "directory over an empty one",
      {
        _ = try $0.makeDirectory("album")
        _ = try $0.makeDirectory("empty")
        try $0.change("album") { $0.mode = 0o711 }
      }, { try $0.rename("album", "empty") }
    ).or(afterCrash: [{ try $0.rename("album", "empty", .exchange) }]),
    FaultScenario("symbolic link", { _ in }, { try $0.makeLink("link", to: "photo") }),
    FaultScenario("symbolic link of a long name", { _ in }, { try $0.makeLink(long, to: long) }),
    FaultScenario(
      "symbolic link over a photo",
      {
        try $0.store(old, as: "photo")
        try $0.makeLink("link", to: "elsewhere")
      }, { try $0.rename("link", "photo") }
    ).or(afterCrash: [{ try $0.rename("link", "photo~2") }]),
    FaultScenario(
      "photo over a symbolic link",
      {
        try $0.store(old, as: "photo")
        try $0.makeLink("link", to: "elsewhere")
      }, { try $0.rename("photo", "link") }
    ).or(afterCrash: [asideAndOver]),
    FaultScenario(
      "new photo over a symbolic link", { try $0.makeLink("link", to: "elsewhere") },
      { folder in
        try folder.withFile(folder.create("photo~")) {
          try folder.write($0, new)
          try folder.rename("photo~", "link")
        }
      }
    ).or(
      { try $0.store(new, as: "photo~") },
      afterCrash: [
        {
          try $0.rename("link", "link~2")
          try $0.store(new, as: "link")
        }
      ]),
    FaultScenario(
      "photo and symbolic link exchanged",
      {
        try $0.store(old, as: "photo")
        try $0.makeLink("link", to: "elsewhere")
      }, { try $0.rename("photo", "link", .exchange) }
    ).or(afterCrash: [asideAndOver]),
    FaultScenario(
      "fifo", { _ in },
      {
        _ = try $0.fileSystem.makeNode(
          FileName("fifo"), in: 1, mode: S_IFIFO | 0o640, device: 0, caller: Folder.me)
      }),
    FaultScenario(
      "made by mknod", { _ in },
      {
        _ = try $0.fileSystem.makeNode(
          FileName("photo"), in: 1, mode: S_IFREG | 0o640, device: 0, caller: Folder.me)
      }),
  ]

  private static let attributes = [
    FaultScenario("mode", hasPhoto, { try $0.change("photo") { $0.mode = 0o600 } }),
    FaultScenario(
      "times", hasPhoto,
      {
        try $0.change("photo") {
          $0.modificationTime = timespec(tv_sec: 1234, tv_nsec: 5678)
        }
      }),
    FaultScenario(
      "attribute", hasPhoto, { try $0.set("user.title", to: Array("Sea".utf8), of: "photo") }),
    FaultScenario(
      "attribute replaced", hasAttributes, { try $0.set("user.title", to: [9], of: "photo") }),
    FaultScenario(
      "attribute removed", hasAttributes,
      {
        try $0.fileSystem.removeExtendedAttribute(
          try $0.node("photo"), FileName("user.title"))
      }),
    FaultScenario(
      "edited with attributes", hasAttributes,
      { try $0.edit("photo", Array(new[..<1000]), at: 100) }),
    FaultScenario(
      "new with attributes", { _ in },
      { folder in
        try folder.withFile(folder.create("photo")) {
          try folder.write($0, new)
          try folder.set("user.title", to: [1, 2], of: "photo")
          try folder.change("photo") {
            $0.mode = 0o600
            $0.modificationTime = timespec(tv_sec: 1234, tv_nsec: 5678)
          }
        }
      }),
  ]
}

extension Folder {
  /// close(2) at the end, whatever happened before; an error of `body` comes first.
  func withFile(_ handle: UInt64, _ body: (UInt64) throws -> Void) throws {
    do { try body(handle) } catch {
      fileSystem.release(handle)
      throw error
    }
    try close(handle)
  }

  func edit(_ path: String, _ bytes: [UInt8], at offset: Int64) throws {
    try withFile(open(path, flags: O_RDWR)) { try write($0, bytes, at: offset) }
  }

  func change(_ path: String, _ set: (inout AttributeChanges) -> Void) throws {
    var changes = AttributeChanges()
    set(&changes)
    _ = try fileSystem.setAttributes(try node(path), changes)
  }

  func set(_ attribute: String, to value: [UInt8], of path: String) throws {
    try fileSystem.setExtendedAttribute(try node(path), FileName(attribute), value, flags: 0)
  }

  func rename(_ old: String, _ new: String, _ flags: Syscalls.RenameFlags = []) throws {
    try fileSystem.rename(FileName(old), in: 1, to: FileName(new), in: 1, flags: flags)
  }

  func link(_ old: String, as new: String) throws {
    _ = try fileSystem.link(try node(old), as: FileName(new), in: 1)
  }

  func unlink(_ name: String) throws { try fileSystem.unlink(FileName(name), in: 1) }

  func makeDirectory(_ name: String) throws -> NodeID {
    try fileSystem.makeDirectory(FileName(name), in: 1, mode: 0o755, caller: Self.me).nodeID
  }

  func makeLink(_ name: String, to target: String) throws {
    _ = try fileSystem.makeSymbolicLink(
      FileName(name), in: 1, target: FileName(target), caller: Self.me)
  }
}
