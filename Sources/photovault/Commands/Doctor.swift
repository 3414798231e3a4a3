/// `photovault doctor`: can this machine mount, watch the screen, keep secrets? What to do if not.
enum Doctor: Command {
  static let name = "doctor"
  static let summary = "whether this machine can mount and keep secrets"
  static let usage = ""
  static let options = [OptionSpec("json", help: "for programs; the form is stable")]
  static let notes = """
    Each line begins with 'ok', 'warning' (mounts work, but something that
    photovault promises does not hold here) or 'problem' (no mount works). Below
    the last two stands what to do.

    Nothing is changed. The exit code is 1 if there is a problem, else 0.
    """

  /// The form of `--json`: members and checks are added, never changed.
  private struct Report: Encodable {
    struct Check: Encodable {
      let check: String
      let status: Finding.Status
      let message: String
      let advice: String?
    }

    let canMount: Bool
    let checks: [Check]
  }

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    _ = try arguments.positionals(0...0, of: self)
    let storage = StorageChecks(home: try Home(arguments))
    let findings =
      FUSEChecks.findings() + MemoryChecks.findings() + SessionChecks.findings()
      + storage.findings()
    let canMount = !findings.contains { $0.status == .problem }
    if arguments.has("json") {
      let checks = findings.map { finding in
        Report.Check(
          check: finding.check, status: finding.status, message: finding.message,
          advice: finding.advice)
      }
      try Terminal.print(json: Report(canMount: canMount, checks: checks))
    } else {
      for finding in findings { try Terminal.print(text(finding)) }
    }
    return canMount ? .done : .failed
  }

  private static func text(_ finding: Finding) -> String {
    let width = "warning  ".count
    let first =
      Help.pad(finding.status.rawValue, width) + "\(finding.check): \(finding.message)"
    guard let advice = finding.advice else { return Terminal.clean(first) }
    return Terminal.clean(first) + "\n"
      + Terminal.clean(Help.pad("", width) + "what to do: \(advice)")
  }
}
