import Platform
import Testing

@testable import FUSESession

@Suite struct MountTableTests {
  private static let table = MountTable(
    parsing: Array(
      #"""
      22 27 0:21 / /proc rw,relatime - proc proc rw
      61 27 0:48 / /home/a/My\040Photos rw,nosuid shared:7 master:1 - fuse.photovault photovault:alice rw,user_id=1000,group_id=1000
      62 61 0:49 / /home/a/My\040Photos/disk rw - tmpfs tmpfs rw
      63 27 0:50 / /srv/back\134slash rw - fuse.photovault photovault:b\040ob rw,user_id=0,group_id=0
      64 27 0:51 / /srv/back\134slash rw - ext4 /dev/sda1 rw
      broken line
      65 27 0:52 / /srv - fuse.photovault
      """#.utf8))

  @Test func readsTypeSourceAndUser() throws {
    let mount = try #require(Self.table.top(at: FileName("/home/a/My Photos")))
    #expect(mount.type == "fuse.photovault")
    #expect(mount.source == "photovault:alice")
    #expect(mount.user == 1000)
  }

  @Test func theLastMountAtAPlaceIsOnTop() {
    #expect(Self.table.top(at: FileName(#"/srv/back\slash"#))?.type == "ext4")
  }

  @Test func linesThatAreIncompleteAreLeftOut() {
    #expect(Self.table.entries.count == 5)
    #expect(Self.table.top(at: FileName("/srv")) == nil)
  }

  @Test func escapedBlanksInTheSourceAreRead() {
    #expect(Self.table.entries.contains { $0.source == "photovault:b ob" && $0.user == 0 })
  }

  @Test func thisProcessHasAMountAtTheRoot() throws {
    #expect(try MountTable.current().top(at: FileName("/")) != nil)
  }
}
