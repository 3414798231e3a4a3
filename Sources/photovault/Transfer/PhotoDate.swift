import Glibc
import RuntimeLibraries

/// The month that a picture is sorted into.
struct PhotoDate: Hashable, Sendable {
  let year: Int
  let month: Int

  /// From the Exif block of a JPEG or TIFF file; nil without one, or without a date in it.
  init?(picture: UnsafeRawBufferPointer) {
    var position = 0
    let date = Exif.date { buffer in
      let count = min(buffer.count, picture.count - position)
      if count == 0 { return 0 }
      UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]).copyMemory(
        from: UnsafeRawBufferPointer(rebasing: picture[position..<(position + count)]))
      position += count
      return count
    }
    self.init(date)
  }

  init?(heic: UnsafeRawBufferPointer) { self.init(Heif.date(of: heic)) }

  private init?(_ date: Exif.Date?) {
    guard let date else { return nil }
    year = date.year
    month = date.month
  }

  /// The month of a time, here.
  init(_ time: timespec) {
    var seconds = time.tv_sec
    var parts = tm()
    localtime_r(&seconds, &parts)
    year = Int(parts.tm_year) + 1900
    month = Int(parts.tm_mon) + 1
  }

  /// "2021", "06".
  var components: (year: String, month: String) {
    func padded(_ number: Int, _ count: Int) -> String {
      let text = String(number)
      return String(repeating: "0", count: max(0, count - text.count)) + text
    }
    return (padded(year, 4), padded(month, 2))
  }
}
