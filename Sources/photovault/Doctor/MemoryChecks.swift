import Glibc
import Platform

/// Whether keys and photos in memory may reach a disk.
enum MemoryChecks {
  static func findings() -> [Finding] { [lockedMemory(), swap(), coreDumps()] }

  /// Keys, and a few files being edited. Source: the default of Linux since 5.16.
  private static let enoughLocked: rlim_t = 8 << 20

  private static func lockedMemory() -> Finding {
    let check = "memory-lock"
    var limit = rlimit()
    getrlimit(__rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue), &limit)
    if geteuid() == 0 || limit.rlim_cur == rlim_t.max {
      return .ok(check, "memory can be locked without limit")
    }
    let size = "\(limit.rlim_cur >> 10) KiB"
    if limit.rlim_cur >= enoughLocked { return .ok(check, "\(size) of memory can be locked") }
    return .warning(
      check, "only \(size) of memory can be kept out of swap",
      do: "raise it: '* - memlock 65536' in /etc/security/limits.conf, LimitMEMLOCK= in a unit")
  }

  private static func swap() -> Finding {
    let check = "swap"
    // "Filename Type Size Used Priority"; blanks in names are written \040.
    guard let rows = SystemFile.table("/proc/swaps")?.dropFirst() else {
      return .ok(check, "this system has no swap space")
    }
    let places = rows.compactMap(\.first).map { $0.replacing("\\040", with: " ") }
    if places.isEmpty { return .ok(check, "no swap space is in use") }
    let open = places.filter { !BlockDevice.staysSecret(behind: $0) }
    guard !open.isEmpty else { return .ok(check, "swap space is in memory or encrypted") }
    return .warning(
      check, "swap space is not encrypted: \(open.joined(separator: ", "))",
      do: "encrypt it (cryptswap in /etc/crypttab), or use zram; pages of programs that show "
        + "photos go there")
  }

  private static func coreDumps() -> Finding {
    let check = "core-dumps"
    // Our own limit is 0 by now; the one of who started us is what other programs have.
    let limits = SystemFile.text("/proc/\(getppid())/limits") ?? ""
    let line = limits.split(separator: "\n").first { $0.hasPrefix("Max core file size") }
    let limit = line?.split(separator: " ").dropFirst(4).first.map(String.init)
    let pattern = SystemFile.text("/proc/sys/kernel/core_pattern") ?? ""
    let place = String(pattern.prefix { $0 != "\n" && $0 != " " })
    if limit == "0" || place.isEmpty {
      return .ok(check, "programs that crash leave no core dump")
    }
    return .warning(
      check,
      "a program that crashes while it shows photos leaves them in a core dump (\(place))",
      do: "'ulimit -c 0' before programs start, or Storage=none in coredump.conf; photovault "
        + "itself leaves none")
  }
}

/// What is below a disk.
enum BlockDevice {
  /// Whether all that is written to this device, or to the disk of this file, is encrypted or stays in memory.
  static func staysSecret(behind path: String) -> Bool {
    guard let status = SystemFile.status(path) else { return false }
    let isDevice = status.st_mode & S_IFMT == mode_t(Glibc.S_IFBLK)
    let number = isDevice ? status.st_rdev : status.st_dev
    // gnu_dev_major and gnu_dev_minor of sys/sysmacros.h.
    let major = (number >> 8 & 0xFFF) | (number >> 32 & ~0xFFF)
    let minor = (number & 0xFF) | (number >> 12 & ~0xFF)
    return staysSecret("/sys/dev/block/\(major):\(minor)", depth: 0)
  }

  /// Source: Documentation/ABI/testing/sysfs-block: dm/uuid begins with the target's kind.
  private static func staysSecret(_ device: String, depth: Int) -> Bool {
    if SystemFile.text(device + "/dm/uuid")?.hasPrefix("CRYPT-") == true { return true }
    // zram alone has this file; one with a disk behind it writes there.
    if let backing = SystemFile.text(device + "/backing_dev") { return backing == "none\n" }
    if SystemFile.text(device + "/mm_stat") != nil { return true }
    let below = SystemFile.names(in: device + "/slaves")
    return depth < 8 && !below.isEmpty
      && below.allSatisfy { staysSecret("\(device)/slaves/\($0)", depth: depth + 1) }
  }
}
