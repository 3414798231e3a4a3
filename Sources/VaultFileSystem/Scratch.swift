import CLinux
import Glibc
import Platform
import SecuredData
import Synchronization
import VaultStorage

/// Space for edits of one file until they are committed: blocks in memory first, then in a file
/// without a name whose blocks are encrypted under a key that only this object knows.
///
/// Not for writers on two threads at once; readers may be many while nobody writes.
final class Scratch: @unchecked Sendable {
  static let blockByteCount = 16384

  /// Memory of one file's blocks: 4 MiB, 256 blocks.
  private static let memoryLimit = 256
  /// Memory of all files' blocks: 16 MiB. A file keeps at least `leastMemory` blocks beyond it, so
  /// that a run of small writes doesn't encrypt its block each time.
  private static let totalMemoryLimit = 1024
  private static let leastMemory = 4
  private static let total = Atomic<Int>(0)

  private let directory: VaultDirectory
  private var places: [Int64: Place] = [:]
  /// Blocks in memory, oldest first.
  private var inMemory: [Int64] = []
  private var spill: Spill?

  private enum Place {
    case memory(UnsafeMutableRawPointer)
    case file(slot: Int64, nonce: UInt64, tag: GMAC.Tag)
  }

  /// The file behind. A nonce is a count that never repeats under the key.
  private final class Spill {
    let file: TemporaryFile
    let key: SecretBytes
    var nextNonce: UInt64 = 0
    var nextSlot: Int64 = 0
    var freeSlots: [Int64] = []
    let buffer: ScratchMemory

    init(in directory: VaultDirectory) throws(FileSystemError) {
      file = try storing { () throws(StorageError) in try TemporaryFile(in: directory) }
      var key = try calling { () throws(Errno) in try SecretBytes(count: 32) }
      do throws(CryptoFailure) {
        try key.withUnsafeMutableBytes { bytes throws(CryptoFailure) in try Random.fill(bytes) }
      } catch { throw .storage(.crypto(error)) }
      self.key = key
      buffer = try ScratchMemory()
    }

    func cipher() throws(FileSystemError) -> GCM {
      do throws(CryptoFailure) {
        return try key.withUnsafeBytes { bytes throws(CryptoFailure) in try GCM(key: bytes) }
      } catch { throw .storage(.crypto(error)) }
    }
  }

  init(in directory: VaultDirectory) { self.directory = directory }

  deinit {
    for case .memory(let pointer) in places.values { ScratchMemory.free(pointer) }
    Self.total.subtract(inMemory.count, ordering: .relaxed)
  }

  var isEmpty: Bool { places.isEmpty }

  func contains(block: Int64) -> Bool { places[block] != nil }

  /// Copies `target.count` bytes of `block` from `offset` in it. The block is here.
  /// Throws EIO when the file behind does not give back what was written.
  func read(
    block: Int64, at offset: Int, into target: UnsafeMutableRawBufferPointer
  ) throws(FileSystemError) {
    switch places[block] {
    case .memory(let pointer):
      target.copyMemory(from: UnsafeRawBufferPointer(start: pointer + offset, count: target.count))
    case .file(let slot, let nonce, let tag):
      let memory = try ScratchMemory()
      try load(slot, nonce, tag, into: memory.bytes)
      target.copyMemory(
        from: UnsafeRawBufferPointer(rebasing: memory.bytes[offset..<(offset + target.count)]))
    case nil:
      throw .system(.inputOutput)
    }
  }

  /// Writes into `block` from `offset` in it. A block that isn't here yet is first filled by
  /// `fill` with what the file has there, unless all of it is written.
  func write(
    block: Int64, at offset: Int, _ source: UnsafeRawBufferPointer,
    fill: (UnsafeMutableRawBufferPointer) throws(FileSystemError) -> Void
  ) throws(FileSystemError) {
    let pointer: UnsafeMutableRawPointer
    switch places[block] {
    case .memory(let known):
      pointer = known
    case .file(let slot, let nonce, let tag):
      let memory = try ScratchMemory()
      if source.count < Self.blockByteCount { try load(slot, nonce, tag, into: memory.bytes) }
      try makeRoom()
      spill?.freeSlots.append(slot)
      pointer = keep(block, memory)
    case nil:
      let memory = try ScratchMemory()
      if source.count < Self.blockByteCount { try fill(memory.bytes) }
      try makeRoom()
      pointer = keep(block, memory)
    }
    (pointer + offset).copyMemory(
      from: source.baseAddress ?? UnsafeRawPointer(pointer), byteCount: source.count)
  }

  /// Forgets all from `size` on. The rest of the block that `size` is in becomes zeros.
  func truncate(to size: Int64) throws(FileSystemError) {
    let blockSize = Int64(Self.blockByteCount)
    let firstGone = (size + blockSize - 1) / blockSize
    for (block, place) in places where block >= firstGone {
      places[block] = nil
      switch place {
      case .memory(let pointer):
        ScratchMemory.free(pointer)
        Self.total.subtract(1, ordering: .relaxed)
        inMemory.removeAll { $0 == block }
      case .file(let slot, _, _):
        spill?.freeSlots.append(slot)
      }
    }
    let last = size / blockSize
    let kept = Int(size % blockSize)
    if kept > 0, places[last] != nil {
      let zeros = [UInt8](repeating: 0, count: Self.blockByteCount - kept)
      try zeros.withBytes { zeros throws(FileSystemError) in
        try write(block: last, at: kept, zeros) { _ throws(FileSystemError) in }
      }
    }
  }

  private func keep(_ block: Int64, _ memory: consuming ScratchMemory) -> UnsafeMutableRawPointer {
    let pointer = memory.release()
    places[block] = .memory(pointer)
    inMemory.append(block)
    Self.total.add(1, ordering: .relaxed)
    return pointer
  }

  /// Moves the oldest block to the file behind when memory is used up.
  private func makeRoom() throws(FileSystemError) {
    let isFull =
      inMemory.count >= Self.memoryLimit
      || (inMemory.count >= Self.leastMemory
        && Self.total.load(ordering: .relaxed) >= Self.totalMemoryLimit)
    guard isFull, let oldest = inMemory.first, case .memory(let pointer) = places[oldest] else {
      return
    }
    if spill == nil { spill = try Spill(in: directory) }
    guard let spill else { return }
    let slot: Int64
    if let free = spill.freeSlots.popLast() {
      slot = free
    } else {
      slot = spill.nextSlot
      spill.nextSlot += 1
    }
    spill.buffer.bytes.copyMemory(
      from: UnsafeRawBufferPointer(start: pointer, count: Self.blockByteCount))
    let nonce = spill.nextNonce
    spill.nextNonce += 1
    let tag: GMAC.Tag
    let cipher = try spill.cipher()
    do throws(CryptoFailure) { tag = try cipher.seal(spill.buffer.bytes, nonce: nonce) } catch {
      throw .storage(.crypto(error))
    }
    do throws(FileSystemError) {
      try calling { () throws(Errno) in
        try Syscalls.write(
          spill.file.descriptor, UnsafeRawBufferPointer(spill.buffer.bytes),
          at: slot * Int64(Self.blockByteCount))
      }
    } catch {
      spill.freeSlots.append(slot)
      throw error
    }
    places[oldest] = .file(slot: slot, nonce: nonce, tag: tag)
    inMemory.removeFirst()
    Self.total.subtract(1, ordering: .relaxed)
    ScratchMemory.free(pointer)
  }

  private func load(
    _ slot: Int64, _ nonce: UInt64, _ tag: GMAC.Tag, into target: UnsafeMutableRawBufferPointer
  ) throws(FileSystemError) {
    guard let spill else { throw .system(.inputOutput) }
    let count = try calling { () throws(Errno) in
      try Syscalls.read(
        spill.file.descriptor, into: target, at: slot * Int64(Self.blockByteCount))
    }
    let cipher = try spill.cipher()
    let isOurs: Bool
    do throws(CryptoFailure) { isOurs = try cipher.open(target, nonce: nonce, tag: tag) } catch {
      throw .storage(.crypto(error))
    }
    guard count == target.count, isOurs else { throw .system(.inputOutput) }
  }
}

/// One block of plaintext in memory of its own: not in core dumps, not swapped where the limit
/// allows, wiped behind use.
struct ScratchMemory: ~Copyable {
  private let pointer: UnsafeMutableRawPointer

  /// Zeros.
  init() throws(FileSystemError) {
    let mapping = mmap(
      nil, Scratch.blockByteCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapping, mapping != MAP_FAILED else { throw .system(.noMemory) }
    _ = mlock(mapping, Scratch.blockByteCount)
    _ = madvise(mapping, Scratch.blockByteCount, pv_MADV_DONTDUMP)
    pointer = mapping
  }

  deinit { Self.free(pointer) }

  var bytes: UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: pointer, count: Scratch.blockByteCount)
  }

  /// Gives the block up to who will call `free`.
  consuming func release() -> UnsafeMutableRawPointer {
    let result = pointer
    discard self
    return result
  }

  static func free(_ pointer: UnsafeMutableRawPointer) {
    SecretBytes.wipe(
      UnsafeMutableRawBufferPointer(start: pointer, count: Scratch.blockByteCount))
    munmap(pointer, Scratch.blockByteCount)
  }
}
