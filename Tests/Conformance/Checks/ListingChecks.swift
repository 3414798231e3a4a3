import Glibc

/// readdir(3), seekdir(3) and what they show while entries come and go.
enum ListingChecks {
  static let all: [Check] = [
    Check("anEmptyDirectoryListsItsDots", anEmptyDirectoryListsItsDots),
    Check("dotsHaveTheRightInodes", dotsHaveTheRightInodes),
    Check("thousandsOfEntriesAreListedOnce", thousandsOfEntriesAreListedOnce),
    Check("listingInSmallPiecesIsComplete", listingInSmallPiecesIsComplete),
    Check("everyOffsetIsAPlaceToGoOn", everyOffsetIsAPlaceToGoOn),
    Check("deletingWhileListingSkipsNothing", deletingWhileListingSkipsNothing),
    Check("creatingWhileListingRepeatsNothing", creatingWhileListingRepeatsNothing),
    Check("renamingWhileListingRepeatsNothing", renamingWhileListingRepeatsNothing),
    Check("rewindingShowsWhatIsNew", rewindingShowsWhatIsNew),
    Check("twoListingsAreIndependent", twoListingsAreIndependent),
    Check("typesAreListed", typesAreListed),
    Check("aNewFileIsListedAtOnce", aNewFileIsListedAtOnce),
    Check("aRewrittenFileIsListedOnce", aRewrittenFileIsListedOnce),
    Check("nothingOfOurOwnIsListed", nothingOfOurOwnIsListed),
    Check("listingAFileFails", listingAFileFails),
    Check("removingATreeWhileListingIt", removingATreeWhileListingIt),
  ]

  static func anEmptyDirectoryListsItsDots(_ fs: Volume) throws {
    try fs.mkdir("d")
    for _ in 0..<2 {
      try expect(fs.items("d").map { Path($0.name).description }.sorted(), [".", ".."])
      try fs.remount()
    }
  }

  static func dotsHaveTheRightInodes(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.mkdir("d/e")
    for item in try fs.items("d/e") {
      let path: Path = item.name.count == 1 ? "d/e" : "d"
      try expect(item.inode, UInt64(fs.stat(.path(path)).st_ino))
      try expect(item.type, S_IFDIR)
    }
  }

  /// Every tenth entry is a file, the others are links, which cost the disk less.
  private static func fill(_ fs: Volume, _ count: Int) throws {
    for number in 0..<count {
      let name = Path("entry \(number)")
      if number % 10 == 0 { try fs.make(name) } else { try fs.symlink("x", name) }
    }
  }

  static func thousandsOfEntriesAreListedOnce(_ fs: Volume) throws {
    // Without a kernel that knows names, each new one costs a look at all of them.
    let count = fs.driver.mountPoint == nil ? 1000 : 5000
    try fill(fs, count)
    let expected = (0..<count).map { "entry \($0)" }
    try fs.expectNames("", expected)
    try fs.remount()
    try fs.expectNames("", expected)
  }

  static func listingInSmallPiecesIsComplete(_ fs: Volume) throws {
    try fill(fs, 300)
    let expected = Set((0..<300).map { "entry \($0)" } + [".", ".."])
    for pieceSize in [1, 2, 7, 299, 1000] {
      let handle = try fs.open("", O_RDONLY | O_DIRECTORY)
      let names = try fs.items(handle, pieceSize: pieceSize).map {
        String(decoding: $0.name, as: UTF8.self)
      }
      try fs.close(handle)
      try expect(names.count, 302, "in pieces of \(pieceSize)")
      try expect(Set(names) == expected, "other names in pieces of \(pieceSize)")
    }
  }

  static func everyOffsetIsAPlaceToGoOn(_ fs: Volume) throws {
    try fill(fs, 100)
    let handle = try fs.open("", O_RDONLY | O_DIRECTORY)
    let all = try fs.items(handle)
    for index in [100, 0, 50, 99, 1, 77] {
      let rest = try fs.items(handle, from: all[index].nextOffset, pieceSize: 13)
      try expect(rest.map(\.name), all[(index + 1)...].map(\.name), "behind entry \(index)")
    }
    try expect(fs.items(handle).map(\.name), all.map(\.name), "from the start again")
    try expect(Set(all.map(\.nextOffset)).count, all.count, "different offsets")
    try fs.close(handle)
  }

  static func deletingWhileListingSkipsNothing(_ fs: Volume) throws {
    try fill(fs, 1000)
    let handle = try fs.open("", O_RDONLY | O_DIRECTORY)
    var seen: Set<[UInt8]> = []
    var offset: Int64 = 0
    while true {
      let piece = try fs.readdir(handle, from: offset, 50)
      guard let last = piece.last else { break }
      offset = last.nextOffset
      for item in piece where item.name.count > 2 {
        try expect(seen.insert(item.name).inserted, "\(Path(item.name)) is listed twice")
        try fs.unlink(Path(item.name))
      }
    }
    try expect(seen.count, 1000)
    try fs.close(handle)
    try fs.expectNames("", [])
  }

  static func creatingWhileListingRepeatsNothing(_ fs: Volume) throws {
    try fill(fs, 500)
    let handle = try fs.open("", O_RDONLY | O_DIRECTORY)
    var seen: Set<[UInt8]> = []
    var offset: Int64 = 0
    var made = 0
    while true {
      let piece = try fs.readdir(handle, from: offset, 40)
      guard let last = piece.last else { break }
      offset = last.nextOffset
      for item in piece {
        try expect(seen.insert(item.name).inserted, "\(Path(item.name)) is listed twice")
      }
      // Bounded: a directory may show what is made behind the reader's place for ever.
      if made < 100 {
        try fs.make("made \(made)")
        made += 1
      }
    }
    for number in 0..<500 {
      try expect(seen.contains(Array("entry \(number)".utf8)), "entry \(number) is not listed")
    }
    try fs.close(handle)
  }

  static func renamingWhileListingRepeatsNothing(_ fs: Volume) throws {
    try fill(fs, 500)
    try fs.mkdir("d")
    let handle = try fs.open("", O_RDONLY | O_DIRECTORY)
    var seen: [[UInt8]: Int] = [:]
    var offset: Int64 = 0
    var moved = 0
    while true {
      let piece = try fs.readdir(handle, from: offset, 40)
      guard let last = piece.last else { break }
      offset = last.nextOffset
      for item in piece { seen[item.name, default: 0] += 1 }
      for item in piece where item.name.starts(with: Array("entry".utf8)) {
        try fs.rename(Path(item.name), "d" / Path(item.name))
        moved += 1
      }
    }
    try expect(moved, 500)
    try expect(seen.values.max(), 1)
    try fs.close(handle)
    try fs.expectNames("", ["d"])
    try expect(fs.names("d").count, 500)
  }

  static func rewindingShowsWhatIsNew(_ fs: Volume) throws {
    try fs.make("a", "x")
    let handle = try fs.open("", O_RDONLY | O_DIRECTORY)
    try expect(fs.items(handle).count, 3)
    try fs.make("b", "x")
    let new = try fs.open("c", O_CREAT | O_WRONLY)
    try fs.unlink("a")
    let names = try fs.items(handle).map { String(decoding: $0.name, as: UTF8.self) }.sorted()
    try expect(names, [".", "..", "b", "c"])
    try fs.close(new)
    try fs.close(handle)
  }

  static func twoListingsAreIndependent(_ fs: Volume) throws {
    try fill(fs, 100)
    let first = try fs.open("", O_RDONLY | O_DIRECTORY)
    let second = try fs.open("", O_RDONLY | O_DIRECTORY)
    var counts = (0, 0)
    var offsets: (Int64, Int64) = (0, 0)
    for _ in 0..<300 {
      let one = try fs.readdir(first, from: offsets.0, 3)
      let two = try fs.readdir(second, from: offsets.1, 5)
      counts = (counts.0 + one.count, counts.1 + two.count)
      offsets = (one.last?.nextOffset ?? offsets.0, two.last?.nextOffset ?? offsets.1)
    }
    try expect(counts.0, 102)
    try expect(counts.1, 102)
    try fs.close(first)
    try fs.close(second)
  }

  static func typesAreListed(_ fs: Volume) throws {
    try fs.make("file", "x")
    try fs.mkdir("directory")
    try fs.symlink("x", "link")
    try fs.mknod("fifo", S_IFIFO | 0o600)
    try fs.mknod("socket", S_IFSOCK | 0o600)
    let expected: [String: mode_t] = [
      ".": S_IFDIR, "..": S_IFDIR, "file": S_IFREG, "directory": S_IFDIR, "link": S_IFLNK,
      "fifo": S_IFIFO, "socket": S_IFSOCK,
    ]
    for _ in 0..<2 {
      let got = try fs.items("").map { (String(decoding: $0.name, as: UTF8.self), $0.type) }
      try expect(Dictionary(got) { first, _ in first }, expected)
      try fs.remount()
    }
  }

  static func aNewFileIsListedAtOnce(_ fs: Volume) throws {
    try fs.mkdir("d")
    let handle = try fs.open("d/a", O_CREAT | O_WRONLY)
    try fs.expectNames("d", ["a"])
    try fs.write(handle, pattern(2_000_000))
    try fs.expectNames("d", ["a"])
    try fs.rename("d/a", "d/b")
    try fs.expectNames("d", ["b"])
    try fs.link("d/b", "d/c")
    try fs.expectNames("d", ["b", "c"])
    try fs.unlink("d/b")
    try fs.expectNames("d", ["c"])
    try fs.close(handle)
    try fs.expectNames("d", ["c"])
    try fs.remount()
    try fs.expectNames("d", ["c"])
  }

  static func aRewrittenFileIsListedOnce(_ fs: Volume) throws {
    try fs.make("a", "old")
    for flags in [O_RDWR, O_RDWR | O_TRUNC] {
      let handle = try fs.open("a", flags)
      try fs.expectNames("", ["a"])
      try fs.write(handle, pattern(2_000_000))
      try fs.expectNames("", ["a"])
      try fs.fsync(handle)
      try fs.expectNames("", ["a"])
      try fs.close(handle)
      try fs.expectNames("", ["a"])
    }
  }

  static func nothingOfOurOwnIsListed(_ fs: Volume) throws {
    let long = String(repeating: "x", count: 255)
    try fs.mkdir("d")
    try fs.make("d" / Path(long), "x")
    try fs.symlink("x", "d" / Path(String(repeating: "y", count: 255)))
    let handle = try fs.open("d/new", O_CREAT | O_WRONLY)
    try fs.write(handle, pattern(2_000_000))
    let root = try fs.names("/").map { String(decoding: $0, as: UTF8.self) }
    try expect(root.contains("vault.json"), false)
    try expect(root.contains("directory.id"), false)
    try expect(fs.names("d").count, 3)
    for name in ["directory.id", "vault.json"] { try fs.expectMissing(Path("d/\(name)")) }
    try fs.expectMissing("/vault.json")
    try fs.expectMissing("/directory.id")
    try fs.close(handle)
  }

  static func listingAFileFails(_ fs: Volume) throws {
    try fs.make("a", "x")
    let handle = try fs.open("a")
    try expectError(ENOTDIR) { try fs.readdir(handle, from: 0, 10) }
    try fs.close(handle)
    let directory = try fs.open("", O_RDONLY | O_DIRECTORY)
    try expectError(EISDIR) { try fs.read(directory, 10) }
    try fs.close(directory)
  }

  /// Like `rm -r`: lists, removes what it got, lists on.
  static func removingATreeWhileListingIt(_ fs: Volume) throws {
    try fs.mkdir("top")
    for number in 0..<200 {
      try fs.mkdir("top/d\(number)")
      if number % 3 == 0 { try fs.make("top/d\(number)/a", "x") }
    }
    let handle = try fs.open("top", O_RDONLY | O_DIRECTORY)
    var offset: Int64 = 0
    while true {
      let piece = try fs.readdir(handle, from: offset, 30)
      guard let last = piece.last else { break }
      offset = last.nextOffset
      for item in piece where item.name.first == UInt8(ascii: "d") {
        for name in try fs.names("top" / Path(item.name)) {
          try fs.unlink("top" / Path(item.name) / Path(name))
        }
        try fs.rmdir("top" / Path(item.name))
      }
    }
    try fs.close(handle)
    try fs.rmdir("top")
    try fs.expectNames("", [])
  }
}
