import Platform
import SecuredData
import Synchronization

/// Cipher contexts that already know their key: making one costs as much as a small photo.
final class ContextPool<Context: Sendable>: Sendable {
  private let idle = Mutex<[Context]>([])
  private static var keptCount: Int { 8 }

  func take() -> Context? { idle.withLock { $0.popLast() } }

  func giveBack(_ context: Context) {
    idle.withLock { if $0.count < Self.keptCount { $0.append(context) } }
  }
}

extension ContextPool<CBC> {
  /// Ready to decrypt what follows the block `iv`. All contexts of one pool have one key.
  func decryptor(
    _ keys: MessageKeys, iv: UnsafeRawBufferPointer
  ) throws(CryptoFailure) -> CBC {
    if let known = take() {
      try known.restart(iv: iv)
      return known
    }
    return try keys.withEncryptionKey { key throws(CryptoFailure) in
      try CBC(.decrypt, key: key, iv: iv)
    }
  }
}

extension ContextPool<HMACSHA256> {
  /// Ready for a new message. All contexts of one pool have one key.
  func verifier(_ keys: MessageKeys) throws(CryptoFailure) -> HMACSHA256 {
    if let known = take() {
      try known.restart()
      return known
    }
    return try keys.withHMACKey { key throws(CryptoFailure) in try HMACSHA256(key: key) }
  }
}

/// What a writer of a blob needs of the vault's own keys.
final class WriterContexts: Sendable {
  let cbc: CBC
  let hmac: HMACSHA256

  private init(_ keys: VaultKeys, iv: [UInt8]) throws(CryptoFailure) {
    cbc = try keys.messageKeys.withEncryptionKey { key throws(CryptoFailure) in
      try iv.withBytes { iv throws(CryptoFailure) in try CBC(.encrypt, key: key, iv: iv) }
    }
    hmac = try keys.messageKeys.withHMACKey { key throws(CryptoFailure) in
      try HMACSHA256(key: key)
    }
  }

  /// Ready for a new blob with this IV. `VaultKeys.writerContexts` takes it back.
  static func ready(_ keys: VaultKeys, iv: [UInt8]) throws(CryptoFailure) -> WriterContexts {
    guard let known = keys.writerContexts.take() else {
      return try WriterContexts(keys, iv: iv)
    }
    try iv.withBytes { iv throws(CryptoFailure) in try known.cbc.restart(iv: iv) }
    try known.hmac.restart()
    return known
  }
}
