import CLinux
package import Glibc

/// Who is at the other end of a connected local socket. Source: unix(7), SO_PEERCRED.
package enum LocalPeer {
  /// nil where there is nobody to tell of.
  package static func user(of socket: CInt) -> uid_t? { uid_t(exactly: pv_peer_user(socket)) }

  /// "pidfd_open": a descriptor that is readable once the process there has ended.
  /// Throws ESRCH where it has already.
  package static func process(of socket: CInt) throws(Errno) -> FileDescriptor {
    let number = pv_pidfd_open(pv_peer_process(socket))
    if number < 0 { throw .current }
    return FileDescriptor(owning: number)
  }
}
