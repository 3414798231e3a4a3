import CLinux
import Glibc
import Platform

/// The Exif block of a HEIC picture. Source: heif.h of libheif.
package enum Heif {
  package static var isAvailable: Bool { functions != nil }

  /// When the picture in these bytes was taken; nil where it doesn't say, or a library is missing.
  package static func date(of picture: UnsafeRawBufferPointer) -> Exif.Date? {
    guard let functions, let context = functions.contextAlloc() else { return nil }
    defer { functions.contextFree(context) }
    let read = functions.readFromMemory(context, picture.baseAddress, picture.count, nil)
    var handle: UnsafeMutableRawPointer?
    guard read.code == 0, functions.primaryImage(context, &handle).code == 0, let handle else {
      return nil
    }
    defer { functions.handleRelease(handle) }
    var block: CUnsignedInt = 0
    guard functions.metadataIDs(handle, "Exif", &block, 1) > 0 else { return nil }
    let size = functions.metadataSize(handle, block)
    guard (12...greatestBlock).contains(size) else { return nil }
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 16)
    defer {
      SecretBytes.wipe(bytes)
      bytes.deallocate()
    }
    guard functions.metadata(handle, block, bytes.baseAddress).code == 0 else { return nil }
    // Before the block is told where its TIFF header is. Source: ISO/IEC 23008-12, A.2.1.
    let offset = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
    let start = 4 + Int(offset)
    guard start < size else { return nil }
    return Exif.date(ofTIFF: UnsafeRawBufferPointer(rebasing: bytes[start...]))
  }

  private static let greatestBlock = 16 << 20

  private struct Functions: @unchecked Sendable {
    typealias Pointer = UnsafeMutableRawPointer

    let contextAlloc: @convention(c) () -> Pointer?
    let contextFree: @convention(c) (Pointer) -> Void
    let readFromMemory:
      @convention(c) (Pointer, UnsafeRawPointer?, Int, UnsafeRawPointer?) -> pv_heif_error
    let primaryImage: @convention(c) (Pointer, UnsafeMutablePointer<Pointer?>) -> pv_heif_error
    let handleRelease: @convention(c) (Pointer) -> Void
    let metadataIDs:
      @convention(c) (Pointer, UnsafePointer<CChar>, UnsafeMutablePointer<CUnsignedInt>, CInt)
        -> CInt
    let metadataSize: @convention(c) (Pointer, CUnsignedInt) -> Int
    let metadata: @convention(c) (Pointer, CUnsignedInt, Pointer?) -> pv_heif_error

    init?() {
      guard let library = dlopen(OptionalLibrary.heif.rawValue, RTLD_NOW | RTLD_LOCAL) else {
        return nil
      }
      func symbol<Function>(_ name: String, _ type: Function.Type) -> Function? {
        dlsym(library, name).map { unsafeBitCast($0, to: type) }
      }
      guard
        let contextAlloc = symbol("heif_context_alloc", (@convention(c) () -> Pointer?).self),
        let contextFree = symbol("heif_context_free", (@convention(c) (Pointer) -> Void).self),
        let readFromMemory = symbol(
          "heif_context_read_from_memory_without_copy",
          (@convention(c) (Pointer, UnsafeRawPointer?, Int, UnsafeRawPointer?)
            -> pv_heif_error).self),
        let primaryImage = symbol(
          "heif_context_get_primary_image_handle",
          (@convention(c) (Pointer, UnsafeMutablePointer<Pointer?>) -> pv_heif_error).self),
        let handleRelease = symbol(
          "heif_image_handle_release", (@convention(c) (Pointer) -> Void).self),
        let metadataIDs = symbol(
          "heif_image_handle_get_list_of_metadata_block_IDs",
          (@convention(c) (
            Pointer, UnsafePointer<CChar>, UnsafeMutablePointer<CUnsignedInt>, CInt
          ) -> CInt).self),
        let metadataSize = symbol(
          "heif_image_handle_get_metadata_size",
          (@convention(c) (Pointer, CUnsignedInt) -> Int).self),
        let metadata = symbol(
          "heif_image_handle_get_metadata",
          (@convention(c) (Pointer, CUnsignedInt, Pointer?) -> pv_heif_error).self)
      else { return nil }
      self.contextAlloc = contextAlloc
      self.contextFree = contextFree
      self.readFromMemory = readFromMemory
      self.primaryImage = primaryImage
      self.handleRelease = handleRelease
      self.metadataIDs = metadataIDs
      self.metadataSize = metadataSize
      self.metadata = metadata
    }
  }

  private static let functions = Functions()
}
