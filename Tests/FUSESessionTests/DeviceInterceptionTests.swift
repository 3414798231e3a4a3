import Glibc
import Synchronization
import Testing

@testable import FUSESession

/// The bytes of FUSE_INIT and of its answer. Source: linux/fuse.h, protocol 7.31 and later.
@Suite struct DeviceInterceptionTests {
  private static let killsPrivileges: UInt32 = 1 << 28

  /// `struct fuse_in_header` and `struct fuse_init_in`.
  private func note(
    opcode: UInt32 = 26, unique: UInt64, flags: UInt32, moreFlags: UInt32 = 0, device: CInt
  ) {
    var request = [UInt8](repeating: 0, count: 104)
    request.replaceSubrange(0..<4, with: bytes(of: UInt32(104)))
    request.replaceSubrange(4..<8, with: bytes(of: opcode))
    request.replaceSubrange(8..<16, with: bytes(of: unique))
    request.replaceSubrange(40..<48, with: bytes(of: UInt32(7)) + bytes(of: UInt32(40)))
    request.replaceSubrange(52..<56, with: bytes(of: flags))
    request.replaceSubrange(56..<60, with: bytes(of: moreFlags))
    request.withUnsafeBytes { DeviceInterception.note($0, from: device) }
  }

  /// The flags of a `struct fuse_init_out` that had none, behind its `struct fuse_out_header`.
  private func amended(unique: UInt64, device: CInt) -> UInt32 {
    var header = bytes(of: UInt32(80)) + bytes(of: UInt32(0)) + bytes(of: unique)
    var body = [UInt8](repeating: 0, count: 64)
    header.withUnsafeMutableBytes { header in
      body.withUnsafeMutableBytes { body in
        let parts = [
          iovec(iov_base: header.baseAddress, iov_len: header.count),
          iovec(iov_base: body.baseAddress, iov_len: body.count),
        ]
        parts.withUnsafeBufferPointer { DeviceInterception.amend($0, to: device) }
      }
    }
    #expect(body[..<12].allSatisfy { $0 == 0 } && body[16...].allSatisfy { $0 == 0 })
    return body.withUnsafeBytes { $0.load(fromByteOffset: 12, as: UInt32.self) }
  }

  private func bytes<Number: FixedWidthInteger>(of number: Number) -> [UInt8] {
    withUnsafeBytes(of: number.littleEndian, Array.init)
  }

  @Test func whatTheKernelOffersIsTakenOnce() {
    note(unique: 2, flags: Self.killsPrivileges | 1, device: 1001)
    #expect(amended(unique: 4, device: 1001) == 0)
    #expect(amended(unique: 2, device: 1002) == 0)
    #expect(amended(unique: 2, device: 1001) == Self.killsPrivileges)
    #expect(amended(unique: 2, device: 1001) == 0)
  }

  @Test func whatItDoesNotOfferIsNot() {
    note(unique: 2, flags: ~Self.killsPrivileges, device: 1003)
    #expect(amended(unique: 2, device: 1003) == 0)
  }

  @Test(
    "whether writes past the pages drop them is told, once",
    arguments: [
      (UInt32(1) << 30, UInt32(1) << 4, true), (1 << 30, ~(1 << 4), false), (0, 1 << 4, false),
    ])
  func directWrites(flags: UInt32, moreFlags: UInt32, isTold: Bool) {
    let device = CInt(1100 + (flags >> 30) * 2 + moreFlags & 1)
    let told = Mutex<[Bool]>([])
    DeviceInterception.listen(on: device) { offer in
      told.withLock { $0.append(offer.contains(.directWritesDropPages)) }
    }
    note(opcode: 3, unique: 2, flags: flags, moreFlags: moreFlags, device: device)
    for unique in [UInt64(4), 6] {
      note(unique: unique, flags: flags, moreFlags: moreFlags, device: device)
    }
    #expect(told.withLock { $0 } == [isTold])
  }

  @Test func otherRequestsAreNoBeginning() {
    note(opcode: 3, unique: 2, flags: Self.killsPrivileges, device: 1004)
    #expect(amended(unique: 2, device: 1004) == 0)
  }
}
