import Glibc
import Platform
import Synchronization

/// A directory outside of the vault that photos are exported to; made when it is first needed.
///
/// Locks: `state`, then that of the directory above; held while it is looked up or made.
final class ExportTarget: Sendable {
  let path: FileName
  private let parent: ExportTarget?
  private let name: FileName
  private let top: OpenDirectory?
  private let state = ConditionLock(State())
  private let children = Mutex<[FileName: ExportTarget]>([:])

  private struct State {
    /// Who works in it keeps it open.
    weak var opened: OpenDirectory?
    var isKnown = false
  }

  /// Closed with its last user.
  final class OpenDirectory: Sendable {
    let descriptor: FileDescriptor

    init(_ descriptor: consuming FileDescriptor) { self.descriptor = descriptor }

    var fd: CInt { descriptor.rawValue }
  }

  /// An open directory.
  init(_ path: FileName, _ descriptor: consuming FileDescriptor) {
    self.path = path
    parent = nil
    name = .empty
    top = OpenDirectory(descriptor)
  }

  private init(_ name: FileName, in parent: ExportTarget) {
    path = parent.path.appending(name)
    self.parent = parent
    self.name = name
    top = nil
  }

  func child(_ name: FileName) -> ExportTarget {
    children.withLock { children in
      if let known = children[name] { return known }
      let child = ExportTarget(name, in: self)
      children[name] = child
      return child
    }
  }

  /// Whether it was opened, and so is there.
  var isKnown: Bool { state.withLock { $0.isKnown } }

  /// Links are not followed: what is in a vault must not lead out of the folder that was named.
  func open() throws(Errno) -> OpenDirectory {
    try state.withLock { state throws(Errno) in
      if let known = state.opened { return known }
      let descriptor = try openNow()
      let isFirst = !state.isKnown
      let opened = OpenDirectory(descriptor)
      if isFirst { Self.removeLeftovers(in: opened.fd) }
      state.opened = opened
      state.isKnown = true
      return opened
    }
  }

  private func openNow() throws(Errno) -> FileDescriptor {
    guard let parent else {
      return try Syscalls.duplicate(top?.fd ?? -1)
    }
    let above = try parent.open()
    let flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW
    do throws(Errno) { return try Syscalls.open(name, in: above.fd, flags: flags) } catch {
      guard error == .noSuchEntry else { throw error }
    }
    try Syscalls.makeDirectory(name, in: above.fd, mode: 0o700)
    return try Syscalls.open(name, in: above.fd, flags: flags)
  }

  /// What an export that was killed left on a disk that doesn't know nameless files.
  private static func removeLeftovers(in directory: CInt) {
    for entry in (try? DirectoryEntries.read(directory)) ?? []
    where entry.isRegular && isTemporary(entry.name) {
      try? Syscalls.unlink(entry.name, in: directory)
    }
  }

  /// `.photovault-XXXXXX.tmp`, exactly.
  private static func isTemporary(_ name: FileName) -> Bool {
    name.count == 22 && name.hasPrefix(".photovault-") && name.hasSuffix(".tmp")
  }
}
