/// Tells what bytes are that are no RNCryptor message of version 1 to 3.
enum ForeignData {
  /// nil when they are unknown. `start` is the first 34 bytes or less, and not those of a message:
  /// a message's salt may happen to look like anything.
  static func recognise(_ start: UnsafeRawBufferPointer) -> SecuredDataError? {
    if begins(start, with: "RNC\u{4}") { return .version4Draft }
    if let picture = pictureKind(start) { return .plainPicture(picture) }
    if isBase64Message(start) { return .base64Text }
    return nil
  }

  private static func pictureKind(_ start: UnsafeRawBufferPointer) -> String? {
    if let kind = mediaBoxKind(start) { return kind }
    return signatures.first { signature in
      signature.parts.allSatisfy { begins(start, with: $0.bytes, at: $0.offset) }
    }?.kind
  }

  /// ISO base media files begin with a box: its size, the type "ftyp" and a brand. Old QuickTime
  /// films begin with another box.
  private static func mediaBoxKind(_ start: UnsafeRawBufferPointer) -> String? {
    guard begins(start, with: "ftyp", at: 4) else {
      let boxes: [StaticString] = ["moov", "mdat", "wide", "free", "skip", "pnot"]
      let isFilm = start.first == 0 && boxes.contains { begins(start, with: $0, at: 4) }
      return isFilm ? "QuickTime" : nil
    }
    if begins(start, with: "avif", at: 8) || begins(start, with: "avis", at: 8) { return "AVIF" }
    if begins(start, with: "qt  ", at: 8) { return "QuickTime" }
    if begins(start, with: "crx ", at: 8) { return "Canon CR3" }
    let pictureBrands: [StaticString] = ["hei", "hev", "mif1", "msf1"]
    return pictureBrands.contains { begins(start, with: $0, at: 8) } ? "HEIF" : "MP4"
  }

  private struct Signature: Sendable {
    let kind: String
    let parts: [(bytes: [UInt8], offset: Int)]

    init(_ kind: String, _ bytes: [UInt8]) {
      self.kind = kind
      parts = [(bytes, 0)]
    }

    init(_ kind: String, _ text: StaticString, then rest: StaticString? = nil, at offset: Int = 0) {
      self.kind = kind
      let first = (bytes: text.withUTF8Buffer(Array.init), offset: 0)
      parts =
        rest.map { [first, (bytes: $0.withUTF8Buffer(Array.init), offset: offset)] } ?? [first]
    }
  }

  /// Source: file(1)'s magic(5) database, "images", "animation" and "riff".
  private static let signatures: [Signature] = [
    Signature("JPEG", [0xFF, 0xD8, 0xFF]),
    Signature("PNG", [0x89, 0x50, 0x4E, 0x47]),
    Signature("GIF", "GIF8"),
    Signature("WebP", "RIFF", then: "WEBP", at: 8),
    Signature("AVI", "RIFF", then: "AVI ", at: 8),
    Signature("TIFF or raw", "II*\0"),
    Signature("TIFF or raw", "MM\0*"),
    Signature("TIFF or raw", "II+\0"),
    Signature("TIFF or raw", "MM\0+"),
    Signature("Olympus ORF", "IIRO"),
    Signature("Olympus ORF", "IIRS"),
    Signature("Olympus ORF", "MMOR"),
    Signature("Panasonic RW2", "IIU\0"),
    Signature("Fujifilm RAF", "FUJIFILM"),
    Signature("Sigma X3F", "FOVb"),
    Signature("Minolta MRW", "\0MRM"),
    Signature("Canon CRW", "II\u{1A}\0\0\0HEAPCCDR"),
    Signature("JPEG XL", [0xFF, 0x0A]),
    Signature("JPEG XL", "\0\0\0\u{C}JXL "),
    Signature("JPEG 2000", "\0\0\0\u{C}jP  "),
    Signature("Photoshop", "8BPS"),
    Signature("BMP", "BM", then: "\0\0\0\0", at: 6),
    Signature("Matroska or WebM", [0x1A, 0x45, 0xDF, 0xA3]),
    Signature("MPEG", [0x00, 0x00, 0x01, 0xBA]),
  ]

  /// A message's first two bytes are 1, 2 or 3 and 0 or 1, which makes "AQA" to "AwH" in base64; the
  /// v4 draft's "RNC\4" makes "Uk5DB". Line breaks may stand anywhere, as openssl and mail do it.
  private static func isBase64Message(_ start: UnsafeRawBufferPointer) -> Bool {
    let text = start.filter { !isSpace($0) }
    guard text.count >= 5, text.allSatisfy(isBase64) else { return false }
    if text.starts(with: "Uk5DB".utf8) { return true }
    return text[0] == UInt8(ascii: "A") && "Qgw".utf8.contains(text[1])
      && "ABCDEFGH".utf8.contains(text[2])
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (9...13).contains(byte) }

  private static func isBase64(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "/"),
      UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "="):
      true
    default: false
    }
  }

  private static func begins(
    _ bytes: UnsafeRawBufferPointer, with magic: StaticString, at offset: Int = 0
  ) -> Bool {
    magic.withUTF8Buffer { begins(bytes, with: $0, at: offset) }
  }

  private static func begins(
    _ bytes: UnsafeRawBufferPointer, with magic: some Collection<UInt8>, at offset: Int
  ) -> Bool {
    bytes.count >= offset + magic.count
      && bytes[offset..<(offset + magic.count)].elementsEqual(magic)
  }
}
