import Glibc

/// An open file descriptor, closed when its owner goes away.
package struct FileDescriptor: ~Copyable, Sendable {
  package let rawValue: CInt

  /// Takes over `rawValue`, which must be open and nobody else's to close.
  package init(owning rawValue: CInt) { self.rawValue = rawValue }

  deinit { _ = Glibc.close(rawValue) }

  /// Gives the number up without closing it.
  package consuming func release() -> CInt {
    let number = rawValue
    discard self
    return number
  }

  /// Closes now and reports what close(2) says: on some disks that is where a write fails.
  package consuming func close() throws(Errno) {
    let number = release()
    // Linux frees the number even when it reports EINTR, so it is not asked twice.
    if Glibc.close(number) != 0, errno != EINTR { throw .current }
  }

  package func duplicate() throws(Errno) -> FileDescriptor {
    try Syscalls.duplicate(rawValue)
  }
}
