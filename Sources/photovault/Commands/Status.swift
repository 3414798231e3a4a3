import Glibc
import Platform

/// `photovault status`: what is mounted, since when, idle for how long, what holds it.
enum Status: Command {
  static let name = "status"
  static let summary = "what is mounted, since when, how long unused, who holds it"
  static let usage = ""
  static let options = [OptionSpec("json", help: "for programs; the form is stable")]

  /// The form of `--json`: members are added, never changed.
  private struct Report: Encodable {
    let user: String
    let mountPoint: String
    let vault: String
    let pid: Int32
    /// "mounted", "not answering", or "dead" where the process was killed and the mount is left.
    let state: String
    /// UTC, as in ISO 8601.
    let since: String
    var readOnly = false
    var idleSeconds = 0
    /// 0: it does not lock by itself.
    var idleLimitSeconds = 0
    var holders: [Holder] = []
  }

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    _ = try arguments.positionals(0...0, of: self)
    let reports = try MountedVaults.all().compactMap { report($0) }
    if arguments.has("json") {
      try Terminal.print(JSONMessage.text(reports))
    } else if reports.isEmpty {
      try Terminal.print("no vault is mounted")
    } else {
      for report in reports { try Terminal.print(text(report)) }
    }
    return .done
  }

  private static func report(_ place: MountedVaults.Place) -> Report? {
    let record = place.record
    if let mount = LiveMount(record, place.registry) {
      guard let status = mount.status() else {
        // A look at the mount itself would hang.
        return Report(
          user: record.user, mountPoint: record.mountPoint, vault: record.vault,
          pid: record.process, state: "not answering", since: date(record.since))
      }
      return Report(
        user: record.user, mountPoint: record.mountPoint, vault: record.vault, pid: record.process,
        state: "mounted", since: date(record.since),
        readOnly: status.isReadOnly, idleSeconds: status.idleSeconds,
        idleLimitSeconds: status.idleLimitSeconds, holders: Holder.all(of: record))
    } else {
      // A record without a mount is of no interest: it is removed by the next mount there.
      guard MountPoint.isDead(record.mountPoint) else { return nil }
      return Report(
        user: record.user, mountPoint: record.mountPoint, vault: record.vault,
        pid: record.process, state: "dead", since: date(record.since))
    }
  }

  private static func text(_ report: Report) -> String {
    if report.state == "not answering" {
      return "\(report.user) at \(report.mountPoint): its process \(report.pid) does not answer; "
        + "'photovault lock \(report.user)' ends it"
    }
    guard report.state == "mounted" else {
      return "\(report.user) at \(report.mountPoint): its process was killed; "
        + "'photovault unmount \(report.user)' clears the mount"
    }
    let limit =
      report.idleLimitSeconds == 0
      ? "never locks by itself" : "locks after \(duration(report.idleLimitSeconds))"
    let lines = [
      "\(report.user) at \(report.mountPoint) since \(report.since), "
        + "unused for \(duration(report.idleSeconds)), \(limit)"
        + (report.readOnly ? ", read-only" : "")
    ]
    return (lines + report.holders.map { "  \($0.sentence(report.mountPoint))" })
      .joined(separator: "\n")
  }

  private static func duration(_ seconds: Int) -> String {
    switch seconds {
    case ..<120: "\(seconds) s"
    case ..<7200: "\(seconds / 60) min"
    default: "\(seconds / 3600) h"
    }
  }

  private static func date(_ seconds: Int) -> String {
    var time = time_t(seconds)
    var parts = tm()
    guard gmtime_r(&time, &parts) != nil else { return "" }
    var buffer = [CChar](repeating: 0, count: 64)
    let count = strftime(&buffer, buffer.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
    return String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
