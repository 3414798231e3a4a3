import FUSESession
import Glibc
import Platform
import SecretStore

/// Whether accounts and vaults are where they are safe, and what desktop programs keep.
struct StorageChecks {
  let home: Home

  func findings() -> [Finding] {
    var findings = [accounts()]
    var disks: [(path: String, device: dev_t)] = []
    func add(_ path: String) {
      guard let status = SystemFile.status(path) else { return }
      if !disks.contains(where: { $0.device == status.st_dev }) {
        disks.append((path, status.st_dev))
      }
    }
    add(existingParent(of: home.path))
    for vault in vaults() {
      findings.append(Self.check(vault.user, vault.path))
      add(vault.path)
    }
    findings += disks.map { Self.space($0.path) }
    findings.append(thumbnails())
    return findings
  }

  // MARK: Accounts

  private func accounts() -> Finding {
    let check = "accounts"
    guard let status = SystemFile.status(home.accounts) else {
      let parent = existingParent(of: home.accounts)
      return access(parent, W_OK | X_OK) == 0
        ? .ok(check, "no account yet; they will be in \(home.accounts)")
        : .problem(
          check, "\(home.accounts) can't be made: \(parent) is not writable",
          do: "make it writable, or give --home DIR")
    }
    let isOwn = status.st_uid == geteuid()
    guard isOwn || geteuid() == 0, access(home.accounts, R_OK | X_OK) == 0 else {
      return .problem(
        check, "\(home.accounts) is not this user's", do: "chown it, or give --home DIR")
    }
    guard status.st_mode & 0o77 == 0 else {
      return .warning(
        check, "others may look into \(home.accounts)", do: "chmod 700 \(home.accounts)")
    }
    return .ok(check, "\(home.accounts) is nobody else's")
  }

  private func existingParent(of path: String) -> String {
    var path = path[...]
    while path.count > 1, SystemFile.status(String(path)) == nil {
      path = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
    }
    return path.isEmpty ? "/" : String(path)
  }

  // MARK: Vaults

  /// The Secret Service is not asked: it may be locked, or hang.
  private func vaults() -> [(user: String, path: String)] {
    let stores = Accounts.store(home)
    guard let names = try? stores.names() else { return [] }
    return names.compactMap { name in
      let path =
        (try? stores.kind(of: name)) == .secretService
        ? (try? stores.secretService.reference(name))?.vaultPath
        : (try? stores.lookUp(name))?.vaultPath
      return path.map { (name.text, $0) }
    }
  }

  private static func check(_ user: String, _ path: String) -> Finding {
    do throws(Errno) {
      let directory = try Syscalls.open(FileName(path), flags: O_RDONLY | O_DIRECTORY)
      return try check(user, path, directory.rawValue)
    } catch {
      return .warning(
        "vault", "the vault of '\(user)' can't be opened: \(path): \(error)",
        do: "is its disk there? if it moved: photovault recover '\(user)' --vault DIR")
    }
  }

  private static func check(
    _ user: String, _ path: String, _ directory: CInt
  ) throws(Errno) -> Finding {
    let check = "vault"
    let status = try Syscalls.status(directory)
    let kind = FileSystemKind(of: MountPoint.realPath(path) ?? path)
    let lacks = kind.lacks ?? probe(directory)
    if !lacks.isEmpty {
      return .warning(
        check,
        "the vault of '\(user)' is on a disk (\(kind.name)) without "
          + lacks.joined(separator: " and "),
        do: "photos are safe there, but \(FileSystemKind.consequence); a Linux disk has them")
    }
    if kind.isRemote {
      return .warning(
        check, "the vault of '\(user)' is on another machine's disk (\(kind.name))",
        do: "mount it on one machine at a time; without the network programs wait for it")
    }
    if status.st_mode & 0o77 != 0 {
      return .warning(
        check, "others may look into the vault of '\(user)', at names and sizes",
        do: "chmod 700 \(path)")
    }
    return .ok(check, "the vault of '\(user)' is in \(path) (\(kind.name))")
  }

  /// By a file that has no name: nothing of it is left.
  private static func probe(_ directory: CInt) -> [String] {
    do throws(Errno) {
      let file = try Syscalls.openTemporary(in: directory, mode: 0o600)
      return hasAttributes(file.rawValue) ? [] : ["extended attributes"]
    } catch { return NamelessFile.isUnknown(error) ? ["nameless files"] : [] }
  }

  private static func hasAttributes(_ file: CInt) -> Bool {
    do throws(Errno) {
      try Syscalls.setExtendedAttribute(file, FileName("user.photovault.probe"), [1])
      return true
    } catch { return error != .notSupported }
  }

  // MARK: The rest

  private static let scarce: UInt64 = 1 << 30

  private static func space(_ path: String) -> Finding {
    let check = "space"
    var status = statvfs()
    guard statvfs(path, &status) == 0 else {
      return .warning(check, "\(path): \(Errno.current)", do: "is its disk there?")
    }
    if status.f_flag & 1 != 0 {  // ST_RDONLY, sys/statvfs.h
      return .warning(
        check, "the disk of \(path) is read-only", do: "mount with --read-only, or make it writable"
      )
    }
    let free = UInt64(status.f_bavail) * UInt64(status.f_frsize)
    let text = free >= 10 << 30 ? "\(free >> 30) GiB" : "\(free >> 20) MiB"
    return free >= scarce
      ? .ok(check, "\(text) are free on the disk of \(path)")
      : .warning(
        check, "only \(text) are free on the disk of \(path)",
        do: "make room: a change of a photo writes it anew before the old one goes")
  }

  private func thumbnails() -> Finding {
    let check = "thumbnails"
    let count = DesktopTraces.remainCount
    if count > 0 {
      return .warning(
        check, "thumbnails of photos of \(count) ended mount(s) may still be there",
        do: "photovault lock")
    }
    let user = (try? Home.userDirectory()) ?? ""
    let cache = (try? Home.environment("XDG_CACHE_HOME")) ?? user + "/.cache"
    let path = cache + "/thumbnails"
    guard let status = SystemFile.status(path) else {
      return .ok(check, "there is no thumbnail")
    }
    if status.st_mode & 0o77 != 0, SystemFile.status(cache).map({ $0.st_mode & 0o77 != 0 }) == true
    {
      return .warning(
        check, "others may look at thumbnails in \(path) while a folder is unlocked",
        do: "chmod 700 \(path)")
    }
    return .ok(check, "thumbnails of photos are removed at lock, and nobody else sees them before")
  }
}

/// What the disk below a directory is, as the table of mounts calls it.
struct FileSystemKind {
  let name: String

  static let consequence =
    "reading large ones is slower, and hard links or their other attributes may be refused"

  /// `path`: without symbolic links.
  init(of path: String) {
    let entries = (try? MountTable.current())?.entries ?? []
    // The longest mount point above it; of several at one place the last one is on top.
    let above = entries.filter { entry in
      let point = entry.mountPoint.description
      return point == "/" || path == point || path.hasPrefix(point + "/")
    }
    let length = above.map(\.mountPoint.count).max()
    name = above.last { $0.mountPoint.count == length }?.type ?? "unknown"
  }

  var isRemote: Bool {
    ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "fuse.sshfs", "fuse.rclone"].contains(name)
  }

  /// What it is known to lack; nil: has to be tried.
  var lacks: [String]? {
    ["vfat", "msdos", "exfat"].contains(name)
      ? ["hard links", "extended attributes", "nameless files"] : nil
  }
}
