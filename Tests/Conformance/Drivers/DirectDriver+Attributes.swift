package import Glibc
package import Platform
import VaultFileSystem

/// Attributes. Source of what the kernel does itself: fs/attr.c, fs/open.c and fs/xattr.c of Linux.
extension DirectDriver {
  /// The node that a call is about, with its attributes.
  private func subject(
    _ subject: Subject, _ fileSystem: FileSystem, _ walk: inout Walk
  ) throws(FileSystemError) -> (NodeID, stat) {
    switch subject {
    case .path(let path):
      let (place, node) = try walk.existing(path, follows: true)
      return (node, place.status)
    case .link(let path):
      let (place, node) = try walk.existing(path, follows: false)
      return (node, place.status)
    case .handle(let handle):
      let node = try find(handle).node
      return (node, try fileSystem.attributes(node))
    }
  }

  private func change(
    _ subject: Subject, _ make: (stat) throws(FileSystemError) -> AttributeChanges
  ) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (node, status) = try self.subject(subject, fileSystem, &walk)
      let changes = try make(status)
      let answer = try fileSystem.setAttributes(node, changes)
      // The kernel takes the answer for the truth.
      let now = try fileSystem.attributes(node)
      if answer.st_size != now.st_size || answer.st_mode != now.st_mode
        || answer.st_uid != now.st_uid || answer.st_gid != now.st_gid
        || answer.st_mtim.total != now.st_mtim.total || answer.st_ino != now.st_ino
      {
        throw FileSystemError(.stale)
      }
    }
  }

  package func status(_ subject: Subject) throws(Errno) -> stat {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      try self.subject(subject, fileSystem, &walk).1
    }
  }

  package func truncate(_ subject: Subject, to size: Int64) throws(Errno) {
    if case .handle(let handle) = subject {
      try operate { (_, _) throws(FileSystemError) in
        let isWritable = try find(handle).isWritable
        if size < 0 || !isWritable { throw FileSystemError(.invalidArgument) }
      }
    }
    if size < 0 { throw .invalidArgument }
    try change(subject) { status throws(FileSystemError) in
      if status.st_mode & S_IFMT == S_IFDIR { throw FileSystemError(.isADirectory) }
      if status.st_mode & S_IFMT != S_IFREG { throw FileSystemError(.invalidArgument) }
      var changes = AttributeChanges()
      changes.size = size
      return changes
    }
  }

  package func setMode(_ subject: Subject, _ mode: mode_t) throws(Errno) {
    try change(subject) { status throws(FileSystemError) in
      var changes = AttributeChanges()
      changes.mode = status.st_mode & S_IFMT | mode & 0o7777
      return changes
    }
  }

  package func setOwner(
    _ subject: Subject, _ user: uid_t, _ group: gid_t
  ) throws(Errno) {
    try change(subject) { status throws(FileSystemError) in
      var changes = AttributeChanges()
      changes.user = user == .max ? nil : user
      changes.group = group == .max ? nil : group
      // Who changes a program's owner takes its privileges.
      if status.st_mode & S_IFMT != S_IFDIR {
        var mode = status.st_mode & ~S_ISUID
        if mode & S_IXGRP != 0 { mode &= ~S_ISGID }
        if mode != status.st_mode { changes.mode = mode }
      }
      return changes
    }
  }

  package func setTimes(
    _ subject: Subject, _ access: timespec, _ modification: timespec
  ) throws(Errno) {
    func resolved(_ time: timespec) -> timespec? {
      if time.tv_nsec == timespec.omit.tv_nsec { return nil }
      guard time.tv_nsec == timespec.now.tv_nsec else { return time }
      var now = timespec()
      clock_gettime(CLOCK_REALTIME, &now)
      return now
    }
    try change(subject) { _ throws(FileSystemError) in
      var changes = AttributeChanges()
      changes.accessTime = resolved(access)
      changes.modificationTime = resolved(modification)
      return changes
    }
  }

  package func extendedAttribute(
    _ subject: Subject, _ name: FileName
  ) throws(Errno) -> [UInt8] {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (node, _) = try self.subject(unfollowed(subject), fileSystem, &walk)
      return try fileSystem.extendedAttribute(node, name)
    }
  }

  package func extendedAttributeNames(_ subject: Subject) throws(Errno) -> [FileName] {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (node, _) = try self.subject(unfollowed(subject), fileSystem, &walk)
      return try fileSystem.extendedAttributeNames(node)
    }
  }

  package func setExtendedAttribute(
    _ subject: Subject, _ name: FileName, _ value: [UInt8], flags: CInt
  ) throws(Errno) {
    let largestName = 255  // XATTR_NAME_MAX
    let largestValue = 65536  // XATTR_SIZE_MAX
    if name.count > largestName { throw .range }
    if value.count > largestValue { throw Errno(E2BIG) }
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (node, _) = try self.subject(unfollowed(subject), fileSystem, &walk)
      try fileSystem.setExtendedAttribute(node, name, value, flags: flags)
    }
  }

  package func removeExtendedAttribute(
    _ subject: Subject, _ name: FileName
  ) throws(Errno) {
    try operate { (fileSystem, walk) throws(FileSystemError) in
      let (node, _) = try self.subject(unfollowed(subject), fileSystem, &walk)
      try fileSystem.removeExtendedAttribute(node, name)
    }
  }

  /// The drivers use the calls that don't follow links, like `getfattr -h`.
  private func unfollowed(_ subject: Subject) -> Subject {
    if case .path(let path) = subject { .link(path) } else { subject }
  }
}
