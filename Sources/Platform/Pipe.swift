import CLinux
import Glibc

/// Both ends of a pipe; children inherit neither unless told.
package struct Pipe: ~Copyable {
  package let readEnd: FileDescriptor
  package let writeEnd: FileDescriptor

  /// "pipe2".
  package init() throws(Errno) {
    var ends: [CInt] = [-1, -1]
    if pv_pipe2(&ends, O_CLOEXEC) != 0 { throw .current }
    readEnd = FileDescriptor(owning: ends[0])
    writeEnd = FileDescriptor(owning: ends[1])
  }
}
