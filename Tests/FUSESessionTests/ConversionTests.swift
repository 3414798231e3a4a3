import CFUSE
import Glibc
import Platform
import Testing
import VaultFileSystem

@testable import FUSESession

@Suite struct ConversionTests {
  @Test func onlyWhatTheMaskNamesChanges() {
    var attributes = stat()
    attributes.st_mode = 0o644
    attributes.st_uid = 7
    attributes.st_gid = 8
    attributes.st_size = 9
    attributes.st_mtim = timespec(tv_sec: 10, tv_nsec: 11)
    let changes = AttributeChanges(attributes, mask: FUSE_SET_ATTR_GID | FUSE_SET_ATTR_MTIME)
    #expect(changes.mode == nil && changes.user == nil && changes.size == nil)
    #expect(changes.accessTime == nil)
    #expect(changes.group == 8)
    #expect(changes.modificationTime?.tv_sec == 10 && changes.modificationTime?.tv_nsec == 11)
  }

  @Test func nowIsTheClocksTime() throws {
    let before = time(nil)
    let mask = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW
    let changes = AttributeChanges(stat(), mask: mask)
    #expect(try #require(changes.accessTime).tv_sec >= before)
  }

  @Test(arguments: [(255, true), (256, false), (1024, false)])
  func namesHave255BytesAtMost(count: Int, fits: Bool) {
    let name = [CChar](repeating: 110, count: count) + [0]
    let result = Result { () throws(FileSystemError) in try FileName(component: name) }
    switch result {
    case .success(let name): #expect(fits && name.count == count)
    case .failure(let error): #expect(!fits && error.errno == .nameTooLong)
    }
  }

  @Test(arguments: [
    ("user.comment", nil), ("security.capability", Errno.notSupported),
    ("trusted.overlay", .notSupported), ("system.posix_acl_access", .notSupported),
    ("unheard.of", .notSupported),
  ])
  func onlyUserAttributesReachTheDisk(name: String, answer: Errno?) {
    let kind = AttributeClass(FileName(name))
    #expect(failure { () throws(FileSystemError) in try kind.checkStored() } == answer)
  }

  private func failure(_ body: () throws(FileSystemError) -> Void) -> Errno? {
    do throws(FileSystemError) {
      try body()
      return nil
    } catch { return error.errno }
  }
}
