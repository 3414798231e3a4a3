package import Platform
import SecuredData

/// An account item: where the vault is, and its RNCryptor password under the user's password.
package struct Account: Hashable, Sendable {
  package let name: AccountName
  package let vaultID: [UInt8]
  /// Absolute.
  package let vaultPath: String
  /// Backups shall leave the item out.
  package let thisDeviceOnly: Bool
  let scrypt: Scrypt
  /// An RNCryptor v3 key-mode message.
  let sealedSecret: [UInt8]

  init(
    name: AccountName, vaultID: [UInt8], vaultPath: String, thisDeviceOnly: Bool, scrypt: Scrypt,
    sealedSecret: [UInt8]
  ) {
    self.name = name
    self.vaultID = vaultID
    self.vaultPath = vaultPath
    self.thisDeviceOnly = thisDeviceOnly
    self.scrypt = scrypt
    self.sealedSecret = sealedSecret
  }

  /// A new item for `secret`, the RNCryptor password of the vault. Takes half a second.
  package init(
    name: AccountName, vaultID: [UInt8], vaultPath: String, thisDeviceOnly: Bool,
    secret: borrowing SecretBytes, password: borrowing SecretBytes,
    cost: Scrypt.Cost = .standard
  ) throws(SecretStoreError) {
    let scrypt = try Scrypt.fresh(cost)
    let keys = try scrypt.keys(password: password)
    let sealed: [UInt8]
    do throws(SecuredDataError) {
      sealed = try secret.withUnsafeBytes { secret throws(SecuredDataError) in
        try SecuredData.encrypt(secret, keys: keys)
      }
    } catch { throw Self.translated(error) }
    self.init(
      name: name, vaultID: vaultID, vaultPath: vaultPath, thisDeviceOnly: thisDeviceOnly,
      scrypt: scrypt, sealedSecret: sealed)
  }

  /// The RNCryptor password of the vault. Takes half a second. Throws `.authenticationFailed` for
  /// a wrong password.
  package func open(password: borrowing SecretBytes) throws(SecretStoreError) -> SecretBytes {
    let keys = try scrypt.keys(password: password)
    do throws(SecuredDataError) { return try unseal(keys) } catch { throw Self.translated(error) }
  }

  /// The same item under another password, with a salt of its own.
  package func changing(
    secret: borrowing SecretBytes, toPassword password: borrowing SecretBytes,
    cost: Scrypt.Cost = .standard
  ) throws(SecretStoreError) -> Account {
    try Account(
      name: name, vaultID: vaultID, vaultPath: vaultPath, thisDeviceOnly: thisDeviceOnly,
      secret: secret, password: password, cost: cost)
  }

  private func unseal(_ keys: MessageKeys) throws(SecuredDataError) -> SecretBytes {
    var secret: SecretBytes
    do throws(Errno) { secret = try SecretBytes(count: sealedSecret.count) } catch {
      throw .outOfMemory
    }
    var done = 0
    try Decryptor.decrypt(
      messageSize: Int64(sealedSecret.count),
      keys: { header throws(SecuredDataError) in
        guard header.version == Format.currentVersion, header.mode == .keys else {
          throw .wrongMode
        }
        return keys
      },
      read: { offset, buffer in
        let rest = sealedSecret[min(Int(offset), sealedSecret.count)...].prefix(buffer.count)
        buffer.copyBytes(from: rest)
        return rest.count
      },
      sink: { piece in
        secret.withUnsafeMutableBytes { target in
          UnsafeMutableRawBufferPointer(rebasing: target[done...]).copyMemory(from: piece)
        }
        done += piece.count
      })
    secret.truncate(to: done)
    return secret
  }

  private static func translated(_ error: SecuredDataError) -> SecretStoreError {
    switch error {
    case .notAuthenticated: .authenticationFailed
    case .crypto(let failure): .notAvailable(.crypto(failure))
    case .outOfMemory: .notAvailable(.system("memory", .noMemory))
    default: .notAvailable(.damaged("its secret is no RNCryptor v3 message in key mode"))
    }
  }
}
