/// What a file is by its first bytes: pictures and films that people keep.
enum ContentType: String, Sendable, CaseIterable {
  case jpg, png, gif, tiff, webp, heic, avif, mp4, mov

  /// As many bytes as it takes.
  static let byteCount = 64

  init?(_ start: UnsafeRawBufferPointer) {
    func begins(_ text: StaticString, at offset: Int = 0) -> Bool {
      text.withUTF8Buffer { start.dropFirst(offset).starts(with: $0) }
    }
    if start.starts(with: [0xFF, 0xD8, 0xFF]) {
      self = .jpg
    } else if start.starts(with: [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]) {
      self = .png
    } else if begins("GIF87a") || begins("GIF89a") {
      self = .gif
    } else if start.starts(with: [0x49, 0x49, 0x2A, 0])
      || start.starts(with: [0x4D, 0x4D, 0, 0x2A])
    {
      self = .tiff
    } else if begins("RIFF"), begins("WEBP", at: 8) {
      self = .webp
    } else if begins("ftyp", at: 4) {
      // The brand of an ISO base media file. Source: ISO/IEC 14496-12, 4.3.
      if begins("qt  ", at: 8) {
        self = .mov
      } else if begins("avi", at: 8) {
        self = .avif
      } else if begins("hei", at: 8) || begins("hev", at: 8) || begins("mif1", at: 8)
        || begins("msf1", at: 8)
      {
        self = .heic
      } else if begins("crx ", at: 8) {
        // A raw picture, which nobody stores without its extension.
        return nil
      } else {
        self = .mp4
      }
    } else if start.first == 0,
      begins("moov", at: 4) || begins("mdat", at: 4) || begins("wide", at: 4)
    {
      // QuickTime films from before there was an ftyp box.
      self = .mov
    } else {
      return nil
    }
  }

  /// Whether a file with this extension, in small letters, may be of this type.
  func fits(_ fileExtension: String) -> Bool { extensions.contains(fileExtension) }

  private var extensions: [String] {
    switch self {
    case .jpg: ["jpg", "jpeg", "jpe", "jfif", "thm", "mpo", "insp"]
    case .png: ["png", "apng"]
    case .gif: ["gif"]
    // Raw pictures of most cameras are TIFF files, too.
    case .tiff: ["tif", "tiff"] + SourceKind.rawExtensions
    case .webp: ["webp"]
    case .heic: ["heic", "heif", "hif", "avif", "avci"]
    case .avif: ["avif", "avifs"]
    case .mp4: ["mp4", "m4v", "m4a", "3gp", "3g2", "f4v", "mov", "qt", "cr3", "insv", "lrv"]
    case .mov: ["mov", "qt", "mp4", "m4v"]
    }
  }
}

/// What a file is for, by its extension.
enum SourceKind {
  case picture
  case film
  /// What belongs to a picture or film of the same name.
  case sidecar
  case other

  static let rawExtensions = [
    "dng", "cr2", "nef", "nrw", "arw", "sr2", "srf", "orf", "raf", "rw2", "pef", "srw", "3fr",
    "erf", "iiq", "kdc", "mef", "mos", "rwl",
  ]

  init(_ fileExtension: String) {
    switch fileExtension {
    case "xmp", "aae", "thm": self = .sidecar
    case "mov", "mp4", "m4v", "avi", "mts", "3gp", "mpg": self = .film
    case "jpg", "jpeg", "jpe", "heic", "heif", "hif", "avif", "png", "tif", "tiff", "webp", "gif",
      "cr3":
      self = .picture
    default: self = Self.rawExtensions.contains(fileExtension) ? .picture : .other
    }
  }
}
