import CFUSE
import Glibc
import Synchronization

/// Agrees with the kernel on FUSE_HANDLE_KILLPRIV_V2, which libfuse before 3.17 doesn't know: the
/// set-user-id bits of a file that is written are then ours to clear, and the kernel doesn't ask for
/// a file's capabilities with each write. And tells what else the kernel offers that libfuse hides.
///
/// The flag is set in libfuse's answer to FUSE_INIT on its way to the kernel, if the kernel offered
/// it. Source: linux/fuse.h, FUSE protocol 7.33.
enum DeviceInterception {
  /// The kernel's flags, the first 32 of `flags` and the rest of `flags2`.
  struct Offer: OptionSet, Sendable {
    let rawValue: UInt64

    static let killsPrivileges = Offer(rawValue: 1 << 28)
    /// `flags2` counts.
    fileprivate static let isExtended = Offer(rawValue: 1 << 30)
    /// FUSE_DIRECT_IO_ALLOW_MMAP. Came in Linux 6.6 together with: before a write that goes past the pages,
    /// those of the range are dropped.
    static let directWritesDropPages = Offer(rawValue: 1 << 36)
  }

  /// FUSE_INIT's number among the requests.
  private static let initialization: UInt32 = 26
  /// Where `struct fuse_in_header` has the opcode and the request's number, `struct fuse_init_in` the
  /// flags behind it, `struct fuse_out_header` the number and `struct fuse_init_out` the flags.
  private static let opcodeOffset = 4
  private static let uniqueOffset = 8
  private static let offeredFlagsOffset = 40 + 12
  private static let extendedFlagsOffset = 40 + 16
  private static let agreedFlagsOffset = 12

  /// Devices whose FUSE_INIT is being answered, and the request's number.
  private static let beginning = Mutex<[CInt: UInt64]>([:])
  private static let beginningCount = Atomic<Int>(0)
  private static let listeners = Mutex<[CInt: @Sendable (Offer) -> Void]>([:])

  /// After "fuse_session_mount", before the first request is read. `listener` is called once, with the
  /// first request.
  static func install(
    on session: OpaquePointer, _ listener: @escaping @Sendable (Offer) -> Void
  ) {
    let device = fuse_session_fd(session)
    listen(on: device, listener)
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
    fuse_session_custom_io(session, &io, device)
  }

  static func listen(on device: CInt, _ listener: @escaping @Sendable (Offer) -> Void) {
    listeners.withLock { $0[device] = listener }
  }

  static func note(_ request: UnsafeRawBufferPointer, from device: CInt) {
    guard request.loadUnaligned(fromByteOffset: opcodeOffset, as: UInt32.self) == initialization
    else { return }
    let offer = offer(in: request)
    listeners.withLock { $0.removeValue(forKey: device) }?(offer)
    guard offer.contains(.killsPrivileges) else { return }
    let unique = request.loadUnaligned(fromByteOffset: uniqueOffset, as: UInt64.self)
    if beginning.withLock({ $0.updateValue(unique, forKey: device) }) == nil {
      beginningCount.add(1, ordering: .releasing)
    }
  }

  private static func offer(in request: UnsafeRawBufferPointer) -> Offer {
    func flags(_ offset: Int) -> UInt64 {
      guard request.count >= offset + 4 else { return 0 }
      return UInt64(request.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }
    let offer = Offer(rawValue: flags(offeredFlagsOffset))
    guard offer.contains(.isExtended) else { return offer }
    return offer.union(Offer(rawValue: flags(extendedFlagsOffset) << 32))
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
      of: flags | UInt32(Offer.killsPrivileges.rawValue), toByteOffset: agreedFlagsOffset,
      as: UInt32.self)
  }
}
