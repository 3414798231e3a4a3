package import Glibc
package import Platform
import SecuredData
import Synchronization

/// The plaintext's size of a stored file without a pass over it: from its seal, which comes with the
/// status for nothing, or from the length of its padding, which is at its end.
///
/// It is not verified: `ls -l` lists what can't be read. Whoever reads gets the verified size.
package enum BlobSize {
  /// `status` is that of the blob `stored` in `directory`. What is damaged shows the greatest size
  /// that its stored size allows; what is no blob, its stored size.
  /// `readingPadding`: whatever the seal says.
  package static func plaintextSize(
    of stored: FileName, in directory: CInt, _ status: stat, keys: VaultKeys,
    readingPadding: Bool = false
  ) -> Int64 {
    if !readingPadding, status.st_nlink == 1,
      let sealed = PlaceSeal.plaintextSize(of: stored, in: directory, status)
    {
      return sealed
    }
    let size = Int64(status.st_size)
    do {
      let file = try open(stored, in: directory)
      return try plaintextSize(of: file.rawValue, storedSize: size, keys: keys)
    } catch {
      return greatest(size)
    }
  }

  /// As its padding says, whatever its seal does; nil if that can't be read.
  package static func plaintextSize(of descriptor: CInt, keys: VaultKeys) -> Int64? {
    guard let size = try? Int64(Syscalls.status(descriptor).st_size) else { return nil }
    return try? plaintextSize(of: descriptor, storedSize: size, keys: keys)
  }

  /// A look at the size is no access to the photo. Other people's files can't be read without one.
  static func open(
    _ stored: FileName, in directory: CInt
  ) throws(Errno) -> FileDescriptor {
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK
    do throws(Errno) {
      return try Syscalls.open(stored, in: directory, flags: flags | Syscalls.withoutAccessTime)
    } catch {
      guard error == .notPermitted else { throw error }
      return try Syscalls.open(stored, in: directory, flags: flags)
    }
  }

  /// What a blob of `size` bytes can hold at most.
  package static func greatest(_ size: Int64) -> Int64 {
    max(0, size - Int64(Format.passwordHeaderByteCount + Format.hmacByteCount + 1))
  }

  private static func plaintextSize(
    of descriptor: CInt, storedSize size: Int64, keys: VaultKeys
  ) throws -> Int64 {
    var buffer = [UInt8](repeating: 0, count: Format.passwordHeaderByteCount)
    let count = try buffer.withUnsafeMutableBytes {
      try Syscalls.read(descriptor, into: $0, at: 0)
    }
    let header: Header
    do {
      header = try buffer.withUnsafeBytes {
        try Header.parse(UnsafeRawBufferPointer(rebasing: $0[..<count]), messageSize: size)
      }
    } catch { return size }
    let tail = size - Int64(Format.hmacByteCount + 2 * Format.blockByteCount)
    var blocks = [UInt8](repeating: 0, count: 2 * Format.blockByteCount)
    let got = try blocks.withUnsafeMutableBytes {
      try Syscalls.read(descriptor, into: $0, at: tail)
    }
    guard got == blocks.count else { throw Errno.inputOutput }
    let padding = try Blob.paddingByteCount(blocks, try keys.keys(for: header), keys)
    return size - Int64(header.byteCount + Format.hmacByteCount + padding)
  }
}
