import Glibc
import Platform
import RuntimeLibraries

/// Whether the desktop tells of locked screens, and keeps secrets.
enum SessionChecks {
  static func findings() -> [Finding] {
    [library(), systemBus(), sessionBus(), secretService(), clock()]
  }

  private static let hooks =
    "have the screen locker run 'photovault lock' (README, Lock with the screen)"

  private static func library() -> Finding {
    OptionalLibrary.systemd.isInstalled
      ? .ok("libsystemd", "libsystemd can be loaded")
      : .warning(
        "libsystemd", "libsystemd is not installed: locked screens and suspend go unnoticed",
        do: "install the package libsystemd0, or \(hooks)")
  }

  private static func systemBus() -> Finding {
    let address =
      (try? Home.environment("DBUS_SYSTEM_BUS_ADDRESS"))
      ?? "unix:path=/run/dbus/system_bus_socket"
    return BusSocket.answers(address)
      ? .ok("system-bus", "the system bus answers: logind can tell of suspend and locks")
      : .warning(
        "system-bus", "the system bus does not answer: suspend goes unnoticed",
        do: "install and start dbus and systemd-logind, or \(hooks)")
  }

  private static func sessionBus() -> Finding {
    let runtime = (try? Home.environment("XDG_RUNTIME_DIR")) ?? "/run/user/\(getuid())"
    let address =
      (try? Home.environment("DBUS_SESSION_BUS_ADDRESS")) ?? "unix:path=\(runtime)/bus"
    return BusSocket.answers(address)
      ? .ok("session-bus", "the session bus answers: screen savers can tell of locks")
      : .warning(
        "session-bus", "no session bus answers: the desktop's screen saver goes unnoticed",
        do: "run photovault inside the desktop session, or \(hooks)")
  }

  /// Only for accounts made with `--store secret-service`, so never more than a remark.
  private static func secretService() -> Finding {
    let check = "secret-service"
    let data = (try? Home.environment("XDG_DATA_DIRS")) ?? "/usr/local/share:/usr/share"
    let file = "dbus-1/services/org.freedesktop.secrets.service"
    let provider: String? = data.split(separator: ":").map { String($0) + "/" + file }
      .first { access($0, R_OK) == 0 }
    guard OptionalLibrary.secret.isInstalled else {
      return .ok(check, "not available (libsecret is not installed); accounts are files")
    }
    return .ok(
      check,
      provider == nil
        ? "no program of it is installed to be started by the bus; accounts are files"
        : "libsecret and a program of it are installed")
  }

  private static let firstYear = 2025
  private static let lastYear = 2100

  private static func clock() -> Finding {
    let check = "clock"
    var sinceBoot = timespec()
    if clock_gettime(CLOCK_BOOTTIME, &sinceBoot) != 0 || sinceBoot.tv_sec <= 0 {
      return .warning(
        check, "the kernel has no clock that counts sleep: idle times will be wrong",
        do: "use a kernel with CLOCK_BOOTTIME, or lock by hand")
    }
    var now = time(nil)
    var parts = tm()
    gmtime_r(&now, &parts)
    let year = Int(parts.tm_year) + 1900
    guard (firstYear...lastYear).contains(year) else {
      return .warning(
        check, "the clock says it is \(year): times of photos will be wrong",
        do: "set the clock (timedatectl set-ntp true)")
    }
    return .ok(check, "the clock says it is \(year), and counts sleep")
  }
}

/// Where a D-Bus daemon listens. Source: D-Bus Specification, Server Addresses.
enum BusSocket {
  /// Whether one of the addresses takes a connection. Only local sockets are known.
  static func answers(_ addresses: String) -> Bool {
    addresses.split(separator: ";").contains { address in
      guard address.hasPrefix("unix:") else { return false }
      let pairs = address.dropFirst("unix:".count).split(separator: ",")
        .map { $0.split(separator: "=", maxSplits: 1).map(String.init) }
        .filter { $0.count == 2 }
      return pairs.contains { pair in
        switch pair[0] {
        case "path": connects(unescaped(pair[1]))
        case "abstract": connects([0] + unescaped(pair[1]))
        default: false
        }
      }
    }
  }

  private static func unescaped(_ value: String) -> [UInt8] {
    FileURI.unescaped(Array(value.utf8)[...])
  }

  private static func connects(_ path: [UInt8]) -> Bool {
    var address = sockaddr_un()
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return false }
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let number = socket(
      AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { return false }
    let socket = FileDescriptor(owning: number)
    let size = MemoryLayout<sa_family_t>.size + path.count + (path.first == 0 ? 0 : 1)
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket.rawValue, $0, socklen_t(size)) == 0
      }
    }
  }
}
