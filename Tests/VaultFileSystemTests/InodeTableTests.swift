import Foundation
import Glibc
import Platform
import Testing
import VaultStorage

@testable import VaultFileSystem

/// What is known of files and directories stays bounded, and each keeps what it is known by.
@Suite struct InodeTableTests {
  private static func status(_ inode: UInt64, _ kind: mode_t = S_IFREG) -> stat {
    var status = stat()
    status.st_dev = 7
    status.st_ino = ino_t(inode)
    status.st_mode = kind | 0o600
    return status
  }

  private static func table() -> InodeTable {
    let table = InodeTable()
    _ = table.findOrInsert(status(1, S_IFDIR))
    return table
  }

  @Test func theRootIsNodeOneAndNoNumberComesTwice() throws {
    let table = Self.table()
    #expect(try table.inode(1).isDirectory)
    let first = table.findOrInsert(Self.status(10)).nodeID
    #expect(table.findOrInsert(Self.status(10)).nodeID == first)
    table.forget(first, count: 1)
    #expect(try table.inode(first).number == 10)
    table.forget(first, count: 1)
    #expect(throws: FileSystemError.self) { try table.inode(first) }
    let second = table.findOrInsert(Self.status(10)).nodeID
    #expect(second != first)
    #expect(throws: FileSystemError.self) { try table.inode(first) }
    #expect(table.lookupTotal == 2)
  }

  @Test func twoFilesNeverShowOneNumber() throws {
    let table = Self.table()
    let edited = table.findOrInsert(Self.status(10))
    // A commit put another file in its place, and the disk uses the old one's number again.
    #expect(table.rekey(edited, to: BackingKey(Self.status(11))))
    let next = table.findOrInsert(Self.status(10))
    #expect(edited.number == 10)
    #expect(next.number != 10 && next !== edited)
    #expect(table.findOrInsert(Self.status(11)) === edited)
    #expect(!table.rekey(next, to: BackingKey(Self.status(11))))
    table.forget(edited.nodeID, count: 2)
    #expect(table.findOrInsert(Self.status(11)).number == 11)
    // The same number on another disk below is another file.
    var foreign = Self.status(11)
    foreign.st_dev = 8
    #expect(table.findOrInsert(foreign).number != 11)
  }

  @Test func aDirectoryThatWasForgottenWhileInUseIsTheSameAgain() throws {
    let table = Self.table()
    let directory = table.findOrInsert(Self.status(20, S_IFDIR))
    table.forget(directory.nodeID, count: 1)
    for number in 100..<400 {
      table.forget(table.findOrInsert(Self.status(UInt64(number), S_IFDIR)).nodeID, count: 1)
    }
    let file = table.findOrInsert(Self.status(30))
    #expect(file.nodeID != directory.nodeID)
    #expect(table.findOrInsert(Self.status(20, S_IFDIR)) === directory)
    #expect(try table.inode(directory.nodeID) === directory)
  }

  @Test func aCrowdIsThinnedOutFromTheLeastUsed() throws {
    let table = Self.table()
    let files = (0..<100).map { table.findOrInsert(Self.status(1000 + UInt64($0))) }
    #expect(table.leastUsed(above: 101).isEmpty)
    let used = files[3]
    _ = table.findOrInsert(Self.status(1003))
    var asked: Set<NodeID> = []
    while true {
      let found = table.leastUsed(above: 51)
      if found.isEmpty { break }
      for inode in found {
        asked.insert(inode.nodeID)
        table.forget(inode.nodeID, count: 1)
      }
    }
    #expect(asked.count == 50)
    #expect(!asked.contains(used.nodeID))
    #expect(!asked.contains(Inode.rootID))
  }

  /// A listing of very many folders takes no more descriptors than the least limit of systems.
  @Test(.timeLimit(.minutes(2))) func fewDirectoriesAreOpenAtATime() throws {
    let folder = try Folder(names: .plain)
    let count = OpenDirectories.limit + 100
    func descriptors() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
    }
    let before = try descriptors()
    for number in 0..<count {
      let node = try folder.fileSystem.makeDirectory(
        FileName("d\(number)"), in: 1, mode: 0o755, caller: Folder.me
      ).nodeID
      _ = try folder.fileSystem.makeSymbolicLink(
        FileName("link"), in: node, target: FileName("target"), caller: Folder.me)
    }
    // Beside tests that run at the same time.
    #expect(try descriptors() - before < OpenDirectories.limit + 50)
    for number in [0, 1, count - 1] {
      #expect(try folder.names("d\(number)") == ["link"])
    }
    // One that is removed while it is in use can't be opened again, and needn't be.
    let removed = try folder.node("d5")
    try folder.fileSystem.unlink(FileName("link"), in: removed)
    try folder.fileSystem.removeDirectory(FileName("d5"), in: 1)
    for number in 6..<count { #expect(try folder.names("d\(number)") == ["link"]) }
    #expect(try folder.fileSystem.attributes(removed).st_mode & S_IFMT == S_IFDIR)
  }
}
