import Glibc
import Testing

/// A desktop of its own: a session bus, and on it a real gnome-keyring that is unlocked. No screen, so
/// nobody answers when the keyring asks.
final class Desktop {
  static let password = "pw-91c4-Known To The Keyring"
  private static let keyringPassword = "pw-0d2e-Of The Keyring"

  let folder: String
  let home: String
  let mountPoint: String
  private var bus: ChildProcess?
  private var keyring: ChildProcess?
  /// Of the session bus; tests take it away.
  var busAddress: String?

  private init() throws {
    folder = try Scratch.makeFolder()
    home = folder + "/home"
    mountPoint = folder + "/mnt"
    for name in ["/run", "/data"] { mkdir(folder + name, 0o700) }
    try Scratch.write(Self.password + "\n", to: folder + "/password")
    try Scratch.write("wrong\n", to: folder + "/wrong")
  }

  /// Ends every process and mount whatever `body` does.
  static func with(keyring: Bool = true, _ body: (Desktop) throws -> Void) throws {
    let desktop = try Desktop()
    defer { desktop.tearDown() }
    try desktop.startBus()
    if keyring { try desktop.startKeyring() }
    try body(desktop)
  }

  // MARK: - The program

  var environment: [String: String] {
    [
      "HOME": folder, "XDG_RUNTIME_DIR": folder + "/run", "XDG_DATA_HOME": folder + "/data",
      "PHOTOVAULT_HOME": home, "DBUS_SESSION_BUS_ADDRESS": busAddress ?? "", "DISPLAY": "",
      "PV": Checkout.program, "D": folder, "M": mountPoint, "A": home + "/accounts",
    ]
  }

  /// Standard input is `input`, so it is at its end unless something is given.
  @discardableResult
  func photovault(
    _ arguments: String..., input: String = "", expecting expected: Int32? = nil
  ) throws -> Outcome {
    let outcome = try Command.run(
      [Checkout.program] + arguments, input: input, environment: environment,
      expecting: expected)
    for secret in [Self.password, Self.keyringPassword] {
      #expect(!(outcome.output + outcome.errors).contains(secret))
    }
    return outcome
  }

  /// The program with the account's password.
  @discardableResult
  func unlocking(_ arguments: String..., expecting expected: Int32? = nil) throws -> Outcome {
    try Command.run(
      [Checkout.program] + arguments + ["--password-file", folder + "/password"],
      environment: environment, expecting: expected)
  }

  /// A bash script that must succeed. "$PV" is the program, "$D" this folder, "$M" the mount point, "$A" where
  /// account items are.
  @discardableResult
  func shell(_ script: String, limit: Int = 60) throws -> String {
    try Command.shell(script, environment: environment, limit: limit)
  }

  /// The program on a terminal; see terminal.py.
  func onTerminal(_ steps: String, _ arguments: String...) throws -> Outcome {
    try Command.run(
      ["python3", Checkout.top + "/Tests/CommandLineTests/terminal.py", steps, Checkout.program]
        + arguments, environment: environment)
  }

  /// What the keyring shows of everything that belongs to `user`, secrets, too.
  func keyringItems(_ user: String = "alice") throws -> String {
    let outcome = try Command.run(
      ["secret-tool", "search", "--all", "account", user], environment: environment)
    return outcome.output + outcome.errors
  }

  func recoveryKey(_ user: String = "alice") throws -> String {
    let shown = try unlocking("recovery-key", user, expecting: 0)
    return String(shown.output.prefix { $0 != "\n" })
  }

  // MARK: - The keyring

  func lockKeyring() throws {
    try shell(
      """
      dbus-send --session --print-reply --dest=org.freedesktop.secrets /org/freedesktop/secrets \
        org.freedesktop.Secret.Service.Lock \
        array:objpath:/org/freedesktop/secrets/collection/login
      """)
  }

  func unlockKeyring() throws {
    try shell(
      "/usr/bin/python3 '\(Checkout.workloads)/unlock_keyring.py' '\(Self.keyringPassword)'")
  }

  /// It keeps its name on the bus and answers nothing.
  func hangKeyring() { keyring?.signal(SIGSTOP) }

  func resumeKeyring() { keyring?.signal(SIGCONT) }

  func endKeyring() {
    keyring?.signal(SIGKILL)
    _ = keyring?.wait()
    keyring = nil
  }

  /// Another Secret Service in its place: locked, and it asks; see asking_keyring.py.
  func startAskingKeyring(answering answer: String) throws {
    endKeyring()
    keyring = try Command.spawn(
      ["/usr/bin/python3", Checkout.workloads + "/asking_keyring.py", answer],
      environment: environment, output: folder + "/keyring.log", errors: folder + "/keyring.log")
    try waitForKeyring("collection/one")
  }

  /// Locks what `startAskingKeyring` started.
  func lockAskingKeyring() { keyring?.signal(SIGUSR1) }

  func endBus() {
    bus?.signal(SIGKILL)
    _ = bus?.wait()
    bus = nil
  }

  private func startBus() throws {
    let socket = folder + "/bus"
    // Nothing is started by asking for it.
    try Scratch.write(
      """
      <busconfig><type>session</type><listen>unix:path=\(socket)</listen><auth>EXTERNAL</auth>
      <policy context="default"><allow send_destination="*" eavesdrop="true"/>
      <allow eavesdrop="true"/><allow own="*"/></policy></busconfig>
      """, to: folder + "/bus.conf")
    bus = try Command.spawn(
      ["dbus-daemon", "--config-file=\(folder)/bus.conf", "--nofork", "--nopidfile"],
      output: folder + "/bus.log", errors: folder + "/bus.log")
    busAddress = "unix:path=\(socket)"
    let isUp = Wait.until(seconds: 20) { access(socket, F_OK) == 0 }
    try #require(isUp, "\(Scratch.read(folder + "/bus.log"))")
  }

  private func startKeyring() throws {
    try Scratch.write(Self.keyringPassword, to: folder + "/keyring password")
    keyring = try Command.spawn(
      ["gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"],
      environment: environment, input: folder + "/keyring password",
      output: folder + "/keyring.log", errors: folder + "/keyring.log")
    try waitForKeyring("collection/login")
    unlink(folder + "/keyring password")
  }

  private func waitForKeyring(_ collection: String) throws {
    let isUp = try Wait.until(seconds: 20) {
      try Command.run(
        [
          "dbus-send", "--session", "--print-reply", "--dest=org.freedesktop.secrets",
          "/org/freedesktop/secrets", "org.freedesktop.Secret.Service.ReadAlias",
          "string:default",
        ], environment: environment
      ).output.contains(collection)
    }
    try #require(isUp, "\(Scratch.read(folder + "/keyring.log"))")
  }

  private func tearDown() {
    if MountTable.type(at: mountPoint) != nil {
      _ = try? photovault("unmount", "--all", "--force")
    }
    for pid in MountTable.daemons(of: folder) { kill(pid, SIGKILL) }
    if MountTable.type(at: mountPoint) != nil {
      _ = try? Command.run(["umount", "-l", mountPoint])
    }
    endKeyring()
    endBus()
    Scratch.remove(folder)
  }
}
