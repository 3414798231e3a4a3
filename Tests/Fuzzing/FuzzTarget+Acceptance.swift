import Platform
import SecretStore
import SecuredData
import VaultStorage

extension FuzzTarget {
  /// Whether what is read is taken for genuine.
  package func accepts(_ bytes: [UInt8]) throws -> Bool {
    let samples = try Samples.made()
    switch self {
    case .header:
      let start = Array(bytes.prefix(Format.passwordHeaderByteCount))
      return (try? start.withUnsafeBytes { try Header.parse($0, messageSize: Int64(bytes.count)) })
        != nil
    case .message: return (try? SecuredData.decrypt(bytes) { _ in samples.keys.messageKeys }) != nil
    case .names:
      let codec = try NameCodec(
        keys: samples.keys, mode: .encrypted, directory: .plain, isRoot: true)
      return try codec.name(ofText: bytes[...]) != nil
    case .attributes:
      return try ExtendedAttributes(keys: samples.keys).name(stored: FileName(bytes)) != nil
    case .superblock: return (try? Superblock(parsing: bytes).isGenuine(samples.keys)) == true
    case .account: return (try? AccountCoder.decode(bytes, name: AccountName("alice"))) != nil
    case .chunkIndex:
      return try ChunkIndex.decode(
        bytes, keys: samples.keys, header: Samples.header, hmac: Samples.hmac,
        ciphertextSize: Samples.ciphertextSize) != nil
    case .recoveryKey:
      var bytes = bytes
      let typed = try SecretBytes(wiping: &bytes)
      return try RecoveryKey.normalise(typed) != nil
    }
  }
}
