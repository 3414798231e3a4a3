import Glibc
import Platform
import SecretStore
package import VaultStorage

/// An account with a vault, and its mount by the built program.
package final class VaultMount: Sendable {
  private let directory: TemporaryDirectory
  private let program: Path
  private let user = "alice"

  private var mountPoint: Path { directory.path / "mount" }
  private var home: Path { directory.path / "home" }
  private var passwordFile: Path { directory.path / "password" }
  private var log: Path { directory.path / "log" }

  package init(program: Path, names: NamesMode) throws {
    self.program = program
    directory = try TemporaryDirectory()
    try Self.store(Self.password + "\n", at: passwordFile)
    try makeAccount(names)
    try mount()
  }

  private static let password = "password of the checks"

  /// What `photovault create` does, but with the cheapest scrypt that an item may have: the checks
  /// mount some hundred times.
  private func makeAccount(_ names: NamesMode) throws {
    let vault = home / "photos" / Path(user)
    let accounts = home / "accounts"
    for path in [home, home / "photos", vault, accounts] {
      try Syscalls.makeDirectory(FileName(path.bytes), in: AT_FDCWD, mode: 0o700)
    }
    let recoveryKey = try Self.secret("recovery key of the checks")
    let id = try Vault.create(at: vault.text, names: names, password: recoveryKey)
    let account = try Account(
      name: try AccountName(user), vaultID: id, vaultPath: vault.text, thisDeviceOnly: false,
      secret: recoveryKey, password: try Self.secret(Self.password),
      cost: Scrypt.Cost(n: 1 << 14, r: 1, p: 1))
    try FileSecretStore(directory: accounts.text).add(account)
  }

  private static func secret(_ text: String) throws -> SecretBytes {
    var bytes = Array(text.utf8)
    return try SecretBytes(wiping: &bytes)
  }

  /// The program beside the test program, where the build puts it.
  package static func builtProgram() throws -> Path {
    if let path = getenv("PHOTOVAULT_PROGRAM") { return Path(String(cString: path)) }
    let own = try Syscalls.readSymbolicLink(FileName("/proc/self/exe"), in: AT_FDCWD)
    guard let slash = own.bytes.lastIndex(of: 0x2F) else { throw Errno.noSuchEntry }
    return Path(Array(own.bytes[..<slash])) / "photovault"
  }

  package var driver: SystemCallDriver {
    SystemCallDriver(
      root: mountPoint, backingDirectory: home / "photos" / Path(user), isPlain: false,
      remounting: { [self] () throws(Errno) in
        do {
          try unmount()
          try mount()
        } catch let error as Errno { throw error } catch {
          print("remounting: \(error)")
          throw .inputOutput
        }
      },
      ending: { [self] () throws(Errno) in
        do { try unmount() } catch { abandon() }
        directory.remove()
      })
  }

  /// Frees whoever hangs in the mount.
  package func abandon() {
    _ = try? photovault("unmount", "--force", mountPoint.text)
    _ = try? Subprocess.run(
      "fusermount3", ["-u", "-z", "-q", mountPoint.text], log: log, seconds: 10)
  }

  /// What the program said, for messages.
  package var messages: String {
    guard let file = try? Syscalls.open(FileName(log.bytes), flags: O_RDONLY) else { return "" }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = bytes.withUnsafeMutableBytes {
      (try? Syscalls.read(file.rawValue, into: $0, at: 0)) ?? 0
    }
    return String(decoding: bytes[..<count], as: UTF8.self)
  }

  private func mount() throws {
    try photovault(
      "mount", "--password-file", passwordFile.text, "--idle", "0", user,
      mountPoint.text)
  }

  /// By place: other mounts may be the same user's.
  private func unmount() throws { try photovault("unmount", mountPoint.text) }

  private func photovault(_ command: String, _ arguments: String...) throws {
    let status = try Subprocess.run(
      program, [command, "--home", home.text] + arguments, log: log)
    if status == 0 { return }
    throw CheckFailure(
      "photovault \(command): exit status \(status >> 8), signal \(status & 0x7F): \(messages)",
      #filePath, #line)
  }

  private static func store(_ text: String, at path: Path) throws {
    let file = try Syscalls.open(
      FileName(path.bytes), flags: O_CREAT | O_EXCL | O_WRONLY, mode: 0o600)
    let bytes = Array(text.utf8)
    try bytes.withUnsafeBytes { try Syscalls.write(file.rawValue, $0, at: 0) }
  }
}
