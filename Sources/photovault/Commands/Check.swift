import Platform
import SecretStore
import VaultStorage

/// Verifies all of a vault, and puts right what can be.
enum Check: Command {
  static let name = "check"
  static let summary = "verify every photo; names each damaged one"
  static let usage = "USER"
  static let options =
    [
      OptionSpec("json", help: "for programs; the form is stable"),
      OptionSpec("repair", help: "put right what can be; not while mounted"),
    ] + OptionSpec.secret("password", "the password")
  static let notes = """
    Reads every byte of the vault and changes nothing, also while it is mounted.
    Exit code 0: all is as it was written; 15: damage was found. --repair deletes
    no photo: what can't be read is moved to .photovault-damaged in the vault's
    directory, and the exit code is 15 then, too.
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(1...1, of: self)[0]
    let account = try Accounts.lookUp(user, home: try Home(arguments))
    let password = try PasswordSource.password(arguments, prompt: "password for \(user)")
    let unlocked = try Accounts.unlock(account, password: password)
    let repairs = arguments.has("repair")
    ProcessHardening.raiseDescriptorLimit()
    let check = try unlocked.openCheck(repairing: repairs)
    let json = arguments.has("json")
    let signals = try about("signals") { () throws(Errno) in try HeldSignals() }
    var run = CheckRun(printsFindings: !json)
    let report: VaultCheck.Report
    do throws(StorageError) { report = try run.run(check, signals) } catch {
      run.progress.clear()
      throw CommandError(vault: account.vaultPath, error)
    }
    if let failure = run.failure { throw failure }
    if json {
      try Terminal.print(json: CheckReport(user, vault: account.vaultPath, report))
    } else {
      for line in CheckText.summary(report, user: user, repaired: repairs) {
        try Terminal.print(line)
      }
    }
    return report.isInOrder ? .done : .damageFound
  }
}

extension UnlockedAccount {
  fileprivate func openCheck(repairing: Bool) throws(CommandError) -> VaultCheck {
    do throws(StorageError) {
      return try VaultCheck.open(
        at: account.vaultPath, id: account.vaultID, password: recoveryKey, repairing: repairing)
    } catch { throw CommandError(vault: account.vaultPath, error, of: account.name.text) }
  }
}

extension VaultCheck.Report {
  /// All damage is put right, and nothing was lost by it.
  var isInOrder: Bool {
    findings.allSatisfy { finding in
      if case .mended = finding.repair { return true }
      return !finding.isDamage
    }
  }
}

/// A check at work: prints damage as it is found, shows how far it is, ends when a signal says so.
private struct CheckRun {
  let printsFindings: Bool
  var progress = Progress()
  /// Standard output is gone.
  private(set) var failure: CommandError?

  init(printsFindings: Bool) { self.printsFindings = printsFindings }

  mutating func run(
    _ check: VaultCheck, _ signals: borrowing HeldSignals
  ) throws(StorageError) -> VaultCheck.Report {
    var report = try check.run(measuring: Progress.isShown) { progress, news in
      if !check.isRepairing { print(news) }
      show(progress)
      return goesOn(signals)
    }
    progress.clear()
    if check.isRepairing, failure == nil {
      report = try check.repair(report) { finding in
        print([finding])
        return goesOn(signals)
      }
    }
    // What only the end tells: leftovers and their like.
    if !check.isRepairing { print(report.findings.filter { CheckText.isDebris($0.kind) }) }
    return report
  }

  private mutating func show(_ progress: VaultCheck.Progress) {
    var state = Progress.State(files: progress.counts.files, bytes: progress.counts.bytes)
    state.totalFiles = progress.expected?.files
    state.totalBytes = progress.expected?.bytes ?? 0
    self.progress.show(state)
  }

  private mutating func print(_ findings: [VaultFinding]) {
    guard printsFindings, failure == nil, !findings.isEmpty else { return }
    progress.clear()
    do throws(CommandError) {
      for finding in findings { try Terminal.print(CheckText.line(finding)) }
    } catch { failure = error }
  }

  /// False where nobody reads any more. A signal that ends the program takes effect here, with
  /// nothing half done; one that stops it does, too, and then it goes on.
  private mutating func goesOn(_ signals: borrowing HeldSignals) -> Bool {
    if signals.isPending {
      progress.clear()
      signals.deliver()
    }
    return failure == nil
  }
}
