import Glibc
package import Platform

/// Taking a mount away: root asks the kernel, everybody else fusermount3.
package enum Unmount {
  private static let noFollow: CInt = 8  // UMOUNT_NOFOLLOW, sys/mount.h
  private static let lazily: CInt = 2  // MNT_DETACH, sys/mount.h

  /// Throws EBUSY while a program has a file or directory of it open; nothing has changed then.
  package static func orderly(_ mountPoint: FileName) throws(Errno) {
    try unmount(mountPoint, flags: noFollow, fusermountOptions: ["-u"])
  }

  /// Takes it out of the tree of names at once. Programs keep what they have open.
  package static func detach(_ mountPoint: FileName) throws(Errno) {
    try unmount(mountPoint, flags: noFollow | lazily, fusermountOptions: ["-u", "-z"])
  }

  private static func unmount(
    _ mountPoint: FileName, flags: CInt, fusermountOptions: [String]
  ) throws(Errno) {
    if mountPoint.withCString({ umount2($0, flags) }) == 0 { return }
    let error = Errno.current
    guard error == .notPermitted else { throw error }
    // -q: it would print on our standard error what is thrown here.
    let words = ["fusermount3"] + fusermountOptions + ["-q", "--"]
    let child = try ChildProcess.spawn(
      "fusermount3", words.map { FileName($0) } + [mountPoint], descriptors: [nil, nil, nil])
    // It tells success from failure, not one failure from another; busy is the one to expect.
    if try ChildProcess.wait(for: child) != 0 { throw .busy }
  }
}
