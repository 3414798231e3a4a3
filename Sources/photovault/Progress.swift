import Glibc

/// A line on standard error that says how far a long command is, while somebody looks at it.
///
///     [########............]  41 %  1204 of 2953 files  3.1 of 7.6 GB  812 MB/s  0:06 left
///
/// Not for two threads at once.
struct Progress {
  /// Whether there is anybody to look.
  static var isShown: Bool { Terminal.showsMessages }

  private let began = Self.seconds
  private var drawn = 0.0
  private var isVisible = false
  /// For the rate: bytes at times of the last seconds.
  private var samples: [(time: Double, bytes: Int64)] = []

  private static let barWidth = 20
  /// A line that changes more often can't be read.
  private static let interval = 0.2
  private static let sampleSeconds = 5.0

  /// How far it is, and how far it goes if that is known.
  struct State: Sendable {
    let files: Int
    let bytes: Int64
    var totalFiles: Int?
    var totalBytes: Int64 = 0
  }

  /// Draws the line, if it is time to.
  mutating func show(_ state: State) {
    guard Self.isShown else { return }
    let now = Self.seconds
    guard now - drawn >= Self.interval else { return }
    drawn = now
    isVisible = true
    samples.append((now, state.bytes))
    samples.removeAll { $0.time < now - Self.sampleSeconds }
    Terminal.show(progress: Self.line(state, rate: rate(now, state.bytes), width: Terminal.width))
  }

  /// Takes the line away, for what is printed next or at the end.
  mutating func clear() {
    guard isVisible else { return }
    isVisible = false
    drawn = 0
    Terminal.show(progress: "")
  }

  /// Bytes a second.
  private func rate(_ now: Double, _ bytes: Int64) -> Double {
    guard let first = samples.first, now - first.time > 0.5 else {
      return Double(bytes) / max(now - began, 0.001)
    }
    return Double(max(0, bytes - first.bytes)) / (now - first.time)
  }

  /// What fits into a terminal of this width.
  static func line(_ state: State, rate: Double, width: Int) -> String {
    var parts: [String] = []
    let unit = ByteCount.unit(for: max(state.bytes, state.totalBytes))
    let speed = "\(ByteCount.text(Int64(rate)))/s"
    if let totalFiles = state.totalFiles {
      // What is written meanwhile is more than was expected.
      let share =
        state.totalBytes > 0
        ? min(1, Double(state.bytes) / Double(state.totalBytes)) : totalFiles == 0 ? 0 : 1
      let filled = Int(share * Double(barWidth))
      let bar =
        String(repeating: "#", count: filled) + String(repeating: ".", count: barWidth - filled)
      let percent = String(Int(share * 100))
      parts = [
        "[\(bar)]", "\(Help.padLeft(percent, 3)) %", "\(state.files) of \(totalFiles) files",
        "\(unit.number(state.bytes)) of \(unit.text(state.totalBytes))", speed,
      ]
      let rest = Double(max(0, state.totalBytes - state.bytes))
      if rate > 0, share < 1 { parts.append("\(time(rest / rate)) left") }
    } else {
      parts = ["\(state.files) files", unit.text(state.bytes), speed]
    }
    while parts.count > 1, parts.joined(separator: "  ").count >= width { parts.removeFirst() }
    return parts.joined(separator: "  ")
  }

  /// "0:06", "12:30", "3:20:00".
  static func time(_ seconds: Double) -> String {
    let total = Int(min(seconds.rounded(.up), 359_999))
    let (hours, minutes, rest) = (total / 3600, total / 60 % 60, total % 60)
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    return hours > 0 ? "\(hours):\(two(minutes)):\(two(rest))" : "\(minutes):\(two(rest))"
  }

  private static var seconds: Double {
    var now = timespec()
    clock_gettime(CLOCK_MONOTONIC, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
  }
}

/// Numbers of bytes as people read them: powers of 1000, as disks are sold.
enum ByteCount {
  struct Unit {
    let name: String
    let size: Double

    /// Without the unit, for "3.1 of 7.6 GB".
    func number(_ bytes: Int64) -> String {
      if size == 1 { return "\(bytes)" }
      let tenths = Int((Double(bytes) / size * 10).rounded())
      return tenths < 1000 ? "\(tenths / 10).\(tenths % 10)" : "\(tenths / 10)"
    }

    func text(_ bytes: Int64) -> String { "\(number(bytes)) \(name)" }
  }

  static func unit(for bytes: Int64) -> Unit {
    var unit = Unit(name: "bytes", size: 1)
    for name in ["kB", "MB", "GB", "TB"] where Double(bytes) >= unit.size * 1000 {
      unit = Unit(name: name, size: unit.size * 1000)
    }
    return unit
  }

  static func text(_ bytes: Int64) -> String { unit(for: bytes).text(bytes) }
}
