import CLinux
package import Glibc

/// Modes, owners, times and extended attributes.
extension Syscalls {
  /// "fchmod".
  package static func setMode(_ fd: CInt, _ mode: mode_t) throws(Errno) {
    try check(.setAttributes) { fchmod(fd, mode) }
  }

  /// "fchmodat": symbolic links are followed, so callers know the kind first.
  package static func setMode(
    of name: FileName, in directory: CInt, _ mode: mode_t
  ) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.setAttributes) { fchmodat(directory, cName, mode, 0) }
    }
  }

  /// "fchown"; `uid_t.max` and `gid_t.max` leave that one as it is.
  package static func setOwner(_ fd: CInt, _ user: uid_t, _ group: gid_t) throws(Errno) {
    try check(.setAttributes) { fchown(fd, user, group) }
  }

  /// "fchownat" with AT_SYMLINK_NOFOLLOW.
  package static func setOwner(
    of name: FileName, in directory: CInt, _ user: uid_t, _ group: gid_t
  ) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.setAttributes) { fchownat(directory, cName, user, group, AT_SYMLINK_NOFOLLOW) }
    }
  }

  /// "futimens".
  package static func setTimes(
    _ fd: CInt, access: timespec, modification: timespec
  ) throws(Errno) {
    let times = [access, modification]
    try check(.setAttributes) { futimens(fd, times) }
  }

  /// "utimensat" with AT_SYMLINK_NOFOLLOW.
  package static func setTimes(
    of name: FileName, in directory: CInt, access: timespec, modification: timespec
  ) throws(Errno) {
    let times = [access, modification]
    try name.withCString { cName throws(Errno) in
      try check(.setAttributes) { utimensat(directory, cName, times, AT_SYMLINK_NOFOLLOW) }
    }
  }

  /// "fgetxattr": the whole value. Throws ENODATA where there is none.
  package static func extendedAttribute(
    _ fd: CInt, _ name: FileName
  ) throws(Errno) -> [UInt8] {
    try grown { buffer throws(Errno) in
      try name.withCString { cName throws(Errno) in
        try retrying(.getExtendedAttribute) {
          pv_fgetxattr(fd, cName, buffer.baseAddress, buffer.count)
        }
      }
    }
  }

  /// "getxattrat" of a name in `directory`: fills `buffer` and returns the length; ERANGE where it
  /// is longer, ENOSYS before Linux 6.13.
  package static func extendedAttribute(
    of name: FileName, in directory: CInt, _ attribute: FileName,
    into buffer: UnsafeMutableRawBufferPointer
  ) throws(Errno) -> Int {
    try name.withCString { name throws(Errno) in
      try attribute.withCString { attribute throws(Errno) in
        try retrying(.getExtendedAttribute) {
          pv_getxattrat(directory, name, attribute, buffer.baseAddress, buffer.count)
        }
      }
    }
  }

  /// "flistxattr": the names.
  package static func extendedAttributeNames(_ fd: CInt) throws(Errno) -> [FileName] {
    let list = try grown { buffer throws(Errno) in
      try retrying(.getExtendedAttribute) {
        pv_flistxattr(
          fd, buffer.baseAddress?.assumingMemoryBound(to: CChar.self), buffer.count)
      }
    }
    return list.split(separator: 0).map { FileName(Array($0)) }
  }

  /// "fsetxattr"; `flags`: 0, XATTR_CREATE (1) or XATTR_REPLACE (2).
  package static func setExtendedAttribute(
    _ fd: CInt, _ name: FileName, _ value: [UInt8], flags: CInt = 0
  ) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.setExtendedAttribute) {
        value.withUnsafeBytes { pv_fsetxattr(fd, cName, $0.baseAddress, $0.count, flags) }
      }
    }
  }

  /// "fremovexattr".
  package static func removeExtendedAttribute(_ fd: CInt, _ name: FileName) throws(Errno) {
    try name.withCString { cName throws(Errno) in
      try check(.setExtendedAttribute) { pv_fremovexattr(fd, cName) }
    }
  }

  private static let xattrFirstGuess = 4096  // ext4 holds no more than this in all

  private static func grown(
    _ call: (UnsafeMutableRawBufferPointer) throws(Errno) -> Int
  ) throws(Errno) -> [UInt8] {
    var size = xattrFirstGuess
    while true {
      var bytes = [UInt8](repeating: 0, count: size)
      let result: Result<Int, Errno> = bytes.withUnsafeMutableBytes { buffer in
        do throws(Errno) { return .success(try call(buffer)) } catch { return .failure(error) }
      }
      switch result {
      case .success(let count): return Array(bytes[..<count])
      case .failure(.range) where size < 65536: size = 65536  // XATTR_SIZE_MAX
      case .failure(let error): throw error
      }
    }
  }
}
