import Glibc

/// The C libraries that are loaded when they are needed, and may be missing.
package enum OptionalLibrary: String, Sendable {
  /// The buses that tell of screen locks and suspend.
  case systemd = "libsystemd.so.0"
  /// The desktop's Secret Service.
  case secret = "libsecret-1.so.0"
  /// Texts in pictures.
  case zlib = "libz.so.1"
  /// What cameras say of a picture.
  case exif = "libexif.so.12"
  /// Pictures of phones, which hold an Exif block.
  case heif = "libheif.so.1"

  /// Whether it can be loaded; it stays loaded then.
  package var isInstalled: Bool { dlopen(rawValue, RTLD_NOW | RTLD_LOCAL) != nil }
}
