import Glibc
import Platform
import SecuredData

/// The RNCryptor password of encrypted files that are imported.
final class BlobPassword: Sendable {
  private let password: SecretBytes

  init(_ password: consuming SecretBytes) { self.password = password }

  func keys(for header: Header) throws(TransferFailure) -> MessageKeys {
    do throws(SecuredDataError) {
      guard case .password(let salts) = header.mode else { throw SecuredDataError.wrongMode }
      return try KeyDerivation.keys(password: password, salts: salts, version: header.version)
    } catch { throw .message(error) }
  }
}

/// An open file outside of the vault: what it holds, decrypted where it is encrypted.
struct SourceContent: ~Copyable {
  let descriptor: FileDescriptor
  let status: stat
  private let password: BlobPassword?

  /// `password` for an encrypted file. Links are not followed, and reading leaves no trace where
  /// the file is ours.
  init(
    directory: CInt, _ path: FileName, password: BlobPassword? = nil
  ) throws(TransferFailure) {
    let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
    let descriptor = try TransferFailure.onOutside { () throws(Errno) in
      do throws(Errno) {
        return try Syscalls.open(
          path, in: directory, flags: flags | Syscalls.withoutAccessTime)
      } catch {
        guard error == .notPermitted else { throw error }
        return try Syscalls.open(path, in: directory, flags: flags)
      }
    }
    let number = descriptor.rawValue
    let status = try TransferFailure.onOutside { () throws(Errno) in try Syscalls.status(number) }
    guard status.st_mode & S_IFMT == mode_t(Glibc.S_IFREG) else { throw .changed }
    self.descriptor = descriptor
    self.status = status
    self.password = password
  }

  /// Throws `.changed` where somebody wrote to it since it was opened. A new name of it, or one
  /// less, is no change.
  func requireUnchanged() throws(TransferFailure) {
    let number = descriptor.rawValue
    let now = try TransferFailure.onOutside { () throws(Errno) in try Syscalls.status(number) }
    guard Self.isSame(status, now) else { throw .changed }
  }

  static func isSame(_ before: stat, _ now: stat) -> Bool {
    func same(_ left: timespec, _ right: timespec) -> Bool {
      left.tv_sec == right.tv_sec && left.tv_nsec == right.tv_nsec
    }
    return before.st_dev == now.st_dev && before.st_ino == now.st_ino
      && before.st_size == now.st_size && same(before.st_mtim, now.st_mtim)
      && (same(before.st_ctim, now.st_ctim) || before.st_nlink != now.st_nlink)
  }

  static let pieceByteCount = 256 << 10

  /// Hands out all there is, piece by piece; of an encrypted file, once it is verified.
  func read(
    _ sink: (UnsafeRawBufferPointer) throws(TransferFailure) -> Void
  ) throws(TransferFailure) {
    let number = descriptor.rawValue
    if let password {
      return try Decryptor.decrypt(
        messageSize: Int64(status.st_size), failure: { TransferFailure.message($0) },
        keys: { header throws(TransferFailure) in try password.keys(for: header) },
        read: { offset, buffer throws(TransferFailure) in
          try TransferFailure.onOutside { () throws(Errno) in
            try Syscalls.read(number, into: buffer, at: offset)
          }
        }, sink: sink)
    }
    try Self.read(number, sink)
  }

  /// Hands out all that an open file holds.
  static func read(
    _ number: CInt, _ sink: (UnsafeRawBufferPointer) throws(TransferFailure) -> Void
  ) throws(TransferFailure) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(
      byteCount: pieceByteCount, alignment: 64)
    defer {
      SecretBytes.wipe(buffer)
      buffer.deallocate()
    }
    var position: Int64 = 0
    while true {
      let count = try TransferFailure.onOutside { () throws(Errno) in
        try Syscalls.read(number, into: buffer, at: position)
      }
      if count == 0 { return }
      try sink(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
      position += Int64(count)
      if count < buffer.count { return }
    }
  }

  /// SHA-256 of it.
  func digest() throws(TransferFailure) -> [UInt8] {
    let hash = try TransferFailure.inCrypto { () throws(CryptoFailure) in try Digest() }
    try read { bytes throws(TransferFailure) in
      try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.update(bytes) }
    }
    return try TransferFailure.inCrypto { () throws(CryptoFailure) in try hash.finish() }
  }

  /// Calls `body` with its first bytes, at most `limit`; they are wiped then.
  func withHead<Result>(
    _ limit: Int, _ body: (UnsafeRawBufferPointer) -> Result
  ) throws(TransferFailure) -> Result {
    let head = UnsafeMutableRawBufferPointer.allocate(
      byteCount: max(1, min(limit, Int(status.st_size))), alignment: 16)
    defer {
      SecretBytes.wipe(head)
      head.deallocate()
    }
    var done = 0
    if password == nil {
      let number = descriptor.rawValue
      done = try TransferFailure.onOutside { () throws(Errno) in
        try Syscalls.read(number, into: head, at: 0)
      }
    } else {
      try read { bytes in
        let count = min(bytes.count, head.count - done)
        if count == 0 { return }
        UnsafeMutableRawBufferPointer(rebasing: head[done..<(done + count)])
          .copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        done += count
      }
    }
    return body(UnsafeRawBufferPointer(rebasing: head[..<done]))
  }

  // MARK: What it is

  /// As much of a picture as its date is looked for in; a HEIC picture has it anywhere.
  private static let headByteCount = 256 << 10
  private static let heicByteCount = 64 << 20

  func contentType() throws(TransferFailure) -> ContentType? {
    try withHead(ContentType.byteCount) { ContentType($0) }
  }

  /// nil where it says nothing of that.
  func dateTaken() throws(TransferFailure) -> PhotoDate? {
    var isHEIC = false
    let date = try withHead(Self.headByteCount) { head -> PhotoDate? in
      switch ContentType(head) {
      case .heic, .avif: isHEIC = true
      case .mp4, .mov, .gif, .webp, .png: break
      case .jpg, .tiff, nil: return PhotoDate(picture: head)
      }
      return nil
    }
    guard isHEIC else { return date }
    return try withHead(Self.heicByteCount) { PhotoDate(heic: $0) }
  }
}
