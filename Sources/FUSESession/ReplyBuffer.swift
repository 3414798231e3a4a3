import Glibc
import Platform

/// A buffer that each of libfuse's threads keeps for what it sends to the kernel. It holds the
/// plaintext of photos.
enum ReplyBuffer {
  /// The greatest request the kernel makes: 256 pages (FUSE_MAX_MAX_PAGES).
  private static let usualSize = 1 << 20

  private static let key: pthread_key_t = {
    var key = pthread_key_t()
    let result = pthread_key_create(&key) { munmap($0, usualSize) }
    precondition(result == 0, "PTHREAD_KEYS_MAX is 1024")
    return key
  }()

  /// Calls `body` with `size` bytes that are valid during the call. Their content is left over
  /// from calls before. nil if there is no memory.
  static func with<Result>(
    size: Int, _ body: (UnsafeMutableRawBufferPointer) -> Result
  ) -> Result? {
    guard size <= usualSize else {
      return withUnsafeTemporaryAllocation(byteCount: size, alignment: 16, body)
    }
    guard let base = pthread_getspecific(key) ?? make() else { return nil }
    return body(UnsafeMutableRawBufferPointer(start: base, count: size))
  }

  private static func make() -> UnsafeMutableRawPointer? {
    let mapping = mmap(
      nil, usualSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
    guard let mapping, mapping != MAP_FAILED else { return nil }
    ProcessHardening.keepOffDisk(
      UnsafeMutableRawBufferPointer(start: mapping, count: usualSize))
    pthread_setspecific(key, mapping)
    return mapping
  }
}
