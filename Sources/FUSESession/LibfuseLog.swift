import CFUSE
import Glibc
import Platform
import Synchronization

/// What libfuse and the fusermount3 it starts print, turned into lines of ours.
enum LibfuseLog {
  /// While not nil, lines are kept instead of logged.
  private static let kept = Mutex<[String]?>(nil)

  static func attach() {
    fuse_set_log_func { level, format, arguments in
      guard let format, let arguments, level.rawValue <= FUSE_LOG_WARNING.rawValue else { return }
      let line = LibfuseLog.text(format, arguments)
      let isKept = LibfuseLog.kept.withLock { lines in
        lines?.append(line)
        return lines != nil
      }
      if !isKept { Log.warning(line) }
    }
  }

  /// Runs `body` and returns what was said meanwhile, also on standard error.
  static func capture<Result>(_ body: () -> Result) -> (result: Result, said: String) {
    kept.withLock { $0 = [] }
    let (result, printed) = capturingStandardError(body)
    let lines = kept.withLock { lines in
      defer { lines = nil }
      return lines ?? []
    }
    let said = (lines + printed.split(separator: "\n").map { clean(String($0)) })
    return (result, said.isEmpty ? "libfuse gives no reason" : said.joined(separator: "; "))
  }

  private static func text(_ format: UnsafePointer<CChar>, _ arguments: CVaListPointer) -> String {
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 1024) { buffer in
      guard let start = buffer.baseAddress else { return "" }
      vsnprintf(start, buffer.count, format, arguments)
      return clean(String(decoding: CStringBytes.of(start), as: UTF8.self))
    }
  }

  /// Without the program's name in front and the line break behind.
  private static func clean(_ line: String) -> String {
    var rest = Substring(line)
    for prefix in ["fuse: ", "fusermount3: "] where rest.hasPrefix(prefix) {
      rest = rest.dropFirst(prefix.count)
    }
    while let last = rest.last, last.isWhitespace { rest.removeLast() }
    return String(rest)
  }

  /// fusermount3 inherits standard error: a pipe, which has room for all it says, takes its place.
  private static func capturingStandardError<Result>(
    _ body: () -> Result
  ) -> (Result, printed: String) {
    guard let before = try? Syscalls.duplicate(2), let output = try? redirectStandardError()
    else { return (body(), "") }
    let result = body()
    dup2(before.rawValue, 2)
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = read(output.rawValue, &buffer, buffer.count)
    return (result, String(decoding: buffer.prefix(max(0, count)), as: UTF8.self))
  }

  /// The end to read from.
  private static func redirectStandardError() throws(Errno) -> FileDescriptor {
    let pipe = try Pipe()
    let output = try pipe.readEnd.duplicate()
    if dup2(pipe.writeEnd.rawValue, 2) < 0 { throw .current }
    return output
  }
}
