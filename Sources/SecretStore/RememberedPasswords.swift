package import Platform

/// Passwords of accounts that the desktop's keyring keeps for its owner, so that a mount asks nothing.
///
/// A file beside the account items says which account has one, and for which vault: without it nobody
/// is asked, so who never remembers a password never waits for a keyring.
package struct RememberedPasswords: Sendable {
  private static let suffix = ".remembered"
  private static let greatestByteCount = 129  // a vault's id in hexadecimal, and a newline

  private let files: FileSecretStore
  private let keyring: Keyring

  /// `directory`: the account items'.
  package init(directory: String, keyring: Keyring) {
    files = FileSecretStore(directory: directory)
    self.keyring = keyring
  }

  /// Asks nobody.
  package func holdsOne(for name: AccountName) throws(SecretStoreError) -> Bool {
    try files.names(withSuffix: Self.suffix).contains(name)
  }

  /// The password may have changed since it was kept. Throws `.itemNotFound`.
  package func lookUp(_ account: Account) throws(SecretStoreError) -> SecretBytes {
    guard try vaultID(account.name) == account.vaultID else { throw .itemNotFound }
    let text = try keyring.secret(attributes(account.name, account.vaultID))
    do throws(Errno) { return try Hexadecimal.decode(text) } catch {
      throw error == .invalidArgument ? .itemNotFound : .notAvailable(.system("memory", error))
    }
  }

  /// In the place of one that was kept before.
  package func keep(
    _ password: borrowing SecretBytes, for account: Account
  ) throws(SecretStoreError) {
    let text = try Self.text(password)
    try keyring.openForItems()
    let directory = try files.open()
    let file = Self.fileName(account.name)
    try files.locked(directory.rawValue) { () throws(SecretStoreError) in
      // The file comes first: no password is kept that `forget` doesn't find.
      try files.about(file) { () throws(Errno) in
        try files.write(
          Hexadecimal.digits(account.vaultID) + [UInt8(ascii: "\n")], as: file,
          in: directory.rawValue)
        try Syscalls.synchronize(directory.rawValue)
      }
      try keyring.save(
        text, attributes(account.name, account.vaultID),
        label: "photovault password of \(account.name)")
    }
  }

  /// None is no error.
  package func forget(_ name: AccountName) throws(SecretStoreError) {
    guard try holdsOne(for: name) else { return }
    if let vaultID = try vaultID(name) { try keyring.delete(attributes(name, vaultID)) }
    let directory = try files.open()
    let file = Self.fileName(name)
    try files.about(file) { () throws(Errno) in
      do throws(Errno) { try Syscalls.unlink(file, in: directory.rawValue) } catch {
        if error != .noSuchEntry { throw error }
      }
      try Syscalls.synchronize(directory.rawValue)
    }
  }

  private static func text(
    _ password: borrowing SecretBytes
  ) throws(SecretStoreError) -> SecretBytes {
    do throws(Errno) { return try Hexadecimal.encode(password) } catch {
      throw .notAvailable(.system("memory", error))
    }
  }

  private static func fileName(_ name: AccountName) -> FileName { FileName(name.text + suffix) }

  private func attributes(_ name: AccountName, _ vaultID: [UInt8]) -> [String: String] {
    Keyring.attributes(.password, name, vaultID: vaultID)
  }

  /// nil for a file that says nothing.
  private func vaultID(_ name: AccountName) throws(SecretStoreError) -> [UInt8]? {
    let directory = try files.open()
    let file = Self.fileName(name)
    let bytes = try files.about(file) { () throws(Errno) in
      try SmallFile.read(file, in: directory.rawValue, atMost: Self.greatestByteCount)
    }
    guard let digits = bytes?.prefix(while: { $0 != UInt8(ascii: "\n") }) else { return nil }
    return Hexadecimal.bytes(Array(digits))
  }
}
