import Glibc
import Platform
import Testing

@Suite struct ErrnoTests {
  @Test(arguments: [
    (Errno.noSpace, "No space left on device"),
    (.permissionDenied, "Permission denied"),
    (.inputOutput, "Input/output error"),
    (.nameTooLong, "File name too long"),
    (.noSuchEntry, "No such file or directory"),
  ])
  func theTextIsTheCLibrarys(_ error: Errno, _ text: String) {
    #expect(error.description == text)
    #expect("\(error)" == text)
  }

  @Test func anUnknownNumberIsStillNamed() {
    #expect(Errno(4242).description.contains("4242"))
    #expect(Errno(-1).description.contains("-1"))
  }

  @Test func currentIsTheCallingThreadsNumber() {
    errno = EDQUOT
    #expect(Errno.current == .quotaExceeded)
    #expect(close(-1) == -1)
    #expect(Errno.current == .badDescriptor)
  }

  @Test func equalNumbersAreEqual() {
    #expect(Errno(ENOSPC) == Errno(rawValue: ENOSPC))
    #expect(Set([Errno.noSpace, Errno(ENOSPC), .exists]).count == 2)
  }
}
