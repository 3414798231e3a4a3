import Glibc
import Platform
import SecuredData

/// An RNCryptor message in a file that can be read at offsets.
struct MessageFile {
  /// For messages.
  private let name: String
  private let fd: CInt

  init(_ name: String, _ fd: CInt) {
    self.name = name
    self.fd = fd
  }

  /// Hands out the plaintext once all of the message is verified.
  func decrypt(
    password: borrowing SecretBytes,
    into sink: (UnsafeRawBufferPointer) throws(CommandError) -> Void
  ) throws(CommandError) {
    let size = try about(name) { () throws(Errno) in Int64(try Syscalls.status(fd).st_size) }
    // A changed header would be found out by the HMAC.
    let keys = try keys(of: try header(messageSize: size), password)
    try Decryptor.decrypt(
      messageSize: size,
      failure: { CommandError(message: name, $0) },
      keys: { (_) throws(CommandError) in keys },
      read: { (offset, buffer) throws(CommandError) in try read(buffer, at: offset) },
      sink: sink)
  }

  private func header(messageSize: Int64) throws(CommandError) -> Header {
    var start = [UInt8](repeating: 0, count: Format.passwordHeaderByteCount)
    return try start.withUnsafeMutableBufferPointer { bytes throws(CommandError) in
      let buffer = UnsafeMutableRawBufferPointer(bytes)
      let count = try read(buffer, at: 0)
      do throws(SecuredDataError) {
        return try Header.parse(
          UnsafeRawBufferPointer(rebasing: buffer[..<count]), messageSize: messageSize)
      } catch { throw CommandError(message: name, error) }
    }
  }

  private func keys(
    of header: Header, _ password: borrowing SecretBytes
  ) throws(CommandError) -> MessageKeys {
    do throws(SecuredDataError) {
      guard case .password(let salts) = header.mode else { throw SecuredDataError.wrongMode }
      return try KeyDerivation.keys(password: password, salts: salts, version: header.version)
    } catch { throw CommandError(message: name, error) }
  }

  private func read(
    _ buffer: UnsafeMutableRawBufferPointer, at offset: Int64
  ) throws(CommandError) -> Int {
    try about(name) { () throws(Errno) in try Syscalls.read(fd, into: buffer, at: offset) }
  }
}
