import CFUSE
import Glibc
import Synchronization

/// Agrees with the kernel on FUSE_HANDLE_KILLPRIV_V2, which libfuse before 3.17 doesn't know: the
/// set-user-id bits of a file that is written are then ours to clear, and the kernel doesn't ask for
/// a file's capabilities with each write.
///
/// The flag is set in libfuse's answer to FUSE_INIT on its way to the kernel, if the kernel offered
/// it. Source: linux/fuse.h, FUSE protocol 7.33.
enum DeviceInterception {
  /// FUSE_INIT's number among the requests.
  private static let initialization: UInt32 = 26
  private static let killsPrivileges: UInt32 = 1 << 28
  /// Where `struct fuse_in_header` has the opcode and the request's number, `struct fuse_init_in` the
  /// flags behind it, `struct fuse_out_header` the number and `struct fuse_init_out` the flags.
  private static let opcodeOffset = 4
  private static let uniqueOffset = 8
  private static let offeredFlagsOffset = 40 + 12
  private static let agreedFlagsOffset = 12

  /// Devices whose FUSE_INIT is being answered, and the request's number.
  private static let beginning = Mutex<[CInt: UInt64]>([:])
  private static let beginningCount = Atomic<Int>(0)

  /// After "fuse_session_mount", before the first request is read.
  static func install(on session: OpaquePointer) {
    var io = fuse_custom_io()
    io.read = { device, buffer, size, _ in
      let count = Glibc.read(device, buffer, size)
      if let buffer, count > DeviceInterception.offeredFlagsOffset + 4 {
        DeviceInterception.note(UnsafeRawBufferPointer(start: buffer, count: count), from: device)
      }
      return count
    }
    io.writev = { device, parts, count, _ in
      guard let parts else { return -1 }
      if DeviceInterception.beginningCount.load(ordering: .acquiring) > 0, count > 1 {
        DeviceInterception.amend(UnsafeBufferPointer(start: parts, count: Int(count)), to: device)
      }
      return Glibc.writev(device, parts, count)
    }
    fuse_session_custom_io(session, &io, fuse_session_fd(session))
  }

  static func note(_ request: UnsafeRawBufferPointer, from device: CInt) {
    guard request.loadUnaligned(fromByteOffset: opcodeOffset, as: UInt32.self) == initialization,
      request.loadUnaligned(fromByteOffset: offeredFlagsOffset, as: UInt32.self) & killsPrivileges
        != 0
    else { return }
    let unique = request.loadUnaligned(fromByteOffset: uniqueOffset, as: UInt64.self)
    if beginning.withLock({ $0.updateValue(unique, forKey: device) }) == nil {
      beginningCount.add(1, ordering: .releasing)
    }
  }

  static func amend(_ reply: UnsafeBufferPointer<iovec>, to device: CInt) {
    guard let header = reply[0].iov_base, let body = reply[1].iov_base,
      reply[1].iov_len >= agreedFlagsOffset + 4
    else { return }
    let unique = header.loadUnaligned(fromByteOffset: uniqueOffset, as: UInt64.self)
    let isInitialization = beginning.withLock { beginning in
      guard beginning[device] == unique else { return false }
      beginning[device] = nil
      return true
    }
    guard isInitialization else { return }
    beginningCount.subtract(1, ordering: .releasing)
    let flags = body.loadUnaligned(fromByteOffset: agreedFlagsOffset, as: UInt32.self)
    body.storeBytes(
      of: flags | killsPrivileges, toByteOffset: agreedFlagsOffset, as: UInt32.self)
  }
}
