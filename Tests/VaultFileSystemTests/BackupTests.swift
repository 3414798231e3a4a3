import Foundation
import Glibc
import Testing
import VaultFileSystem

/// Programs that work on the vault's directory while it is mounted.
@Suite struct BackupTests {
  /// A backup by `cp -al` or `rsync --link-dest` holds hard links of the blobs: a photo that is
  /// edited afterwards is stored, and the backup keeps what it has.
  @Test(.timeLimit(.minutes(1))) func aBackupOfHardLinksKeepsItsVersions() throws {
    let folder = try Folder()
    try folder.store(pattern(100_000), as: "photo.jpg")
    let name = try #require(folder.stored().first)
    let backup = "\(folder.directory).backup"
    defer { unlink(backup) }
    try #require(link("\(folder.directory)/\(name)", backup) == 0)
    let before = try Data(contentsOf: URL(fileURLWithPath: backup))

    let handle = try folder.open("photo.jpg", flags: O_RDWR)
    try folder.write(handle, Array("edited".utf8), at: 500)
    try folder.close(handle)

    #expect(try Data(contentsOf: URL(fileURLWithPath: backup)) == before)
    try folder.remount()
    var wanted = pattern(100_000)
    wanted.replaceSubrange(500..<506, with: Array("edited".utf8))
    #expect(try folder.contents("photo.jpg") == wanted)
    #expect(try folder.stored() == [name])
  }
}
