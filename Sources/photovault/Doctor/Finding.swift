import Glibc
import Platform

/// What one check of `doctor` found.
struct Finding: Sendable {
  enum Status: String, Encodable, Sendable {
    case ok
    /// Mounts work, but something that photovault promises doesn't hold here.
    case warning
    /// No mount works.
    case problem
  }

  /// A word for programs; never changes.
  let check: String
  let status: Status
  let message: String
  /// What to do about it.
  let advice: String?

  static func ok(_ check: String, _ message: String) -> Finding {
    Finding(check: check, status: .ok, message: message, advice: nil)
  }

  static func warning(_ check: String, _ message: String, do advice: String) -> Finding {
    Finding(check: check, status: .warning, message: message, advice: advice)
  }

  static func problem(_ check: String, _ message: String, do advice: String) -> Finding {
    Finding(check: check, status: .problem, message: message, advice: advice)
  }
}

/// Small files of the kernel and the system, for checks.
enum SystemFile {
  /// nil if it can't be read.
  static func text(_ path: String) -> String? {
    guard let file = try? Syscalls.open(FileName(path), flags: O_RDONLY | O_NONBLOCK) else {
      return nil
    }
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 14)
    while bytes.count < 1 << 20 {
      let count = read(file.rawValue, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      bytes += chunk[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// The lines, each split at blanks.
  static func table(_ path: String) -> [[String]]? {
    text(path)?.split(separator: "\n").map { line in
      line.split(whereSeparator: { $0 == " " || $0 == "\t" }).map(String.init)
    }
  }

  /// What is there, links followed; nil if nothing is or it can't be told.
  static func status(_ path: String) -> stat? {
    try? Syscalls.statusBehindLinks(of: FileName(path))
  }

  static func names(in directory: String) -> [String] {
    guard
      let folder = try? Syscalls.open(FileName(directory), flags: O_RDONLY | O_DIRECTORY),
      let entries = try? DirectoryEntries.read(folder.rawValue)
    else { return [] }
    return entries.map(\.name.description).sorted()
  }
}
