import Glibc
import Platform

/// Names: any bytes but `/` and NUL, up to 255 of them, not normalised.
enum NameChecks {
  static let all: [Check] = [
    Check("namesOfEveryLengthWork", namesOfEveryLengthWork),
    Check("directoriesWithNamesOfEveryLengthWork", directoriesWithNamesOfEveryLengthWork),
    Check("namesOf256BytesAreTooLong", namesOf256BytesAreTooLong),
    Check("namesOfAnyByteWork", namesOfAnyByteWork),
    Check("namesThatAreNotUTF8Work", namesThatAreNotUTF8Work),
    Check("namesAreNotNormalised", namesAreNotNormalised),
    Check("caseMatters", caseMatters),
    Check("dotsSpacesAndSignsWork", dotsSpacesAndSignsWork),
    Check("namesLikeOursWorkAsFiles", namesLikeOursWorkAsFiles),
    Check("namesLikeOursWorkAsDirectories", namesLikeOursWorkAsDirectories),
    Check("namesLikeOursWorkAsSymbolicLinks", namesLikeOursWorkAsSymbolicLinks),
    Check("namesLikeOursWorkInTheRoot", namesLikeOursWorkInTheRoot),
    Check("namesThatMeetOnTheDiskAreKeptApart", namesThatMeetOnTheDiskAreKeptApart),
    Check("namesLikeOursWorkInRenamesAndLinks", namesLikeOursWorkInRenamesAndLinks),
    Check("oneNameInManyDirectories", oneNameInManyDirectories),
  ]

  static let likeOurs = [
    "photo.securedData", ".securedData", "photo.jpg.securedData", "photo.securedData.securedData",
    "vault.json", "vault.json.securedData", "directory.id", "directory.id.securedData",
    ".photovault-abcdef.tmp", ".photovault-ABC123.tmp", ".photovault-.tmp",
    ".photovault-abcdef.tmp.securedData", "x.long", "x.long.name", "x.long.securedData",
    "x.long.name.securedData", ".long", ".long.name", ".name", "photo.long.long.name.name",
    "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0.long",
    "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0.long.name",
    "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0.long.securedData",
    "ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0", "photo (interrupted 2024-01-01 10.00.00).jpg",
  ]

  static func namesOfEveryLengthWork(_ fs: Volume) throws {
    func name(_ length: Int) -> Path { Path([UInt8](repeating: 0x6E, count: length)) }
    let lengths = [1, 2, 15, 16, 17, 100] + Array(130...255)
    try fs.mkdir("d")
    for length in lengths { try fs.make("d" / name(length), "\(length)") }
    for _ in 0..<2 {
      try expect(fs.names("d").map(\.count), lengths)
      for length in lengths { try fs.expectContents("d" / name(length), "\(length)") }
      try fs.remount()
    }
    for length in lengths { try fs.unlink("d" / name(length)) }
    try fs.expectNames("d", [])
    try fs.rmdir("d")
  }

  static func directoriesWithNamesOfEveryLengthWork(_ fs: Volume) throws {
    func name(_ length: Int) -> Path { Path([UInt8](repeating: 0x6E, count: length)) }
    let lengths = [1, 16, 100] + Array(stride(from: 140, through: 254, by: 3)) + [255]
    for length in lengths {
      try fs.mkdir(name(length))
      try fs.symlink("x", name(length) / name(256 - length))
    }
    for _ in 0..<2 {
      try expect(fs.names("").map(\.count), lengths)
      for length in lengths {
        try expect(fs.readlink(name(length) / name(256 - length)), [UInt8(ascii: "x")])
      }
      try fs.remount()
    }
    for length in lengths {
      try fs.unlink(name(length) / name(256 - length))
      try fs.rmdir(name(length))
    }
    try fs.expectNames("", [])
  }

  static func namesOf256BytesAreTooLong(_ fs: Volume) throws {
    let long = Path([UInt8](repeating: 0x6E, count: 256))
    let longer = Path([UInt8](repeating: 0x6E, count: 1000))
    try fs.make("a", "x")
    for name in [long, longer] {
      try expectError(ENAMETOOLONG) { try fs.open(name) }
      try expectError(ENAMETOOLONG) { try fs.open(name, O_CREAT | O_WRONLY) }
      try expectError(ENAMETOOLONG) { try fs.stat(.path(name)) }
      try expectError(ENAMETOOLONG) { try fs.mkdir(name) }
      try expectError(ENAMETOOLONG) { try fs.rmdir(name) }
      try expectError(ENAMETOOLONG) { try fs.unlink(name) }
      try expectError(ENAMETOOLONG) { try fs.symlink("x", name) }
      try expectError(ENAMETOOLONG) { try fs.link("a", name) }
      try expectError(ENAMETOOLONG) { try fs.mknod(name, S_IFIFO | 0o600) }
      try expectError(ENAMETOOLONG) { try fs.rename("a", name) }
      try expectError(ENAMETOOLONG) { try fs.rename(name, "a") }
      try expectError(ENAMETOOLONG) { try fs.stat(.path(name / "a")) }
    }
    try fs.expectNames("", ["a"])
  }

  static func namesOfAnyByteWork(_ fs: Volume) throws {
    let bytes = (UInt8(1)...255).filter { $0 != 0x2F }
    for byte in bytes where byte != 0x2E { try fs.make(Path([byte]), [byte]) }
    let all = Path(bytes)
    try fs.make(all, "all")
    let reversed = Path(bytes.reversed())
    try fs.mkdir(reversed)
    for _ in 0..<2 {
      for byte in bytes where byte != 0x2E { try fs.expectContents(Path([byte]), [byte]) }
      try fs.expectContents(all, "all")
      let expected =
        bytes.filter { $0 != 0x2E }.map { [$0] } + [all.bytes, reversed.bytes]
      try expect(fs.names("") == expected.sorted { $0.lexicographicallyPrecedes($1) }, "listing")
      try fs.remount()
    }
  }

  static func namesThatAreNotUTF8Work(_ fs: Volume) throws {
    let names: [[UInt8]] = [
      [0xFF], [0xC3], [0xC3, 0x28], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xC0, 0xAF],
      [0xF8, 0x88, 0x80, 0x80, 0x80], [0x80], [0x61, 0xFF, 0x62],
    ]
    for (number, name) in names.enumerated() {
      try fs.make(Path(name), "\(number)")
      try fs.symlink(Path(name), Path(name + [0x6C]))
    }
    try fs.remount()
    for (number, name) in names.enumerated() {
      try fs.expectContents(Path(name), "\(number)")
      try fs.expectContents(Path(name + [0x6C]), "\(number)")
    }
    try expect(Set(fs.names("")) == Set(names + names.map { $0 + [0x6C] }), "listing")
  }

  static func namesAreNotNormalised(_ fs: Volume) throws {
    // "é" in one code point and in two, the "fi" ligature, full-width "A", Kelvin sign.
    let names = ["\u{E9}", "e\u{301}", "\u{FB01}", "fi", "\u{FF21}", "A", "\u{212A}", "K"]
    for (number, name) in names.enumerated() { try fs.make(Path(name), "\(number)") }
    for _ in 0..<2 {
      for (number, name) in names.enumerated() { try fs.expectContents(Path(name), "\(number)") }
      try expect(Set(fs.names("")) == Set(names.map { Array($0.utf8) }), "listing")
      try fs.remount()
    }
  }

  static func caseMatters(_ fs: Volume) throws {
    for name in ["photo.jpg", "Photo.jpg", "PHOTO.JPG", "photo.JPG"] {
      try expectError(ENOENT) { try fs.stat(.path(Path(name))) }
      try fs.make(Path(name), name)
    }
    try fs.remount()
    for name in ["photo.jpg", "Photo.jpg", "PHOTO.JPG", "photo.JPG"] {
      try fs.expectContents(Path(name), name)
    }
  }

  static func dotsSpacesAndSignsWork(_ fs: Volume) throws {
    let names = [
      "...", ".hidden", "..double", " ", "  leading", "trailing  ", "trailing.", "a\nb", "\t", "~",
      "-rf", "*", "?", "a:b", "a\\b", "\"", "'", "|", "CON", "nul.txt", "%2F", "$HOME", ".Trash-0",
      "a.b.c.d", "#photo#", ".#lock", "photo.jpg~", "\u{1F4F7}.heic", "\u{202E}gpj",
    ]
    for name in names { try fs.make(Path(name), name) }
    try fs.remount()
    try fs.expectNames("", names)
    for name in names { try fs.expectContents(Path(name), name) }
    for name in names { try fs.unlink(Path(name)) }
    try fs.expectNames("", [])
  }

  static func namesLikeOursWorkAsFiles(_ fs: Volume) throws {
    for name in likeOurs {
      try fs.expectMissing(Path(name))
      try fs.make(Path(name), "content of \(name)")
    }
    for _ in 0..<2 {
      try fs.expectNames("", likeOurs)
      for name in likeOurs { try fs.expectContents(Path(name), "content of \(name)") }
      try fs.remount()
    }
    for name in likeOurs {
      try fs.make(Path(name), "rewritten")
      try fs.unlink(Path(name))
      try fs.expectMissing(Path(name))
    }
    try fs.expectNames("", [])
  }

  static func namesLikeOursWorkAsDirectories(_ fs: Volume) throws {
    for name in likeOurs {
      try fs.mkdir(Path(name))
      try fs.make(Path(name) / Path(name), name)
    }
    for _ in 0..<2 {
      try fs.expectNames("", likeOurs)
      for name in likeOurs {
        try fs.expectNames(Path(name), [name])
        try fs.expectContents(Path(name) / Path(name), name)
      }
      try fs.remount()
    }
    for name in likeOurs {
      try expectError(ENOTEMPTY) { try fs.rmdir(Path(name)) }
      try fs.unlink(Path(name) / Path(name))
      try fs.rmdir(Path(name))
    }
    try fs.expectNames("", [])
  }

  static func namesLikeOursWorkAsSymbolicLinks(_ fs: Volume) throws {
    for name in likeOurs { try fs.symlink(Path(name), Path(name)) }
    for name in likeOurs { try fs.mknod(Path("\(name).p"), S_IFIFO | 0o600) }
    try fs.remount()
    try fs.expectNames("", likeOurs + likeOurs.map { "\($0).p" })
    for name in likeOurs {
      try expect(fs.readlink(Path(name)), Array(name.utf8))
      try fs.unlink(Path(name))
      try fs.unlink(Path("\(name).p"))
    }
    try fs.expectNames("", [])
  }

  static func namesLikeOursWorkInTheRoot(_ fs: Volume) throws {
    let before = try fs.names("/")
    for kind in 0..<3 {
      for name in likeOurs {
        let path = Path("/\(name)")
        switch kind {
        case 0: try fs.make(path, name)
        case 1: try fs.mkdir(path)
        default: try fs.symlink(Path(name), path)
        }
      }
      try fs.remount()
      let expected = before + likeOurs.map { Array($0.utf8) }
      try expect(Set(fs.names("/")) == Set(expected), "listing of kind \(kind)")
      for name in likeOurs {
        let path = Path("/\(name)")
        switch kind {
        case 0: try fs.expectContents(path, name)
        case 1: try fs.expectNames(path, [])
        default: try expect(fs.readlink(path), Array(name.utf8))
        }
        if kind == 1 { try fs.rmdir(path) } else { try fs.unlink(path) }
      }
      try expect(fs.names("/") == before, "something is left")
    }
  }

  /// With readable names the file `x` is stored as `x.securedData`.
  static func namesThatMeetOnTheDiskAreKeptApart(_ fs: Volume) throws {
    try fs.make("x", "file x")
    try fs.mkdir("x.securedData")
    try fs.make("x.securedData/x", "inside")
    try fs.symlink("x", "x.securedData.securedData")
    try fs.make("x.long.name", "file")
    try fs.mkdir("x.long")
    try fs.mkdir("y.securedData")
    try fs.make("y", "file y")
    try expectError(ENOENT) { try fs.stat("y.securedData/y") }
    for _ in 0..<2 {
      try fs.expectNames(
        "",
        [
          "x", "x.securedData", "x.securedData.securedData", "x.long", "x.long.name", "y",
          "y.securedData",
        ])
      try fs.expectContents("x", "file x")
      try fs.expectContents("x.securedData/x", "inside")
      try expect(fs.readlink("x.securedData.securedData"), [UInt8(ascii: "x")])
      try fs.remount()
    }
    try fs.unlink("x")
    try fs.expectContents("x.securedData/x", "inside")
    try fs.rename("x.securedData", "z")
    try fs.rename("y", "x.securedData")
    try fs.remount()
    try fs.expectContents("x.securedData", "file y")
    try fs.expectContents("z/x", "inside")
    try fs.expectMissing("x")
    try fs.expectMissing("y")
  }

  static func namesLikeOursWorkInRenamesAndLinks(_ fs: Volume) throws {
    try fs.mkdir("d")
    for name in likeOurs {
      try fs.make("a", name)
      try fs.rename("a", Path(name))
      try fs.expectMissing("a")
      try fs.link(Path(name), "d" / Path(name))
      let handle = try fs.open(Path(name), O_WRONLY | O_APPEND)
      try fs.write(handle, "!")
      try fs.close(handle)
      try fs.expectContents("d" / Path(name), "\(name)!")
    }
    try fs.remount()
    for name in likeOurs {
      try expect(fs.stat(.path(Path(name))).st_nlink, 2)
      try expectError(EEXIST) { try fs.rename("d", Path(name), .noReplace) }
      try fs.rename(Path(name), "b")
      try fs.expectContents("b", "\(name)!")
      try fs.unlink("b")
      try fs.unlink("d" / Path(name))
    }
    try fs.rmdir("d")
    try fs.expectNames("", [])
  }

  static func oneNameInManyDirectories(_ fs: Volume) throws {
    let long = String(repeating: "z", count: 240)
    for number in 0..<20 {
      try fs.mkdir("d\(number)")
      try fs.make("d\(number)/photo.jpg", "\(number)")
      try fs.make("d\(number)" / Path(long), "long \(number)")
    }
    try fs.remount()
    for number in 0..<20 {
      try fs.expectContents("d\(number)/photo.jpg", "\(number)")
      try fs.expectContents("d\(number)" / Path(long), "long \(number)")
      try fs.expectNames("d\(number)", ["photo.jpg", long])
    }
  }
}
