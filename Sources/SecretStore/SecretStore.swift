/// Keeps the account items: the keychain's four verbs, and a list.
package protocol SecretStore: Sendable {
  /// On return the item is on the disk. Throws `.duplicateItem`, and nothing is changed.
  func add(_ account: Account) throws(SecretStoreError)

  /// Throws `.itemNotFound`.
  func lookUp(_ name: AccountName) throws(SecretStoreError) -> Account

  /// Puts `new` in the place of `old`, durably. False, and nothing is changed, when the item is no
  /// longer `old`: somebody else changed it. Throws `.itemNotFound`.
  func update(_ old: Account, to new: Account) throws(SecretStoreError) -> Bool

  /// Throws `.itemNotFound`.
  func delete(_ name: AccountName) throws(SecretStoreError)

  /// Sorted.
  func names() throws(SecretStoreError) -> [AccountName]
}
