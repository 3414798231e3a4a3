import CFUSE
import Platform

/// What is agreed with the kernel when a mount begins. Source: FUSE_INIT, fuse_common.h.
enum Connection {
  /// Each thread has a buffer of this size; greater ones made writing no faster.
  private static let greatestWrite: CUnsignedInt = 256 << 10

  static func configure(_ connection: inout fuse_conn_info) {
    connection.want = wanted(of: connection.capable, startingWith: connection.want)
    connection.max_write = min(connection.max_write, greatestWrite)
    // max_readahead stays as the kernel offers it, 128 KiB: more has to come from read_ahead_kb.
  }

  private static func wanted(
    of capable: CUnsignedInt, startingWith proposed: CUnsignedInt
  ) -> CUnsignedInt {
    var want = proposed
    // Asked for only where offered: anything else ends the connection.
    for capability in on { want |= bit(capability) & capable }
    for capability in off { want &= ~bit(capability) }
    return want
  }

  private static let on: [Int32] = [
    // Several reads of one file at a time: readahead need not wait for readahead.
    FUSE_CAP_ASYNC_READ,
    // Truncation is part of opening, so that the old photo stays until the new one is complete.
    FUSE_CAP_ATOMIC_O_TRUNC,
    // Lookups and listings of one directory side by side; a directory does its own locking.
    // libfuse passes it on from 3.15 on.
    FUSE_CAP_PARALLEL_DIROPS,
    // Attributes come with the names: four times as fast for `ls -l` (measured).
    FUSE_CAP_READDIRPLUS,
    // Each commit gives a file a new time; its pages stay right and must not be dropped for that.
    FUSE_CAP_EXPLICIT_INVAL_DATA,
    FUSE_CAP_ASYNC_DIO,
  ]

  private static let off: [Int32] = [
    // Goes before EXPLICIT_INVAL_DATA where both are set.
    FUSE_CAP_AUTO_INVAL_DATA,
    // Falls back to listings without attributes, which `ls -l` then asks for one by one.
    FUSE_CAP_READDIRPLUS_AUTO,
    // Halves the speed of writing and reorders it (measured); a blob is one stream.
    FUSE_CAP_WRITEBACK_CACHE,
    // No difference (measured): each byte passes through the cipher in memory anyway.
    FUSE_CAP_SPLICE_READ, FUSE_CAP_SPLICE_WRITE, FUSE_CAP_SPLICE_MOVE,
    // The first version of it. Of the second one `DeviceInterception` talks with the kernel; where
    // that lacks it, it clears set-user-id bits itself, by setattr.
    FUSE_CAP_HANDLE_KILLPRIV,
    // Access lists are not stored.
    FUSE_CAP_POSIX_ACL,
    // The umask is the kernel's to apply, as without access lists it always is.
    FUSE_CAP_DONT_MASK,
    // Locks are the kernel's: no other machine sees this mount.
    FUSE_CAP_POSIX_LOCKS, FUSE_CAP_FLOCK_LOCKS,
    // Would let NFS clients name nodes across mounts, which have no such names.
    FUSE_CAP_EXPORT_SUPPORT,
    // A link's target may change beneath us; reading one costs little.
    FUSE_CAP_CACHE_SYMLINKS,
    // No ioctl is answered.
    FUSE_CAP_IOCTL_DIR,
  ]

  private static func bit(_ capability: Int32) -> CUnsignedInt { CUnsignedInt(capability) }
}
