import Glibc
import Platform

/// When a picture was taken, as its Exif block says. Source: exif-loader.h, exif-data.h of libexif.
package enum Exif {
  package struct Date: Hashable, Sendable {
    package let year: Int
    package let month: Int
  }

  /// Whether libexif is there.
  package static var isAvailable: Bool { functions != nil }

  /// The date in a picture whose bytes `read` fills the buffer with, from the beginning; it returns
  /// how many, 0 at the end. Reads no more than it takes. nil if there is none.
  package static func date(
    readingWith read: (UnsafeMutableRawBufferPointer) -> Int
  ) -> Date? {
    guard let functions else { return nil }
    let start = UnsafeMutableRawBufferPointer.allocate(byteCount: largestBlock, alignment: 16)
    defer {
      SecretBytes.wipe(start)
      start.deallocate()
    }
    var count = read(start)
    // A TIFF file, raw pictures of most cameras among them, is an Exif block itself.
    if isTIFF(UnsafeRawBufferPointer(rebasing: start[..<count])) {
      return date(ofTIFF: UnsafeRawBufferPointer(rebasing: start[..<count]))
    }
    guard let loader = functions.loaderNew() else { return nil }
    defer { functions.loaderUnref(loader) }
    var total = 0
    while count > 0, total < searchedByteCount {
      total += count
      let bytes = start.baseAddress?.assumingMemoryBound(to: UInt8.self)
      // 0: the block is complete, or there is none.
      if functions.loaderWrite(loader, bytes, CUnsignedInt(count)) == 0 { break }
      count = read(start)
    }
    guard let data = functions.loaderGetData(loader) else { return nil }
    defer { functions.dataUnref(data) }
    return date(in: data, functions)
  }

  /// The same for what lies behind "Exif\0\0": a TIFF header and its directories.
  package static func date(ofTIFF block: UnsafeRawBufferPointer) -> Date? {
    guard let functions, block.count > 8, let data = functions.dataNew() else { return nil }
    defer { functions.dataUnref(data) }
    var bytes = Array("Exif\0\0".utf8) + block.prefix(largestBlock - 6)
    defer { bytes.withUnsafeMutableBytes { SecretBytes.wipe($0) } }
    bytes.withUnsafeBufferPointer {
      functions.dataLoad(data, $0.baseAddress, CUnsignedInt($0.count))
    }
    return date(in: data, functions)
  }

  // MARK: Tags

  /// An Exif block is no longer than a JPEG segment.
  private static let largestBlock = 65533
  /// The block comes first in a JPEG file, or behind other segments.
  private static let searchedByteCount = 4 << 20
  private static let mainDirectory = 0  // EXIF_IFD_0
  private static let exifDirectory = 2  // EXIF_IFD_EXIF

  private static let tags: [(directory: Int, tag: CUnsignedInt)] = [
    (exifDirectory, 0x9003),  // DateTimeOriginal
    (exifDirectory, 0x9004),  // DateTimeDigitized
    (mainDirectory, 0x0132),  // DateTime
  ]

  private static func date(in data: UnsafeMutableRawPointer, _ functions: Functions) -> Date? {
    // ExifData begins with the pointers to its directories.
    let directories = data.assumingMemoryBound(to: UnsafeMutableRawPointer?.self)
    for (directory, tag) in tags {
      guard let content = directories[directory],
        let entry = functions.contentGetEntry(content, tag)
      else { continue }
      var text = [CChar](repeating: 0, count: 64)
      guard functions.entryGetValue(entry, &text, CUnsignedInt(text.count)) != nil else {
        continue
      }
      if let date = date(of: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }) {
        return date
      }
    }
    return nil
  }

  /// "2021:06:01 12:00:00"; some write other signs between. nil for zeros, blanks and nonsense.
  static func date(of text: [UInt8]) -> Date? {
    func number(_ range: Range<Int>) -> Int? {
      guard text.count >= range.upperBound else { return nil }
      return Int(String(decoding: text[range], as: UTF8.self))
    }
    guard let year = number(0..<4), let month = number(5..<7), year > 0,
      (1...12).contains(month)
    else { return nil }
    return Date(year: year, month: month)
  }

  private static func isTIFF(_ bytes: UnsafeRawBufferPointer) -> Bool {
    bytes.starts(with: [0x49, 0x49, 0x2A, 0]) || bytes.starts(with: [0x4D, 0x4D, 0, 0x2A])
  }

  // MARK: Symbols

  private struct Functions: @unchecked Sendable {
    typealias Pointer = UnsafeMutableRawPointer

    let loaderNew: @convention(c) () -> Pointer?
    let loaderWrite: @convention(c) (Pointer, UnsafeMutablePointer<UInt8>?, CUnsignedInt) -> UInt8
    let loaderGetData: @convention(c) (Pointer) -> Pointer?
    let loaderUnref: @convention(c) (Pointer) -> Void
    let dataNew: @convention(c) () -> Pointer?
    let dataLoad: @convention(c) (Pointer, UnsafePointer<UInt8>?, CUnsignedInt) -> Void
    let dataUnref: @convention(c) (Pointer) -> Void
    let contentGetEntry: @convention(c) (Pointer, CUnsignedInt) -> Pointer?
    let entryGetValue:
      @convention(c) (Pointer, UnsafeMutablePointer<CChar>?, CUnsignedInt)
        -> UnsafePointer<CChar>?

    init?() {
      guard let library = dlopen(OptionalLibrary.exif.rawValue, RTLD_NOW | RTLD_LOCAL) else {
        return nil
      }
      func symbol<Function>(_ name: String, _ type: Function.Type) -> Function? {
        dlsym(library, name).map { unsafeBitCast($0, to: type) }
      }
      guard
        let loaderNew = symbol("exif_loader_new", (@convention(c) () -> Pointer?).self),
        let loaderWrite = symbol(
          "exif_loader_write",
          (@convention(c) (Pointer, UnsafeMutablePointer<UInt8>?, CUnsignedInt) -> UInt8).self),
        let loaderGetData = symbol(
          "exif_loader_get_data", (@convention(c) (Pointer) -> Pointer?).self),
        let loaderUnref = symbol(
          "exif_loader_unref", (@convention(c) (Pointer) -> Void).self),
        let dataNew = symbol("exif_data_new", (@convention(c) () -> Pointer?).self),
        let dataLoad = symbol(
          "exif_data_load_data",
          (@convention(c) (Pointer, UnsafePointer<UInt8>?, CUnsignedInt) -> Void).self),
        let dataUnref = symbol("exif_data_unref", (@convention(c) (Pointer) -> Void).self),
        let contentGetEntry = symbol(
          "exif_content_get_entry", (@convention(c) (Pointer, CUnsignedInt) -> Pointer?).self),
        let entryGetValue = symbol(
          "exif_entry_get_value",
          (@convention(c) (Pointer, UnsafeMutablePointer<CChar>?, CUnsignedInt)
            -> UnsafePointer<CChar>?).self)
      else { return nil }
      self.loaderNew = loaderNew
      self.loaderWrite = loaderWrite
      self.loaderGetData = loaderGetData
      self.loaderUnref = loaderUnref
      self.dataNew = dataNew
      self.dataLoad = dataLoad
      self.dataUnref = dataUnref
      self.contentGetEntry = contentGetEntry
      self.entryGetValue = entryGetValue
    }
  }

  private static let functions = Functions()
}
