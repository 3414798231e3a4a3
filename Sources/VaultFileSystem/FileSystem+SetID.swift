import Glibc
import Platform
import Synchronization

/// Set-user-id and set-group-id bits: a file loses them when somebody who may not keep them changes
/// it. Where the kernel leaves that to the file system (FUSE_HANDLE_KILLPRIV_V2) these come before
/// each write, truncation and allocation. Source: write(2), "man 7 inode".
extension FileSystem {
  package func dropSetID(ofOpen handle: UInt64, for caller: Caller) throws(FileSystemError) {
    if caller.user == 0 { return }
    try dropSetID(of: try fileHandle(handle).file.inode)
  }

  /// `isOpen`: the caller has it open for writing.
  package func dropSetID(
    of node: NodeID, for caller: Caller, isOpen: Bool
  ) throws(FileSystemError) {
    if caller.user == 0 { return }
    try checkOpenable()
    try checkWritable()
    let inode = try asked(node)
    if !isOpen { try require(.write, of: inode) }
    try dropSetID(of: inode)
  }

  private func dropSetID(of inode: Inode) throws(FileSystemError) {
    guard inode.isRegular else { return }
    while inode.hasSetID.exchange(false, ordering: .relaxed) {
      // Says so again if there are some.
      let mode = try attributes(of: inode).st_mode
      let kept = Self.withoutSetID(mode)
      if kept == mode { return }
      var changes = AttributeChanges()
      changes.mode = kept
      do throws(FileSystemError) { try change(inode, changes) } catch {
        // Another program replaced it: the version that is written has no name to take a mode from.
        guard error.errno == .stale else { throw error }
        return
      }
      // It knows of the size that changes, and not of the mode.
      invalidateAttributes(of: inode)
    }
  }

  /// Set-group-id without the right to execute means something else: mandatory locks.
  static func withoutSetID(_ mode: mode_t) -> mode_t {
    mode & ~S_ISUID & ~(mode & S_IXGRP != 0 ? S_ISGID : 0)
  }

  static func hasSetID(_ mode: mode_t) -> Bool { mode & (S_ISUID | S_ISGID) != 0 }
}
