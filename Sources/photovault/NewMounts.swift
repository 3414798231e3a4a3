import FUSESession
import Glibc
import Platform

/// This user's mounts of one source that were not there when this was made: the one that this process
/// makes, wherever it lands, and those that others make meanwhile.
struct NewMounts {
  private let source: String
  private let former: Set<MountTable.Entry>

  init(of source: String) throws(CommandError) {
    self.source = source
    former = Set(try Self.mounts(of: source))
  }

  /// Whether one is at `mountPoint`, a path without symbolic links.
  func contains(_ mountPoint: FileName) throws(CommandError) -> Bool {
    try current().contains { $0.mountPoint == mountPoint }
  }

  /// Takes the one of this process away, once its connection is closed. Others' answer.
  func detachDead() {
    for mount in (try? current()) ?? [] where MountPoint.isDead(mount.mountPoint.description) {
      do throws(Errno) { try Unmount.detach(mount.mountPoint) } catch {
        Log.error("the dead mount at \(mount.mountPoint) can't be taken away: \(error)")
      }
    }
  }

  private func current() throws(CommandError) -> [MountTable.Entry] {
    try Self.mounts(of: source).filter { !former.contains($0) }
  }

  private static func mounts(of source: String) throws(CommandError) -> [MountTable.Entry] {
    try about("/proc/self/mountinfo") { () throws(Errno) in
      try MountTable.current().entries.filter {
        $0.type == MountTable.photovaultType && $0.source == source && $0.user == getuid()
      }
    }
  }
}
