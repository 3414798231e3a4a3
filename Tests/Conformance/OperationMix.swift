import Glibc
import Platform

/// The same random operations on the file system under test and on a plain directory: every result
/// and every error must be the same, and so must the trees.
enum OperationMix {
  static func run(on fs: Volume, seed: UInt64, count: Int) throws {
    let driver = try SystemCallDriver.plain()
    defer { try? driver.end() }
    let model = Volume(driver, base: "")
    defer { model.closeAll() }
    var mix = Mix(tested: fs, model: model, generator: SeededGenerator(seed: seed &+ 1000))
    for step in 0..<count {
      do {
        try mix.step()
        if step % 250 == 249 { try mix.compareTrees(remounting: step % 500 == 499) }
      } catch let failure as CheckFailure {
        let journal = mix.journal.suffix(15).joined(separator: "; ")
        throw CheckFailure(
          "\(failure) at step \(step) of seed \(seed): \(journal)", #filePath, #line)
      }
    }
    try mix.compareTrees(remounting: true)
  }

  /// What an operation came to, as text: a value or an error's sentence.
  private static func outcome(_ body: () throws -> String) throws -> String {
    do { return try body() } catch let failure as CheckFailure {
      guard let errno = failure.errno else { throw failure }
      return "\(errno)"
    }
  }

  private struct Mix {
    let tested: Volume
    let model: Volume
    var generator: SeededGenerator
    /// Pairs of handles on the same file, the tested one and the model's.
    var open: [(Handle, Handle)] = []
    var journal: [String] = []

    private mutating func pick(_ count: Int) -> Int { Int.random(in: 0..<count, using: &generator) }

    /// Few names, so that operations meet.
    private mutating func name() -> Path {
      let names = [
        "a", "b", "c", "d", "photo.jpg", "x.securedData", "x", String(repeating: "l", count: 200),
      ]
      return Path(names[pick(names.count)])
    }

    private mutating func path() -> Path {
      var result = name()
      while pick(3) == 0 { result = result / name() }
      return result
    }

    /// Does `body` on both and compares what comes of it.
    private mutating func both(_ what: String, _ body: (Volume) throws -> String) throws {
      journal.append(what)
      let wanted = try outcome { try body(model) }
      journal[journal.count - 1] += " → \(wanted)"
      let got = try outcome { try body(tested) }
      try expect(got, wanted, what)
    }

    mutating func step() throws {
      switch pick(100) {
      case 0..<12: try make()
      case 12..<24: try openFile()
      case 24..<40: try writeOpen()
      case 40..<48: try readOpen()
      case 48..<56: try closeOpen()
      case 56..<60: try truncate()
      case 60..<72: try rename()
      case 72..<77: try link()
      case 77..<83: try unlink()
      case 83..<88: try directory()
      case 88..<92: try symbolicLink()
      case 92..<96: try attributes()
      default: try look()
      }
    }

    private mutating func make() throws {
      let path = path()
      let bytes = pattern(pick(3) == 0 ? pick(150_000) : pick(2000), seed: generator.next())
      try both("make \(path) of \(bytes.count)") {
        try $0.make(path, bytes)
        return "made"
      }
    }

    private mutating func openFile() throws {
      guard open.count < 12 else { return try closeOpen() }
      let path = path()
      let choices = [
        O_RDWR, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL, O_RDWR | O_TRUNC,
        O_RDWR | O_APPEND | O_CREAT, O_RDWR | O_CREAT | O_TRUNC,
      ]
      let flags = choices[pick(choices.count)]
      var handles: [Handle] = []
      let number = open.count
      try both("open \(path) flags \(flags)") {
        handles.append(try $0.open(path, flags))
        return "opened as \(number)"
      }
      if handles.count == 2 { open.append((handles[1], handles[0])) }
    }

    private mutating func onOpen(
      _ what: String, _ body: (Volume, Handle) throws -> String
    ) throws {
      guard !open.isEmpty else { return }
      let index = pick(open.count)
      let pair = open[index]
      let model = model
      try both("\(what) on open file \(index)") { volume in
        try body(volume, volume === model ? pair.1 : pair.0)
      }
    }

    private mutating func writeOpen() throws {
      let offset = pick(4) == 0 ? pick(200_000) : pick(5000)
      let bytes = pattern(1 + (pick(3) == 0 ? pick(100_000) : pick(1000)), seed: generator.next())
      try onOpen("write \(bytes.count) at \(offset)") {
        try $0.write($1, bytes, at: Int64(offset))
        return "written"
      }
    }

    private mutating func readOpen() throws {
      let offset = pick(100_000)
      let count = pick(70_000)
      try onOpen("read \(count) at \(offset)") {
        let status = try $0.stat(.handle($1))
        let bytes = try $0.read($1, count, at: Int64(offset))
        return "\(status.st_size) \(status.st_nlink) \(status.st_mode) \(Self.digest(bytes))"
      }
    }

    private mutating func closeOpen() throws {
      guard !open.isEmpty else { return }
      let index = pick(open.count)
      let pair = open.remove(at: index)
      let model = model
      try both("close") { volume in
        try volume.close(volume === model ? pair.1 : pair.0)
        return "closed"
      }
    }

    private mutating func truncate() throws {
      let size = Int64(pick(100_000))
      if pick(2) == 0 {
        return try onOpen("truncate to \(size)") {
          try $0.truncate(.handle($1), to: size)
          return "cut"
        }
      }
      let path = path()
      try both("truncate \(path) to \(size)") {
        try $0.truncate(.path(path), to: size)
        return "cut"
      }
    }

    private mutating func rename() throws {
      let old = path()
      let new = path()
      let flags: Syscalls.RenameFlags = [[], [], [], .noReplace, .exchange][pick(5)]
      try both("rename \(old) to \(new) flags \(flags.rawValue)") {
        try $0.rename(old, new, flags)
        return "renamed"
      }
    }

    private mutating func link() throws {
      let old = path()
      let new = path()
      try both("link \(old) as \(new)") {
        try $0.link(old, new)
        return "linked"
      }
    }

    private mutating func unlink() throws {
      let path = path()
      try both("unlink \(path)") {
        try $0.unlink(path)
        return "unlinked"
      }
    }

    private mutating func directory() throws {
      let path = path()
      let makes = pick(3) > 0
      try both("\(makes ? "mkdir" : "rmdir") \(path)") {
        if makes { try $0.mkdir(path) } else { try $0.rmdir(path) }
        return "done"
      }
    }

    private mutating func symbolicLink() throws {
      let path = path()
      let target = name()
      if pick(2) == 0 {
        try both("symlink \(path) to \(target)") {
          try $0.symlink(target, path)
          return "made"
        }
      } else {
        try both("readlink \(path)") { "\(Path(try $0.readlink(path)))" }
      }
    }

    private mutating func attributes() throws {
      let path = path()
      let number = pick(400)
      switch pick(4) {
      case 0:
        try both("chmod \(path)") {
          try $0.chmod(.path(path), 0o400 | mode_t(number))
          return "done"
        }
      case 1:
        try both("utimens \(path)") {
          try $0.utimens(.path(path), .seconds(number, 1), .seconds(number, number))
          return "\(try $0.stat(.path(path)).st_mtim.total)"
        }
      case 2:
        // Of symbolic links nobody may set any; the drivers don't follow them here.
        try both("setxattr \(path)") {
          guard try $0.stat(.link(path)).st_mode & S_IFMT == S_IFREG else { return "no file" }
          try $0.setxattr(.path(path), "user.\(number % 3)", pattern(number))
          return "done"
        }
      default:
        try onOpen("fsync") {
          try $0.fsync($1)
          return "synced"
        }
      }
    }

    private mutating func look() throws {
      let path = path()
      try both("look at \(path)") { try Self.describe($0, path) }
    }

    /// Kind, mode, links and contents of one entry, and what is below a directory.
    private static func describe(_ volume: Volume, _ path: Path) throws -> String {
      let status = try volume.stat(.link(path))
      var result = "\(path) \(status.st_mode)"
      switch status.st_mode & S_IFMT {
      case S_IFDIR:
        for name in try volume.names(path) {
          result +=
            "\n" + (try describe(volume, path.bytes.isEmpty ? Path(name) : path / Path(name)))
        }
      case S_IFLNK: result += " -> \(Path(try volume.readlink(path)))"
      case S_IFREG:
        result += " \(status.st_nlink) \(status.st_size) \(digest(try volume.contents(path)))"
        for name in try volume.listxattr(.path(path)) {
          result += " \(name)=\(digest(try volume.getxattr(.path(path), name)))"
        }
      default: break
      }
      return result
    }

    /// FNV-1a, enough to tell contents apart.
    private static func digest(_ bytes: [UInt8]) -> String {
      var hash: UInt64 = 0xCBF2_9CE4_8422_2325
      bytes.withUnsafeBytes {
        for byte in $0 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
      }
      return "\(bytes.count):\(hash)"
    }

    mutating func compareTrees(remounting: Bool) throws {
      if remounting {
        while !open.isEmpty { try closeOpen() }
        try tested.remount()
        journal.append("remount")
      }
      let wanted = try Self.describe(model, "").split(separator: "\n").dropFirst()
      let got = try Self.describe(tested, "").split(separator: "\n").dropFirst()
      for (wanted, got) in zip(wanted, got) { try expect(got, wanted, "tree") }
      try expect(got.count, wanted.count, "entries of the tree")
    }
  }
}
