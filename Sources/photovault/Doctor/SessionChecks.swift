import Glibc
import Platform
import RuntimeLibraries
import SessionMonitor

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

  /// How long a bus may take to say who is there.
  private static let patience = 2_000  // milliseconds

  private static func systemBus() -> Finding {
    let check = "system-bus"
    switch ask(BusServices.loginNames, BusAddress.system) {
    case .noAnswer:
      return .warning(
        check, "the system bus does not answer: suspend goes unnoticed",
        do: "install and start dbus and systemd-logind, or \(hooks)")
    case .owned([]):
      return .warning(
        check, "logind is not on the system bus: suspend goes unnoticed",
        do: "start systemd-logind, or \(hooks)")
    case .owned: return .ok(check, "logind tells of suspend and of locked sessions")
    }
  }

  private static func sessionBus() -> Finding {
    let check = "session-bus"
    switch ask(BusServices.screenNames, BusAddress.session) {
    case .noAnswer:
      return .warning(
        check, "no session bus answers: the desktop's screen saver goes unnoticed",
        do: "run photovault inside the desktop session, or \(hooks)")
    case .owned([]):
      return .warning(
        check, "no screen saver is on the session bus: a locked screen shows only if logind tells",
        do: "if the screen locker is none of the desktop's, \(hooks)")
    case .owned(let names):
      return .ok(check, "tells of a locked screen: \(names.joined(separator: ", "))")
    }
  }

  /// Only for accounts made with `--store secret-service`, so never more than a remark.
  private static func secretService() -> Finding {
    let check = "secret-service"
    let name = "org.freedesktop.secrets"
    guard OptionalLibrary.secret.isInstalled else {
      return .ok(check, "not available (libsecret is not installed); accounts are files")
    }
    if ask([name], BusAddress.session) == .owned([name]) {
      return .ok(check, "the desktop's keyring is there, for --store secret-service and --remember")
    }
    let data = (try? Home.environment("XDG_DATA_DIRS")) ?? "/usr/local/share:/usr/share"
    let canBeStarted = data.split(separator: ":").contains {
      access("\($0)/dbus-1/services/\(name).service", R_OK) == 0
    }
    return .ok(
      check,
      canBeStarted
        ? "a keyring is installed, and started when it is asked for"
        : "no keyring is there; accounts are files")
  }

  private static func ask(_ names: [String], _ address: String) -> BusServices.Answer {
    BusServices.owned(names, at: address, withinMilliseconds: patience)
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
