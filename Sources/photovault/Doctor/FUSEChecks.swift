import Glibc
import Platform

/// Whether the kernel and fusermount3 let this user mount.
enum FUSEChecks {
  static func findings() -> [Finding] { [device(), helper(), others()] }

  private static func device() -> Finding {
    let check = "fuse-device"
    do throws(Errno) {
      let file = try Syscalls.open(FileName("/dev/fuse"), flags: O_RDWR)
      guard try Syscalls.status(file.rawValue).st_mode & S_IFMT == mode_t(Glibc.S_IFCHR) else {
        return .problem(
          check, "/dev/fuse is not a device",
          do: "as root: rm /dev/fuse && mknod -m 666 /dev/fuse c 10 229")
      }
      return .ok(check, "/dev/fuse can be opened")
    } catch {
      let advice =
        switch error {
        case .noSuchEntry, Errno(ENODEV), .noSeekTarget:
          "as root: modprobe fuse; a container needs the device passed in (--device /dev/fuse)"
        case .permissionDenied: "as root: chmod 666 /dev/fuse, its mode on most systems"
        default: "a container has to allow the device (--device /dev/fuse)"
        }
      return .problem(check, "/dev/fuse can't be opened: \(error)", do: advice)
    }
  }

  private static func helper() -> Finding {
    let check = "fusermount3"
    let name = "fusermount3"
    let install = "install the package fuse3"
    guard let path = Programs.path(of: name), let status = SystemFile.status(path) else {
      return geteuid() == 0
        ? .ok(check, "\(name) is not installed; root needs none")
        : .problem(check, "\(name) is not installed", do: install)
    }
    if geteuid() == 0 { return .ok(check, "\(path) is there; root needs none") }
    guard status.st_mode & S_ISUID != 0, status.st_uid == 0 else {
      return .problem(
        check, "\(path) does not run as root, so it can't mount",
        do: "as root: chown root \(path) && chmod 4755 \(path)")
    }
    var place = statvfs()
    if statvfs(path, &place) == 0, place.f_flag & 2 != 0 {  // ST_NOSUID, sys/statvfs.h
      return .problem(
        check, "\(path) is on a disk mounted with nosuid, so it can't mount",
        do: "mount that disk without nosuid, or install fuse3 elsewhere")
    }
    let lines = SystemFile.table("/proc/self/status") ?? []
    if lines.contains(["NoNewPrivs:", "1"]) {
      return .problem(
        check, "this process may not gain privileges, so \(path) can't mount",
        do: "run photovault outside of this sandbox (NoNewPrivileges in a unit, flatpak, ...)")
    }
    guard access("/etc/mtab", R_OK) == 0 else {
      return .warning(
        check, "/etc/mtab can't be read, so \(path) can mount, but not unmount",
        do: "as root: ln -sf ../proc/self/mounts /etc/mtab")
    }
    return .ok(check, "\(path) can mount for this user")
  }

  /// Not needed but for `-o allow_other`, so never more than a remark.
  private static func others() -> Finding {
    let lines = SystemFile.table("/etc/fuse.conf") ?? []
    let isAllowed = geteuid() == 0 || lines.contains { $0.first == "user_allow_other" }
    return .ok(
      "allow-other",
      isAllowed
        ? "-o allow_other may be used"
        : "-o allow_other may not be used: /etc/fuse.conf has no line 'user_allow_other'")
  }
}

enum Programs {
  /// Where a shell would find `name`.
  static func path(of name: String) -> String? {
    let places = (try? Home.environment("PATH")) ?? "/usr/local/bin:/usr/bin:/bin"
    return places.split(separator: ":").map { "\($0)/\(name)" }.first { access($0, X_OK) == 0 }
  }
}
