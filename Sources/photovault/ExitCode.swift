/// What the program ends with: a promise to scripts. No number ever changes its meaning.
enum ExitCode: CInt, CaseIterable, Sendable {
  case done = 0
  /// Whatever has no number of its own; the message says what.
  case failed = 1
  /// Not a vault, or the vault is missing.
  case notAVault = 10
  case noSuchAccount = 11
  /// Invalid username/password combination.
  case wrongCredentials = 12
  case mountPointUnusable = 13
  /// The secret store is unavailable or locked.
  case storeUnavailable = 14
  /// `check` or `export` found damage.
  case damageFound = 15
  case alreadyMounted = 16
  /// A program holds files; the message names it.
  case busy = 17
  case accountExists = 18
  case usage = 64  // EX_USAGE, sysexits.h
}
