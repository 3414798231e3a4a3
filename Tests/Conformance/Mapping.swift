import Glibc
import Platform

/// A mapping of an open file, gone with its owner.
struct Mapping: ~Copyable {
  private let memory: UnsafeMutableRawBufferPointer

  /// `handle` is a descriptor of a driver with a mount point.
  init(_ handle: Handle, size: Int, writable: Bool, shared: Bool = true) throws {
    let address = mmap(
      nil, size, writable ? PROT_READ | PROT_WRITE : PROT_READ, shared ? MAP_SHARED : MAP_PRIVATE,
      CInt(truncatingIfNeeded: handle.number), 0)
    guard let address, address != MAP_FAILED else {
      throw CheckFailure("mmap: \(Errno.current)", errno: .current, #filePath, #line)
    }
    memory = UnsafeMutableRawBufferPointer(start: address, count: size)
  }

  deinit { munmap(memory.baseAddress, memory.count) }

  func bytes(_ range: Range<Int>) -> [UInt8] {
    Array(UnsafeRawBufferPointer(rebasing: memory[range]))
  }

  func store(_ bytes: [UInt8], at offset: Int) {
    UnsafeMutableRawBufferPointer(rebasing: memory[offset..<offset + bytes.count])
      .copyBytes(from: bytes)
  }

  func synchronize() throws {
    if msync(memory.baseAddress, memory.count, CInt(MS_SYNC)) != 0 {
      throw CheckFailure("msync: \(Errno.current)", errno: .current, #filePath, #line)
    }
  }
}
