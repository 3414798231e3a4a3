import Glibc

/// What zlib compressed. Whoever writes such things has the library, so mostly it is there.
/// Source: zlib.h.
package enum Zlib {
  private typealias Uncompress =
    @convention(c) (
      UnsafeMutablePointer<UInt8>?, UnsafeMutablePointer<CUnsignedLong>?, UnsafePointer<UInt8>?,
      CUnsignedLong
    ) -> CInt

  private static let uncompress: Uncompress? = {
    guard let library = dlopen(OptionalLibrary.zlib.rawValue, RTLD_NOW | RTLD_LOCAL),
      let symbol = dlsym(library, "uncompress")
    else { return nil }
    return unsafeBitCast(symbol, to: Uncompress.self)
  }()

  /// nil if it is damaged, longer than `limit` when expanded, or there is no zlib.
  package static func expand(_ bytes: ArraySlice<UInt8>, limit: Int) -> [UInt8]? {
    guard let uncompress else { return nil }
    var size = CUnsignedLong(limit)
    var output = [UInt8](repeating: 0, count: limit)
    let result = output.withUnsafeMutableBufferPointer { output in
      bytes.withUnsafeBufferPointer {
        uncompress(output.baseAddress, &size, $0.baseAddress, CUnsignedLong($0.count))
      }
    }
    return result == 0 ? Array(output[..<Int(size)]) : nil
  }
}
