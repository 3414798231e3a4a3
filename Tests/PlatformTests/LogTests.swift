import Platform
import Synchronization
import Testing

/// The destination is one for the process, so these run one after the other.
@Suite(.serialized) struct LogTests {
  private func lines(
    with marker: String, _ body: () -> Void
  ) -> [(level: Log.Level, text: String)] {
    let lines = Recorder()
    Log.send(to: .function { level, line in lines.append(level, line) })
    body()
    Log.send(to: .standardError)
    return lines.all.filter { $0.text.contains(marker) }
  }

  @Test func everyLevelReachesTheDestination() {
    let lines = lines(with: "levels") {
      Log.error("levels 1")
      Log.warning("levels 2")
      Log.notice("levels 3")
    }
    #expect(lines.map(\.level) == [.error, .warning, .notice])
    #expect(lines.map(\.text) == ["levels 1", "levels 2", "levels 3"])
  }

  @Test(arguments: [
    "\n", "\r\n", "\r", "\u{B}", "\u{C}", "\u{1B}[2J", "\0", "\t", "\u{7F}", "\u{85}", "\u{9B}",
    "\u{2028}", "\u{2029}",
  ])
  func whatBreaksALineOrSteersATerminalIsReplaced(_ text: String) {
    let lines = lines(with: "photo breaks") {
      Log.error("photo breaks\(text)photovault: error: forged")
    }
    #expect(lines.count == 1)
    let line = lines.first?.text ?? ""
    #expect(line.hasPrefix("photo breaks?"))
    #expect(
      line.unicodeScalars.allSatisfy {
        !text.unicodeScalars.contains($0) || $0.value > 32 && $0.value < 127
      })
  }

  @Test func otherNamesStayAsTheyAre() {
    let name = "Zürich 🔑 中文 (1).jpg%s%n"
    #expect(lines(with: "Zürich") { Log.notice(name) }.map(\.text) == [name])
  }
}

private final class Recorder: Sendable {
  private let lines = Mutex<[(level: Log.Level, text: String)]>([])

  func append(_ level: Log.Level, _ text: String) { lines.withLock { $0.append((level, text)) } }
  var all: [(level: Log.Level, text: String)] { lines.withLock { $0 } }
}
