import CLinux
import Glibc

/// Bytes of a password or a key in a mapping of their own: locked into memory where the limit
/// allows, left out of core dumps, zeroed in forked children, wiped when the owner goes away.
///
/// There is no way to turn them into a `String`, and describing them says nothing.
package struct SecretBytes: ~Copyable, @unchecked Sendable {
  private let base: UnsafeMutableRawPointer
  private let mappedCount: Int
  package private(set) var count: Int

  /// Zeroed bytes. Throws ENOMEM.
  package init(count: Int) throws(Errno) {
    let page = Int(sysconf(CInt(_SC_PAGESIZE)))
    mappedCount = max(1, (count + page - 1) / page) * page
    let mapping = mmap(
      nil, mappedCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapping, mapping != MAP_FAILED else { throw .current }
    base = mapping
    self.count = count
    // Best effort: an ordinary user's limit may be small (see `photovault doctor`).
    _ = mlock(base, mappedCount)
    _ = madvise(base, mappedCount, pv_MADV_DONTDUMP)
    _ = madvise(base, mappedCount, pv_MADV_WIPEONFORK)
  }

  /// Copies `source`; the caller wipes its own copy.
  package init(copying source: UnsafeRawBufferPointer) throws(Errno) {
    try self.init(count: source.count)
    if let start = source.baseAddress { base.copyMemory(from: start, byteCount: source.count) }
  }

  /// Takes the bytes and wipes `source`.
  package init(wiping source: inout [UInt8]) throws(Errno) {
    try self.init(count: source.count)
    let target = base
    source.withUnsafeMutableBytes { buffer in
      if let start = buffer.baseAddress { target.copyMemory(from: start, byteCount: buffer.count) }
      Self.wipe(buffer)
    }
  }

  deinit {
    explicit_bzero(base, mappedCount)
    munmap(base, mappedCount)
  }

  package var isEmpty: Bool { count == 0 }

  /// Shortens to the first `count` bytes and wipes the rest.
  package mutating func truncate(to newCount: Int) {
    precondition(newCount >= 0 && newCount <= count)
    explicit_bzero(base + newCount, count - newCount)
    count = newCount
  }

  package func copy() throws(Errno) -> SecretBytes {
    try withUnsafeBytes { bytes throws(Errno) in try SecretBytes(copying: bytes) }
  }

  package borrowing func withUnsafeBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeRawBufferPointer(start: base, count: count))
  }

  package mutating func withUnsafeMutableBytes<Result: ~Copyable, Failure: Error>(
    _ body: (UnsafeMutableRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try body(UnsafeMutableRawBufferPointer(start: base, count: count))
  }

  /// Overwrites a buffer in a way the optimiser may not drop.
  package static func wipe(_ buffer: UnsafeMutableRawBufferPointer) {
    if let start = buffer.baseAddress { explicit_bzero(start, buffer.count) }
  }
}
