import Glibc
import Platform
import SecretStore
import Synchronization
import VaultStorage

/// Copies photos out of a vault without a mount.
enum Export: Command {
  static let name = "export"
  static let summary = "copy photos out of a vault without a mount; verified"
  static let usage = "USER DEST"
  static let options =
    [
      OptionSpec("from", value: "PATH", help: "only this folder or file of the vault"),
      OptionSpec("on-conflict", value: "HOW", help: ConflictPolicy.help),
    ] + OptionSpec.secret("password", "the password")
  static let notes = """
    The folder DEST is made if it is missing, for this user only. The copies are
    not encrypted. Of "--from FOLDER/", what is in it is copied. Each file is read
    back and compared before it shows. What is there already is skipped, so run it
    again to go on. It works beside a mount. Exit code 15: a photo is damaged, and
    named; the rest is there.
    """
  static let takesRawPaths = true

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let user = try arguments.positionals(2...2, of: self)[0]
    let destination = arguments.rawPositionals[1]
    guard destination.count > 0 else { throw .usage("an empty name is no folder's", name) }
    let policy = try ConflictPolicy(arguments, name)
    let account = try Accounts.lookUp(user, home: try Home(arguments))
    let password = try PasswordSource.password(arguments, prompt: "password for \(user)")
    let unlocked = try Accounts.unlock(account, password: password)
    let vault = try unlocked.openVault(readOnly: true)
    ProcessHardening.raiseDescriptorLimit()
    let top = try open(destination, vault: account.vaultPath)
    var tree = ExportTree(of: vault)
    try tree.add(arguments.rawValue(of: "from") ?? .empty, to: top)
    Terminal.warning("the copies in \(destination) are not encrypted")

    let exporter = Exporter(tree, of: vault, policy: policy)
    for (path, reason) in tree.damaged { exporter.damaged(path, reason) }
    for path in tree.others { exporter.notExported(path) }
    let signal = try exporter.run.run { exporter.work() }
    exporter.finish(interrupted: signal != nil || exporter.run.failure != nil)
    let tally = exporter.tally.withLock { $0 }
    for line in TransferText.lines(tally, user: user) { try Terminal.print(line) }
    if let signal {
      Terminal.note("stopped; run the same command again to go on")
      return TransferRun.end(by: signal)
    }
    if let failure = exporter.run.failure { throw failure }
    if tally.damaged > 0 { return .damageFound }
    return tally.isComplete ? .done : .failed
  }

  private static func open(
    _ destination: FileName, vault: String
  ) throws(CommandError) -> ExportTarget {
    let vaultChain = try about(vault) { () throws(Errno) in
      try DirectoryChain(of: FileName(vault))
    }
    // Of what is there of it: nothing is made in the vault.
    var existing = destination
    while true {
      if let chain = try? DirectoryChain(of: existing) {
        guard chain.isInside(vaultChain) else { break }
        throw CommandError(
          .failed, "\(destination) lies in the vault itself", hint: "choose another folder")
      }
      guard let slash = existing.bytes.lastIndex(of: UInt8(ascii: "/")), slash > 0 else { break }
      existing = FileName(Array(existing.bytes[..<slash]))
    }
    let descriptor = try about("\(destination)") { () throws(Errno) in
      if destination.isUTF8 { _ = try DirectoryPath.make(destination.description) }
      return try Syscalls.open(destination, flags: O_RDONLY | O_DIRECTORY)
    }
    return ExportTarget(destination, descriptor)
  }
}
