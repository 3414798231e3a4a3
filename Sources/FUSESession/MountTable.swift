package import Glibc
package import Platform

/// What is mounted, as this process sees it. Source: proc_pid_mountinfo(5).
package struct MountTable: Sendable {
  package struct Entry: Hashable, Sendable {
    /// The kernel's number of this mount, given again when it is gone.
    package let id: Int
    package let mountPoint: FileName
    /// Such as "fuse.photovault".
    package let type: String
    /// Such as "photovault:alice".
    package let source: String
    /// Who mounted it, for FUSE.
    package let user: uid_t?
  }

  /// In the order of mounting: of several at one place the last one is on top.
  package let entries: [Entry]

  package static let photovaultType = "fuse.photovault"

  package static func current() throws(Errno) -> MountTable {
    let file = try Syscalls.open(FileName("/proc/self/mountinfo"), flags: O_RDONLY)
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = read(file.rawValue, &chunk, chunk.count)
      if count < 0 {
        if errno == EINTR { continue }
        throw .current
      }
      if count == 0 { break }
      bytes += chunk[..<count]
    }
    return MountTable(parsing: bytes)
  }

  package init(parsing bytes: [UInt8]) {
    entries = bytes.split(separator: UInt8(ascii: "\n")).compactMap { Self.entry($0) }
  }

  /// What `mountPoint`, a path without symbolic links, shows; nil if nothing is mounted there.
  package func top(at mountPoint: FileName) -> Entry? {
    entries.last { $0.mountPoint == mountPoint }
  }

  /// Mounts beneath `mountPoint`, which keep it busy.
  package func beneath(_ mountPoint: FileName) -> [Entry] {
    let prefix = mountPoint.bytes + [UInt8(ascii: "/")]
    return entries.filter { $0.mountPoint.bytes.starts(with: prefix) }
  }

  /// "36 35 98:0 /root /mount/point rw,noatime shared:1 - type source user_id=1000,..."
  private static func entry(_ line: ArraySlice<UInt8>) -> Entry? {
    let fields = line.split(separator: UInt8(ascii: " "))
    guard fields.count > 5, let id = Int(String(decoding: fields[0], as: UTF8.self)),
      let dash = fields.firstIndex(of: [UInt8(ascii: "-")]),
      fields.count > dash + 3
    else { return nil }
    let options = String(decoding: fields[dash + 3], as: UTF8.self).split(separator: ",")
    let user = options.first { $0.hasPrefix("user_id=") }?.dropFirst("user_id=".count)
    return Entry(
      id: id, mountPoint: FileName(unescaped(fields[4])),
      type: String(decoding: fields[dash + 1], as: UTF8.self),
      source: String(decoding: unescaped(fields[dash + 2]), as: UTF8.self),
      user: user.flatMap { uid_t($0) })
  }

  /// Blanks and backslashes are written `\040`, in octal.
  private static func unescaped(_ field: ArraySlice<UInt8>) -> [UInt8] {
    var result: [UInt8] = []
    var rest = field
    while let byte = rest.popFirst() {
      let digits = rest.prefix(3)
      if byte == UInt8(ascii: "\\"), digits.count == 3,
        let value = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
      {
        result.append(value)
        rest = rest.dropFirst(3)
      } else {
        result.append(byte)
      }
    }
    return result
  }
}
