import Platform

/// Where an account item is kept.
package enum StoreKind: String, Sendable {
  case file
  case secretService = "secret-service"
}

/// Both stores as one: an account is in either, and a name in only one of them.
package struct AccountStores: SecretStore {
  private let files: FileSecretStore
  package let secretService: SecretService

  /// `directory`: see `FileSecretStore`.
  package init(directory: String, keyring: Keyring) {
    files = FileSecretStore(directory: directory)
    secretService = SecretService(directory: directory, keyring: keyring)
  }

  package subscript(_ kind: StoreKind) -> any SecretStore {
    switch kind {
    case .file: files
    case .secretService: secretService
    }
  }

  /// nil where there is no such account. The item need not be readable, and nobody is asked.
  package func kind(of name: AccountName) throws(SecretStoreError) -> StoreKind? {
    do throws(SecretStoreError) {
      let directory = try files.open()
      if try files.exists(FileSecretStore.fileName(name), in: directory.rawValue) { return .file }
      return try files.exists(KeyringReference.fileName(name), in: directory.rawValue)
        ? .secretService : nil
    } catch {
      if case .itemNotFound = error { return nil }
      throw error
    }
  }

  /// To a file.
  package func add(_ account: Account) throws(SecretStoreError) { try files.add(account) }

  package func lookUp(_ name: AccountName) throws(SecretStoreError) -> Account {
    try store(of: name).lookUp(name)
  }

  package func update(_ old: Account, to new: Account) throws(SecretStoreError) -> Bool {
    try store(of: old.name).update(old, to: new)
  }

  package func delete(_ name: AccountName) throws(SecretStoreError) {
    try store(of: name).delete(name)
  }

  package func names() throws(SecretStoreError) -> [AccountName] {
    try (files.names() + secretService.names()).sorted()
  }

  private func store(of name: AccountName) throws(SecretStoreError) -> any SecretStore {
    guard let kind = try kind(of: name) else { throw .itemNotFound }
    return self[kind]
  }
}
