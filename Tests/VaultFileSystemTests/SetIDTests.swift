import Glibc
import Platform
import Testing
import VaultFileSystem

/// Set-user-id and set-group-id bits go when somebody who isn't root changes the file. Source:
/// write(2), chown(2).
@Suite struct SetIDTests {
  private static let somebody = Caller(user: 1000, group: 1000, umask: 0o022)
  private static let root = Caller(user: 0, group: 0, umask: 0o022)

  private func mode(_ folder: Folder, _ path: String) throws -> mode_t {
    try folder.fileSystem.attributes(try folder.node(path)).st_mode & 0o7777
  }

  @Test(arguments: [
    (mode_t(0o6755), mode_t(0o0755)), (0o4644, 0o0644), (0o2644, 0o2644), (0o2755, 0o0755),
  ])
  func aWriterWhoIsNotRootClearsThem(before: mode_t, after: mode_t) throws {
    let folder = try Folder()
    try folder.store(Array("photo".utf8), as: "a")
    try folder.change("a") { $0.mode = before }
    let handle = try folder.open("a", flags: O_RDWR)
    defer { folder.fileSystem.release(handle) }
    try folder.fileSystem.dropSetID(ofOpen: handle, for: Self.root)
    #expect(try mode(folder, "a") == before)
    try folder.fileSystem.dropSetID(ofOpen: handle, for: Self.somebody)
    #expect(try mode(folder, "a") == after)
    try folder.write(handle, Array("PHOTO".utf8))
    try folder.fileSystem.flush(handle)
    #expect(try mode(folder, "a") == after)
  }

  @Test func soDoesWhoEmptiesTheFile() throws {
    let folder = try Folder()
    try folder.store(Array("photo".utf8), as: "a")
    try folder.change("a") { $0.mode = 0o4755 }
    try folder.fileSystem.dropSetID(of: try folder.node("a"), for: Self.somebody, isOpen: false)
    #expect(try mode(folder, "a") == 0o755)
  }

  @Test func ofAFileThatIsNotStoredYet() throws {
    let folder = try Folder()
    let handle = try folder.create("a")
    defer { folder.fileSystem.release(handle) }
    try folder.change("a") { $0.mode = 0o6755 }
    try folder.fileSystem.dropSetID(ofOpen: handle, for: Self.somebody)
    #expect(try mode(folder, "a") == 0o755)
  }

  @Test func anOwnerSetsThemAgain() throws {
    let folder = try Folder()
    try folder.store(Array("photo".utf8), as: "a")
    let handle = try folder.open("a", flags: O_RDWR)
    defer { folder.fileSystem.release(handle) }
    for _ in 0..<2 {
      try folder.change("a") { $0.mode = 0o4755 }
      try folder.fileSystem.dropSetID(ofOpen: handle, for: Self.somebody)
      #expect(try mode(folder, "a") == 0o755)
    }
    try folder.change("a") { $0.mode = 0o4755 }
    try folder.write(handle, Array("again".utf8))
    try folder.fileSystem.flush(handle)
    #expect(try mode(folder, "a") == 0o4755)
  }

  @Test func aNewOwnerClearsThem() throws {
    let folder = try Folder()
    let handle = try folder.create("a")
    defer { folder.fileSystem.release(handle) }
    try folder.change("a") { $0.mode = 0o6755 }
    try folder.change("a") { $0.user = geteuid() }
    #expect(try mode(folder, "a") == 0o755)
  }
}
