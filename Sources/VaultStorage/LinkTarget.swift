import Glibc
package import Platform
import SecuredData

extension VaultDirectory {
  private static let linkPurpose = Array("photovault/1/link".utf8)

  /// What symlink(2) is given. Throws `.system(.nameTooLong)` when it doesn't fit the disk: an
  /// encrypted target of more than 3,055 bytes.
  package func encodeLinkTarget(_ target: FileName) throws(StorageError) -> FileName {
    var stored = target
    if context.names == .encrypted, target.count > 0 {
      let raw = try StorageError.inCrypto { () throws(CryptoFailure) in
        try context.keys.names.withUnsafeBytes { key throws(CryptoFailure) in
          try SIV.encrypt(target.bytes, associatedData: Self.linkPurpose, key: key)
        }
      }
      stored = FileName(Base64URL.encode(raw))
    }
    guard stored.count < PATH_MAX else { throw .system(.nameTooLong) }
    return stored
  }

  /// Throws `.damagedMetadata` for a link that was not made with this vault's keys.
  package func decodeLinkTarget(_ stored: FileName) throws(StorageError) -> FileName {
    if context.names == .plain { return stored }
    guard let raw = Base64URL.decode(stored.bytes[...]) else { throw .damagedMetadata }
    let target = try StorageError.inCrypto { () throws(CryptoFailure) in
      try context.keys.names.withUnsafeBytes { key throws(CryptoFailure) in
        try SIV.decrypt(raw, associatedData: Self.linkPurpose, key: key)
      }
    }
    guard let target, !target.isEmpty, !target.contains(0) else { throw .damagedMetadata }
    return FileName(target)
  }
}
