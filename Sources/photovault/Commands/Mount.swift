import Platform
import SecretStore

/// `photovault mount USER [MOUNTPOINT]`: unlock; returns when the folder answers.
enum Mount: Command {
  static let name = "mount"
  static let summary = "unlock a vault; returns when the folder is ready"
  static let usage = "USER [MOUNTPOINT]"
  static let options =
    OptionSpec.secret("password", "the password") + [
      OptionSpec("create", help: "make the account if there is none")
    ] + MountPassword.options + MountOptions.specs + [
      OptionSpec("foreground", help: "stay, and log to standard error"),
      OptionSpec("o", value: "OPT[,OPT...]", help: "any of these options, or FUSE's own"),
    ]
  static let notes = """
    MOUNTPOINT is USER in your pictures folder unless given. It is made if needed
    and then removed at unmount; one that exists has to be empty and stays
    unwritable (mode 0500) while locked.

    In /etc/fstab: USER DIR fuse.photovault noauto,user,idle=30m 0 0
    """

  static func run(_ arguments: Arguments) throws(CommandError) -> ExitCode {
    let list = try FUSEOptionList(arguments.values(of: "o"), known: options + [.home])
    let arguments = try arguments.adding(
      list.words, options: options + [.home], command: name)
    let words = try arguments.positionals(1...2, of: self)
    try MountPassword.check(arguments)
    var options = try MountOptions(arguments)
    options.allowsNonEmpty = list.allowsNonEmpty
    options.passedOn = list.passedOn
    if let owner = list.owner {
      try MountOwner.become(owner, mountPoint: words.count > 1 ? words[1] : nil)
    }

    let home = try Home(arguments)
    let user = words[0]
    let lockMark = LockMark(of: user)
    var password = try createIfMissing(user, arguments, home)
    let account = try Accounts.lookUp(user, home: home)
    try refuseIfMounted(account)
    let mountPoint = try MountPoint.resolve(words.count > 1 ? words[1] : nil, user: user)
    try MountPoint.check(mountPoint, apartFrom: [account.vaultPath, home.path])
    let wasMadeBefore = try clearRemains(mountPoint)

    let unlocked = try MountPassword.unlock(
      account, chosen: password.take(), arguments, home)
    let job = MountJob(
      user: user, vault: account.vaultPath, vaultID: account.vaultID, mountPoint: mountPoint,
      mountPointWasMade: wasMadeBefore, options: options, lockMark: lockMark)
    if arguments.has("foreground") {
      return try job.run(recoveryKey: unlocked.recoveryKey) {
        Terminal.note("'\(user)' is ready at \(mountPoint)")
      }
    }
    try Daemon.start(job, recoveryKey: unlocked.recoveryKey)
    return .done
  }

  /// Makes the account if there is none and that is wanted, and returns its password.
  private static func createIfMissing(
    _ user: String, _ arguments: Arguments, _ home: Home
  ) throws(CommandError) -> SecretBytes? {
    do throws(CommandError) {
      _ = try Accounts.lookUp(user, home: home)
      return nil
    } catch {
      guard error.exitCode == .noSuchAccount else { throw error }
      if !arguments.has("create") {
        guard Terminal.isInteractive, try Terminal.ask("No account '\(user)'. Create one?") else {
          throw error
        }
      }
    }
    let password = try PasswordSource.newPassword(
      arguments, prompt: "New password for '\(user)'")
    try Accounts.create(NewAccount(user: user, home: home), home: home, password: password)
    return password
  }

  private static func refuseIfMounted(_ account: Account) throws(CommandError) {
    for registry in try MountRegistry.all() {
      for record in registry.records() where record.vault == account.vaultPath {
        guard let mount = LiveMount(record, registry) else { continue }
        throw CommandError(
          .alreadyMounted, "'\(account.name)' is mounted at \(mount.record.mountPoint) already",
          hint: "if it isn't seen there, a program still holds files of it: "
            + "'photovault lock \(account.name)' cuts it off")
      }
    }
  }

  /// Clears what a killed process left at `mountPoint`; true if `mount` had made the directory.
  private static func clearRemains(_ mountPoint: String) throws(CommandError) -> Bool {
    try MountPoint.clearStaleMount(mountPoint)
    var wasMade = false
    for registry in try MountRegistry.all() {
      guard let record = registry.record(of: mountPoint),
        LiveMount(record, registry) == nil
      else { continue }
      wasMade = wasMade || record.mountPointWasMade
      registry.remove(mountPoint)
    }
    for trace in DesktopTraces.removeRemains() {
      Terminal.warning("traces of an earlier mount are left: \(trace)")
    }
    return wasMade
  }
}
