import CFUSE
import Testing

@testable import FUSESession

@Suite struct ConnectionTests {
  private func agreed(capable: UInt32, proposed: UInt32 = 0) -> fuse_conn_info {
    var connection = fuse_conn_info()
    connection.capable = capable
    connection.want = proposed
    connection.max_write = .max
    connection.max_readahead = 131_072
    Connection.configure(&connection)
    return connection
  }

  @Test func asksForNothingTheKernelLacks() {
    #expect(agreed(capable: 0).want == 0)
  }

  @Test func pagesStayUntilWeSayOtherwise() {
    let want = agreed(capable: .max, proposed: .max).want
    #expect(want & UInt32(FUSE_CAP_EXPLICIT_INVAL_DATA) != 0)
    #expect(want & UInt32(FUSE_CAP_AUTO_INVAL_DATA) == 0)
  }

  @Test func attributesAlwaysComeWithTheNames() {
    let want = agreed(capable: .max, proposed: .max).want
    #expect(want & UInt32(FUSE_CAP_READDIRPLUS) != 0)
    #expect(want & UInt32(FUSE_CAP_READDIRPLUS_AUTO) == 0)
  }

  @Test func theKernelNeverReordersWrites() {
    #expect(agreed(capable: .max, proposed: .max).want & UInt32(FUSE_CAP_WRITEBACK_CACHE) == 0)
  }

  @Test func buffersStaySmall() {
    let connection = agreed(capable: .max)
    #expect(connection.max_write == 256 << 10)
    #expect(connection.max_readahead == 131_072)
  }
}
