import Platform

/// Account items in the desktop's Secret Service: the secret of each is the very item that a file
/// would hold, so whoever reads the unlocked keyring still needs the account's password.
///
/// Beside the files of a `FileSecretStore` lies a `KeyringReference` for each; writers of both stores
/// take turns by its lock. Where the service has to be unlocked, that is before the lock is taken.
package struct SecretService: SecretStore {
  private let files: FileSecretStore
  private let keyring: Keyring

  /// `directory`: the file store's.
  package init(directory: String, keyring: Keyring) {
    files = FileSecretStore(directory: directory)
    self.keyring = keyring
  }

  /// Throws what `add` would: so nothing is asked of the user in vain.
  package func prepareToAdd() throws(SecretStoreError) { try keyring.openForItems() }

  /// An account whose item the service lost is no duplicate, if it is the same vault's.
  package func add(_ account: Account) throws(SecretStoreError) {
    let item = try Self.item(account)
    let reference = KeyringReference(account)
    let contents = try reference.encoded()
    try prepareToAdd()
    let directory = try files.makeDirectory()
    try files.locked(directory.rawValue) { () throws(SecretStoreError) in
      let name = FileSecretStore.fileName(account.name)
      if try files.exists(name, in: directory.rawValue) { throw .duplicateItem }
      let attributes = Self.attributes(reference)
      if let other = try self.reference(account.name, in: directory.rawValue) {
        guard other.vaultID == account.vaultID else { throw .duplicateItem }
        if try keyring.contains(attributes) { throw .duplicateItem }
      }
      try keyring.save(item, attributes, label: Self.label(account.name))
      do throws(SecretStoreError) {
        try write(contents, account.name, in: directory.rawValue)
      } catch {
        // Nobody shall find an item that its maker was told doesn't exist.
        try? keyring.delete(attributes)
        throw error
      }
    }
  }

  package func lookUp(_ name: AccountName) throws(SecretStoreError) -> Account {
    try lookUp(try reference(name))
  }

  package func update(_ old: Account, to new: Account) throws(SecretStoreError) -> Bool {
    precondition(old.name == new.name && old.vaultID == new.vaultID)
    let item = try Self.item(new)
    // Unlocks it.
    _ = try lookUp(old.name)
    let directory = try files.open()
    return try files.locked(directory.rawValue) { () throws(SecretStoreError) in
      guard let reference = try reference(old.name, in: directory.rawValue) else {
        throw .itemNotFound
      }
      guard try lookUp(reference) == old else { return false }
      try keyring.save(item, Self.attributes(reference), label: Self.label(old.name))
      if new.vaultPath != reference.vaultPath {
        try write(KeyringReference(new).encoded(), new.name, in: directory.rawValue)
      }
      return true
    }
  }

  package func delete(_ name: AccountName) throws(SecretStoreError) {
    let reference = try reference(name)
    try keyring.delete(Self.attributes(reference))
    let directory = try files.open()
    try files.locked(directory.rawValue) { () throws(SecretStoreError) in
      let file = KeyringReference.fileName(name)
      try files.about(file) { () throws(Errno) in
        do throws(Errno) { try Syscalls.unlink(file, in: directory.rawValue) } catch {
          if error != .noSuchEntry { throw error }
        }
        try Syscalls.synchronize(directory.rawValue)
      }
    }
  }

  package func names() throws(SecretStoreError) -> [AccountName] {
    try files.names(withSuffix: KeyringReference.suffix)
  }

  /// Where the account's vault is, without a question to the service. Throws `.itemNotFound`.
  package func reference(_ name: AccountName) throws(SecretStoreError) -> KeyringReference {
    let directory = try files.open()
    guard let reference = try reference(name, in: directory.rawValue) else {
      throw .itemNotFound
    }
    return reference
  }
}

extension SecretService {
  private func reference(
    _ name: AccountName, in directory: CInt
  ) throws(SecretStoreError) -> KeyringReference? {
    let file = KeyringReference.fileName(name)
    let bytes = try files.about(file) { () throws(Errno) in
      try SmallFile.read(file, in: directory, atMost: KeyringReference.greatestByteCount)
    }
    if let bytes { return try KeyringReference(bytes, name: name) }
    guard try files.exists(file, in: directory) else { return nil }
    throw .notAvailable(.damaged("its reference to the Secret Service is no file, or too long"))
  }

  private func write(
    _ contents: [UInt8], _ name: AccountName, in directory: CInt
  ) throws(SecretStoreError) {
    let file = KeyringReference.fileName(name)
    try files.about(file) { () throws(Errno) in
      try files.write(contents, as: file, in: directory)
      try Syscalls.synchronize(directory)
    }
  }

  private func lookUp(_ reference: KeyringReference) throws(SecretStoreError) -> Account {
    let secret: SecretBytes
    do throws(SecretStoreError) { secret = try keyring.secret(Self.attributes(reference)) } catch {
      guard case .itemNotFound = error else { throw error }
      throw .notAvailable(.keyring(.missingItem(reference.vaultPath)))
    }
    // No secret itself: what is secret in it is encrypted.
    let account = try AccountCoder.decode(
      secret.withUnsafeBytes { Array($0) }, name: reference.name)
    guard account.vaultID == reference.vaultID else {
      throw .notAvailable(.damaged("it belongs to another vault"))
    }
    return account
  }

  private static func attributes(_ reference: KeyringReference) -> [String: String] {
    Keyring.attributes(.account, reference.name, vaultID: reference.vaultID)
  }

  private static func label(_ name: AccountName) -> String { "photovault account \(name)" }

  private static func item(_ account: Account) throws(SecretStoreError) -> SecretBytes {
    var bytes = try AccountCoder.encode(account)
    do throws(Errno) { return try SecretBytes(wiping: &bytes) } catch {
      throw .notAvailable(.system("memory", error))
    }
  }
}
