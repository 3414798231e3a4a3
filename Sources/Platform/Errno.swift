import Glibc

/// An error number of the operating system. Source: errno(3).
package struct Errno: Error, RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  package let rawValue: CInt

  package init(rawValue: CInt) { self.rawValue = rawValue }
  package init(_ rawValue: CInt) { self.rawValue = rawValue }

  /// The calling thread's `errno`.
  package static var current: Errno { Errno(rawValue: errno) }

  /// The C library's sentence, such as "No space left on device".
  package var description: String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 128) { buffer in
      guard let base = buffer.baseAddress, strerror_r(rawValue, base, buffer.count) == 0 else {
        return "error \(rawValue)"
      }
      return String(cString: base)
    }
  }
}

extension Errno {
  package static let permissionDenied = Errno(EACCES)
  package static let notPermitted = Errno(EPERM)
  package static let noSuchEntry = Errno(ENOENT)
  package static let exists = Errno(EEXIST)
  package static let notADirectory = Errno(ENOTDIR)
  package static let isADirectory = Errno(EISDIR)
  package static let directoryNotEmpty = Errno(ENOTEMPTY)
  package static let invalidArgument = Errno(EINVAL)
  package static let inputOutput = Errno(EIO)
  package static let noSpace = Errno(ENOSPC)
  package static let quotaExceeded = Errno(EDQUOT)
  package static let fileTooLarge = Errno(EFBIG)
  package static let nameTooLong = Errno(ENAMETOOLONG)
  package static let notSupported = Errno(EOPNOTSUPP)
  package static let noSystemCall = Errno(ENOSYS)
  package static let noAttribute = Errno(ENODATA)
  package static let range = Errno(ERANGE)
  package static let busy = Errno(EBUSY)
  package static let badDescriptor = Errno(EBADF)
  package static let stale = Errno(ESTALE)
  package static let interrupted = Errno(EINTR)
  package static let wouldBlock = Errno(EAGAIN)
  package static let readOnly = Errno(EROFS)
  package static let noMemory = Errno(ENOMEM)
  package static let tooManyLinks = Errno(EMLINK)
  package static let tooManySymbolicLinks = Errno(ELOOP)
  package static let crossDevice = Errno(EXDEV)
  package static let notConnected = Errno(ENOTCONN)
  package static let noKey = Errno(ENOKEY)
  package static let noSeekTarget = Errno(ENXIO)
}
