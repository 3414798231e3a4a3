import Platform
import RuntimeLibraries

/// The desktop's Secret Service as account items and remembered passwords need it.
package struct Keyring: Sendable {
  enum Kind: String {
    case account = "photovault.Account"
    case password = "photovault.Password"
  }

  private let libsecret = Libsecret.shared
  private let hasBus: Bool
  private let willAsk: @Sendable () -> Void

  /// `hasBus`: whether there is a session bus; without one GLib would start its own. `willAsk` is
  /// called before the service may ask somebody to unlock it.
  package init(hasBus: Bool, willAsk: @escaping @Sendable () -> Void) {
    self.hasBus = hasBus
    self.willAsk = willAsk
  }

  /// By these an item is found. Vaults differ, so accounts of several homes don't meet.
  static func attributes(
    _ kind: Kind, _ name: AccountName, vaultID: [UInt8]
  ) -> [String: String] {
    [
      "xdg:schema": kind.rawValue, "account": name.text,
      "vault": String(decoding: Hexadecimal.digits(vaultID), as: UTF8.self),
    ]
  }

  /// Unlocks the collection for new items, if need be, so that `save` needs to ask nobody.
  func openForItems() throws(SecretStoreError) {
    _ = try openCollection()
  }

  func contains(_ attributes: [String: String]) throws(SecretStoreError) -> Bool {
    try asking { () throws(Libsecret.Failure) in try !items(attributes).isEmpty }
  }

  /// Unlocks the item, if need be. Throws `.itemNotFound`.
  func secret(_ attributes: [String: String]) throws(SecretStoreError) -> SecretBytes {
    try asking { () throws(Libsecret.Failure) in
      guard let item = try items(attributes).first else { throw .missing }
      try unlock(item)
      return try libsecret.secret(of: item)
    }
  }

  /// Replaces the secret of the item with these attributes, or adds one.
  func save(
    _ secret: borrowing SecretBytes, _ attributes: [String: String], label: String
  ) throws(SecretStoreError) {
    if let item = try asking({ () throws(Libsecret.Failure) in try items(attributes).first }) {
      return try asking { () throws(Libsecret.Failure) in
        try unlock(item)
        try libsecret.replaceSecret(of: item, with: secret)
      }
    }
    let collection = try openCollection()
    try asking { () throws(Libsecret.Failure) in
      try libsecret.add(to: collection, attributes: attributes, label: label, secret: secret)
    }
  }

  /// Every item with these attributes; none is no error.
  func delete(_ attributes: [String: String]) throws(SecretStoreError) {
    try asking { () throws(Libsecret.Failure) in
      for item in try items(attributes) {
        try unlock(item)
        do throws(Libsecret.Failure) { try libsecret.delete(item) } catch {
          if error != .missing { throw error }
        }
      }
    }
  }

  private func items(
    _ attributes: [String: String]
  ) throws(Libsecret.Failure) -> [Libsecret.Item] {
    guard hasBus else { throw .noBus("") }
    return try libsecret.items(matching: attributes)
  }

  private func unlock(_ item: Libsecret.Item) throws(Libsecret.Failure) {
    guard item.isLocked else { return }
    willAsk()
    try libsecret.unlock(item)
  }

  private func openCollection() throws(SecretStoreError) -> Libsecret.Collection {
    try asking { () throws(Libsecret.Failure) in
      guard hasBus else { throw .noBus("") }
      let collection = try libsecret.defaultCollection()
      guard collection.isLocked else { return collection }
      willAsk()
      return try libsecret.unlock(collection)
    }
  }

  private func asking<Result: ~Copyable>(
    _ body: () throws(Libsecret.Failure) -> Result
  ) throws(SecretStoreError) -> Result {
    do throws(Libsecret.Failure) { return try body() } catch { throw Self.translated(error) }
  }

  private static func translated(_ error: Libsecret.Failure) -> SecretStoreError {
    switch error {
    case .notInstalled: .notAvailable(.keyring(.notInstalled))
    case .noBus: .notAvailable(.keyring(.noBus))
    case .noService: .notAvailable(.keyring(.noService))
    case .timedOut: .notAvailable(.keyring(.timedOut))
    case .refused(let words): .notAvailable(.keyring(.refused(words)))
    case .locked: .interactionNotAllowed
    case .dismissed: .userCancelled
    case .missing: .itemNotFound
    }
  }
}
