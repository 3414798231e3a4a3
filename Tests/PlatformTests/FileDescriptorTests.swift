import Glibc
import Platform
import Testing

@Suite struct FileDescriptorTests {
  private struct Pipe: ~Copyable {
    let reading: FileDescriptor
    private var writing: FileDescriptor?

    init() throws {
      let ends = try Self.makeEnds()
      reading = FileDescriptor(owning: ends[0])
      writing = FileDescriptor(owning: ends[1])
    }

    private static func makeEnds() throws -> [CInt] {
      var ends: [CInt] = [0, 0]
      guard pipe(&ends) == 0, fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0 else {
        throw Errno.current
      }
      return ends
    }

    mutating func takeWriting() throws -> FileDescriptor {
      guard let taken = writing.take() else { throw Errno.badDescriptor }
      return taken
    }

    /// At the end is a pipe whose writers are all closed.
    var isAtEnd: Bool {
      var byte: UInt8 = 0
      return read(reading.rawValue, &byte, 1) == 0
    }
  }

  @Test func itIsClosedWhenItsOwnerGoesAway() throws {
    var pipe = try Pipe()
    func drop(_ descriptor: consuming FileDescriptor) {}
    let writing = try pipe.takeWriting()
    var isAtEnd = pipe.isAtEnd
    #expect(!isAtEnd)
    drop(writing)
    isAtEnd = pipe.isAtEnd
    #expect(isAtEnd)
  }

  @Test func aDuplicateKeepsItOpen() throws {
    var pipe = try Pipe()
    let writing = try pipe.takeWriting()
    let duplicate = try writing.duplicate()
    try writing.close()
    var isAtEnd = pipe.isAtEnd
    #expect(!isAtEnd)
    try duplicate.close()
    isAtEnd = pipe.isAtEnd
    #expect(isAtEnd)
  }

  @Test func releasingLeavesItOpen() throws {
    var pipe = try Pipe()
    let number = try pipe.takeWriting().release()
    var isAtEnd = pipe.isAtEnd
    #expect(!isAtEnd)
    #expect(Glibc.close(number) == 0)
    isAtEnd = pipe.isAtEnd
    #expect(isAtEnd)
  }
}

@Suite struct ProcessHardeningTests {
  @Test func theDescriptorLimitIsRaisedToTheHardOne() {
    ProcessHardening.raiseDescriptorLimit()
    var limit = rlimit()
    #expect(getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
    #expect(limit.rlim_cur == limit.rlim_max)
  }
}
