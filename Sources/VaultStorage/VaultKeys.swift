package import Platform
package import SecuredData
import Synchronization

/// Every key of an unlocked vault; wiped when the vault goes away.
package final class VaultKeys: Sendable {
  /// RNCryptor's two keys under the vault's own salts.
  package let messageKeys: MessageKeys
  package let salts: Salts
  /// AES-256-SIV, 64 bytes: file names and link targets.
  package let names: SecretBytes
  /// AES-256-SIV, 64 bytes: names and values of extended attributes.
  package let extendedAttributes: SecretBytes
  /// 32 bytes: the chunk index.
  package let chunks: SecretBytes
  /// 32 bytes: the MAC of `vault.json`.
  package let configuration: SecretBytes

  /// Keyed contexts for who writes and reads the vault's own blobs, used again.
  let writerContexts = ContextPool<WriterContexts>()
  let decryptors = ContextPool<CBC>()
  let verifiers = ContextPool<HMACSHA256>()

  private let password: SecretBytes
  private let foreign = ConditionLock<[DerivationInput: Derived]>([:])

  private struct DerivationInput: Hashable {
    let salts: Salts
    let version: UInt8
  }

  /// Pairs of keys that are kept, in locked memory. Other programs take new salts for each blob.
  private static let keptCount = 1024

  private enum Derived {
    case pending
    case done(MessageKeys)

    var isPending: Bool { if case .pending = self { true } else { false } }
  }

  /// `password` is the RNCryptor password of the vault's blobs: the recovery key as shown.
  package init(
    password: borrowing SecretBytes, salts: Salts, vaultID: [UInt8]
  ) throws(StorageError) {
    do throws(SecuredDataError) {
      messageKeys = try KeyDerivation.keys(password: password, salts: salts)
    } catch { throw .blob(error) }
    let keys = messageKeys
    func derive(_ purpose: String, _ count: Int) throws(StorageError) -> SecretBytes {
      var key: SecretBytes
      do { key = try SecretBytes(count: count) } catch { throw .system(error) }
      do throws(CryptoFailure) {
        try keys.withBothKeys { input throws(CryptoFailure) in
          try key.withUnsafeMutableBytes { target throws(CryptoFailure) in
            try Derivation.hkdf(
              input: input, salt: vaultID, info: "photovault/1/\(purpose)", into: target)
          }
        }
      } catch { throw .crypto(error) }
      return key
    }
    self.salts = salts
    names = try derive("names", SIV.keyByteCount)
    extendedAttributes = try derive("xattrs", SIV.keyByteCount)
    chunks = try derive("chunks", 32)
    configuration = try derive("config", 32)
    do { self.password = try password.copy() } catch { throw .system(error) }
  }

  /// The keys for a blob's header. Foreign salts are derived once, however many ask at once.
  /// Throws `.blob(.wrongMode)` for a key-mode blob, which a vault's password can't open.
  package func keys(for header: Header) throws(StorageError) -> MessageKeys {
    guard case .password(let blobSalts) = header.mode else { throw .blob(.wrongMode) }
    if blobSalts == salts, header.version == Format.currentVersion { return messageKeys }
    let input = DerivationInput(salts: blobSalts, version: header.version)
    let known: MessageKeys? = foreign.withLock(
      when: { waits(for: input, in: $0) },
      { derived in
        if case .done(let keys) = derived[input] { return keys }
        derived[input] = .pending
        return nil
      })
    if let known { return known }
    do throws(SecuredDataError) {
      let keys = try KeyDerivation.keys(
        password: password, salts: blobSalts, version: header.version)
      foreign.withLock { derived in
        if derived.count > Self.keptCount { derived = derived.filter { $0.value.isPending } }
        derived[input] = .done(keys)
      }
      return keys
    } catch {
      foreign.withLock { $0[input] = nil }
      throw .blob(error)
    }
  }

  private func waits(
    for input: DerivationInput, in derived: [DerivationInput: Derived]
  ) -> Bool {
    if case .pending = derived[input] { return false }
    return true
  }
}
