import CLinux
import Glibc
package import Platform

/// A new directory under $TMPDIR with mode 0700.
package struct TemporaryDirectory: Sendable {
  package let path: Path

  package init() throws(Errno) {
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var template = Array((parent + "/photovault-conformance-XXXXXX").utf8CString)
    guard mkdtemp(&template) != nil else { throw .current }
    path = Path(template.dropLast().map { UInt8(bitPattern: $0) })
  }

  package func remove() {
    Self.empty(path)
    _ = FileName(path.bytes).withCString { rmdir($0) }
  }

  private static func empty(_ directory: Path) {
    let name = FileName(directory.bytes)
    while let fd = try? Syscalls.open(name, flags: O_RDONLY | O_DIRECTORY | O_NOFOLLOW) {
      var buffer = [UInt8](repeating: 0, count: 65536)
      let filled = buffer.withUnsafeMutableBytes { bytes in
        (try? Syscalls.directoryEntries(fd.rawValue, into: bytes)) ?? 0
      }
      let names = DirectoryItem.parse(buffer[..<filled]).map(\.name)
        .filter { $0 != [0x2E] && $0 != [0x2E, 0x2E] }
      if names.isEmpty { return }
      for name in names {
        let path = directory / Path(name)
        let gone = FileName(path.bytes).withCString { Glibc.unlink($0) }
        if gone == 0 { continue }
        empty(path)
        if FileName(path.bytes).withCString({ rmdir($0) }) != 0 { return }
      }
    }
  }
}
