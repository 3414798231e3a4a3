package import Platform
import SecuredData

/// Which version of a file a stored blob is: a hash, keyed by the process, of its header, whose IV is
/// another one for each content that was ever written. Links, renames and copies keep it.
package struct BlobVersion: Equatable, Sendable {
  private let digest: Int

  package init(_ blob: Blob) { self.init(blob.header.bytes[...]) }

  /// Of the stored file as it is now, damaged or not.
  package init(of descriptor: CInt) throws(Errno) {
    var start = [UInt8](repeating: 0, count: Format.passwordHeaderByteCount)
    let count = try start.withMutableBytes { bytes throws(Errno) in
      try Syscalls.read(descriptor, into: bytes, at: 0)
    }
    let isWithKeys = count > 1 && start[1] == 0
    self.init(start.prefix(isWithKeys ? min(count, Format.keyHeaderByteCount) : count))
  }

  private init(_ header: ArraySlice<UInt8>) {
    var hasher = Hasher()
    for byte in header { hasher.combine(byte) }
    digest = hasher.finalize()
  }
}
