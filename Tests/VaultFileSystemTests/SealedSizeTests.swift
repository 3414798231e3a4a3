import Glibc
import Platform
import Testing
import VaultStorage

@testable import VaultFileSystem

/// The size that a listing shows is the seal's where there is one, and never costs a byte of a photo.
@Suite struct SealedSizeTests {
  private static let attribute = FileName("user.photovault.place")

  /// Where a photo of the top directory is stored.
  private func stored(_ folder: Folder, after make: () throws -> Void) throws -> String {
    let before = Set(try folder.stored())
    try make()
    return "\(folder.directory)/\(try #require(Set(try folder.stored()).subtracting(before).first))"
  }

  private func size(_ folder: Folder, _ name: String) throws -> Int64 {
    Int64(try folder.fileSystem.attributes(try folder.node(name)).st_size)
  }

  private func overwrite(_ path: String, with other: String) throws {
    let source = try Syscalls.open(FileName(other), flags: O_RDONLY)
    let target = try Syscalls.open(FileName(path), flags: O_WRONLY)
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = try bytes.withUnsafeMutableBytes {
      try Syscalls.read(source.rawValue, into: $0, at: 0)
    }
    try bytes.withUnsafeBytes {
      try Syscalls.write(
        target.rawValue, UnsafeRawBufferPointer(rebasing: $0[..<count]), at: 0)
    }
  }

  private func setTime(_ path: String, _ time: timespec) throws {
    let omitted = timespec(tv_sec: 0, tv_nsec: (1 << 30) - 2)
    try Syscalls.setTimes(
      of: FileName(path), in: AT_FDCWD, access: omitted, modification: time)
  }

  private func time(_ path: String) throws -> timespec {
    try Syscalls.status(of: FileName(path), in: AT_FDCWD).st_mtim
  }

  /// Other programs may write a new version into the old file, whose attributes stay.
  @Test(arguments: [(10, 12), (12, 10), (100_001, 100_007), (400_000, 400_013)])
  func aVersionWrittenOverAnotherListsInItsOwnSize(old: Int, new: Int) throws {
    let folder = try Folder()
    let photo = try stored(folder) { try folder.store(pattern(old), as: "photo") }
    let other = try stored(folder) { try folder.store(pattern(new, seed: 2), as: "other") }
    try overwrite(photo, with: other)
    try folder.remount()
    #expect(try size(folder, "photo") == new)
    #expect(try folder.contents("photo") == pattern(new, seed: 2))
  }

  /// If even the time stays, whoever opens it gets its own size.
  @Test(arguments: [(10, 12), (12, 10), (100_001, 100_007), (400_000, 400_013)])
  func aVersionWithTheOldTimeOpensInItsOwnSize(old: Int, new: Int) throws {
    let folder = try Folder()
    let photo = try stored(folder) { try folder.store(pattern(old), as: "photo") }
    let other = try stored(folder) { try folder.store(pattern(new, seed: 2), as: "other") }
    let time = try time(photo)
    try overwrite(photo, with: other)
    try setTime(photo, time)
    try folder.remount()
    let node = try folder.node("photo")
    #expect(try size(folder, "photo") == old)
    // The kernel looks the name up once more then.
    let refused = #expect(throws: FileSystemError.self) {
      try folder.fileSystem.open(node, flags: O_RDONLY)
    }
    #expect(refused?.errno == .stale)
    #expect(try size(folder, "photo") == new)
    let handle = try folder.fileSystem.open(node, flags: O_RDONLY).handle
    defer { folder.fileSystem.release(handle) }
    #expect(try folder.read(handle, new + 1) == pattern(new, seed: 2))
    // The first read may have made its index anew, which is a change of the file.
    #expect(try size(folder, "photo") == new)
    try folder.change("photo") { $0.mode = 0o600 }
    #expect(try size(folder, "photo") == new)
    let second = try folder.fileSystem.open(node, flags: O_RDONLY).handle
    folder.fileSystem.release(second)
    #expect(try folder.contents("photo") == pattern(new, seed: 2))
  }

  @Test func theSealFollowsTheTimeThatAProgramSets() throws {
    let folder = try Folder()
    let photo = try stored(folder) { try folder.store(pattern(20), as: "photo") }
    for mode: mode_t in [0o644, 0o444] {
      try folder.change("photo") { $0.mode = mode }
      try folder.change("photo") { $0.modificationTime = timespec(tv_sec: -5, tv_nsec: 7) }
      let file = try Syscalls.open(FileName(photo), flags: O_RDONLY)
      let seal = try Syscalls.extendedAttribute(file.rawValue, Self.attribute)
      #expect(
        seal.suffix(8) == withUnsafeBytes(of: Int64(-4_999_999_993).littleEndian, Array.init)[...])
      #expect(Int64(try Syscalls.status(file.rawValue).st_mode) & 0o777 == Int64(mode))
      #expect(try folder.check().counts.unsealed == 0)
    }
  }

  /// What doesn't fit the stored file is no size.
  @Test(arguments: [Int64(-1), 9, 26, 1000, .max]) func aSealsSizeHasToFit(_ told: Int64) throws {
    let folder = try Folder()
    let photo = try stored(folder) { try folder.store(pattern(20), as: "photo") }
    let file = try Syscalls.open(FileName(photo), flags: O_RDONLY)
    var seal = try Syscalls.extendedAttribute(file.rawValue, Self.attribute)
    #expect(seal.count == 32 && Int64(seal[16]) == 20)
    seal.replaceSubrange(16..<24, with: withUnsafeBytes(of: told.littleEndian, Array.init))
    try Syscalls.setExtendedAttribute(file.rawValue, Self.attribute, seal)
    try folder.remount()
    #expect(try size(folder, "photo") == (told == 26 ? 26 : 20))
  }

  /// Of a file of several names, of one without attributes and of one with an older seal.
  @Test func withoutASealItIsThePaddings() throws {
    let folder = try Folder()
    let photo = try stored(folder) { try folder.store(pattern(21), as: "photo") }
    let file = try Syscalls.open(FileName(photo), flags: O_RDONLY)
    let seal = try Syscalls.extendedAttribute(file.rawValue, Self.attribute)
    try Syscalls.setExtendedAttribute(file.rawValue, Self.attribute, Array(seal.prefix(16)))
    try folder.remount()
    #expect(try size(folder, "photo") == 21)
    try Syscalls.removeExtendedAttribute(file.rawValue, Self.attribute)
    try folder.remount()
    #expect(try size(folder, "photo") == 21)
    _ = try folder.fileSystem.link(try folder.node("photo"), as: FileName("second"), in: 1)
    #expect(try size(folder, "second") == 21)
  }
}
