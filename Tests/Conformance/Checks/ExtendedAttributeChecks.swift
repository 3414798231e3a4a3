import Glibc

/// The user's extended attributes, xattr(7).
enum ExtendedAttributeChecks {
  static let all: [Check] = [
    Check("extendedAttributesComeBack", extendedAttributesComeBack),
    Check("extendedAttributesOfDirectories", extendedAttributesOfDirectories),
    Check("extendedAttributeFlagsAreKept", extendedAttributeFlagsAreKept),
    Check("missingExtendedAttributesFail", missingExtendedAttributesFail),
    Check("extendedAttributesAreReplacedAndRemoved", extendedAttributesAreReplacedAndRemoved),
    Check("extendedAttributeValuesOfEverySize", extendedAttributeValuesOfEverySize),
    Check("extendedAttributeNamesAreExact", extendedAttributeNamesAreExact),
    Check("extendedAttributesOfANewFileSurviveItsCommit", attributesOfANewFile),
    Check("extendedAttributesSurviveARewrite", extendedAttributesSurviveARewrite),
    Check("extendedAttributesChangeDuringARewrite", extendedAttributesChangeDuringARewrite),
    Check("extendedAttributesAreSeenByAllLinks", extendedAttributesAreSeenByAllLinks),
    Check("extendedAttributesDoNotFollowReplacement", extendedAttributesDoNotFollowReplacement),
    Check("overlongExtendedAttributesAreRefused", overlongExtendedAttributesAreRefused),
    Check("namesOfOurOwnAreLikeAnyOther", namesOfOurOwnAreLikeAnyOther),
  ]

  private static let createOnly: CInt = 1  // XATTR_CREATE
  private static let replaceOnly: CInt = 2  // XATTR_REPLACE

  static func extendedAttributesComeBack(_ fs: Volume) throws {
    try fs.make("a", "content")
    try expect(fs.listxattr("a"), [])
    try fs.setxattr("a", "user.one", [1, 2, 3])
    try fs.setxattr("a", "user.two", [])
    try fs.setxattr("a", "user.three", Array(0...255))
    for _ in 0..<2 {
      try expect(fs.getxattr("a", "user.one"), [1, 2, 3])
      try expect(fs.getxattr("a", "user.two"), [])
      try expect(fs.getxattr("a", "user.three"), Array(0...255))
      try expect(fs.listxattr("a"), ["user.one", "user.three", "user.two"])
      try fs.expectContents("a", "content")
      try fs.remount()
    }
  }

  static func extendedAttributesOfDirectories(_ fs: Volume) throws {
    try fs.mkdir("d")
    try fs.setxattr("d", "user.tag", [9])
    try fs.rename("d", "e")
    try fs.remount()
    try expect(fs.getxattr("e", "user.tag"), [9])
    try expect(fs.listxattr("e"), ["user.tag"])
    try fs.removexattr("e", "user.tag")
    try expect(fs.listxattr("e"), [])
    try fs.rmdir("e")
  }

  static func extendedAttributeFlagsAreKept(_ fs: Volume) throws {
    try fs.make("a", "x")
    let handle = try fs.open("new", O_CREAT | O_RDWR)
    for path: Subject in ["a", "new", .handle(handle)] {
      try expectError(ENODATA) {
        try fs.setxattr(path, "user.x", [1], flags: replaceOnly)
      }
      try fs.setxattr(path, "user.x", [1], flags: createOnly)
      try expectError(EEXIST) {
        try fs.setxattr(path, "user.x", [2], flags: createOnly)
      }
      try expect(fs.getxattr(path, "user.x"), [1])
      try fs.setxattr(path, "user.x", [3], flags: replaceOnly)
      try expect(fs.getxattr(path, "user.x"), [3])
      try fs.removexattr(path, "user.x")
    }
    try fs.close(handle)
  }

  static func missingExtendedAttributesFail(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.mkdir("d")
    let handle = try fs.open("new", O_CREAT | O_RDWR)
    for path: Subject in ["a", "d", "new", .handle(handle)] {
      try expectError(ENODATA) { try fs.getxattr(path, "user.missing") }
      try expectError(ENODATA) { try fs.removexattr(path, "user.missing") }
      try expectError(ENODATA, EOPNOTSUPP) { try fs.getxattr(path, "security.capability") }
      try expectError(ENODATA, EOPNOTSUPP) { try fs.getxattr(path, "system.posix_acl_access") }
      try expect(fs.listxattr(path), [])
    }
    try fs.close(handle)
  }

  static func extendedAttributesAreReplacedAndRemoved(_ fs: Volume) throws {
    try fs.make("a", "x")
    for size in [10, 500, 1, 0, 300] {
      try fs.setxattr("a", "user.x", pattern(size))
      try expect(fs.getxattr("a", "user.x"), pattern(size))
    }
    try fs.setxattr("a", "user.y", [2])
    try fs.removexattr("a", "user.x")
    try expect(fs.listxattr("a"), ["user.y"])
    try fs.remount()
    try expect(fs.listxattr("a"), ["user.y"])
    try expectError(ENODATA) { try fs.getxattr("a", "user.x") }
    try expectError(ENODATA) { try fs.removexattr("a", "user.x") }
  }

  static func extendedAttributeValuesOfEverySize(_ fs: Volume) throws {
    // ext4 holds 4 KiB for all attributes of a file.
    for size in [0, 1, 15, 16, 17, 255, 256, 1000, 2000, 3000] {
      let name = Path("f\(size)")
      try fs.make(name, "x")
      try fs.setxattr(.path(name), "user.x", pattern(size))
      try fs.remount()
      try expect(fs.getxattr(.path(name), "user.x"), pattern(size))
    }
  }

  static func extendedAttributeNamesAreExact(_ fs: Volume) throws {
    let names = [
      "user.a", "user.A", "user.a.b", "user.é", "user.photovault", "user.x y",
      "user." + String(repeating: "n", count: 100),
    ]
    try fs.make("a", "x")
    for (number, name) in names.enumerated() { try fs.setxattr("a", name, [UInt8(number)]) }
    for _ in 0..<2 {
      try expect(fs.listxattr("a"), names.sorted())
      for (number, name) in names.enumerated() {
        try expect(fs.getxattr("a", name), [UInt8(number)])
      }
      try fs.remount()
    }
  }

  static func attributesOfANewFile(_ fs: Volume) throws {
    let handle = try fs.open("a", O_CREAT | O_RDWR)
    try fs.setxattr(.handle(handle), "user.before", [1])
    try fs.write(handle, pattern(100_000))
    try fs.setxattr("a", "user.after", [2])
    try fs.setxattr("a", "user.gone", [3])
    try fs.removexattr(.handle(handle), "user.gone")
    try expect(fs.listxattr("a"), ["user.after", "user.before"])
    try fs.fsync(handle)
    try fs.setxattr(.handle(handle), "user.synced", [4])
    try fs.close(handle)
    for _ in 0..<2 {
      try expect(fs.listxattr("a"), ["user.after", "user.before", "user.synced"])
      try expect(fs.getxattr("a", "user.before"), [1])
      try expect(fs.getxattr("a", "user.after"), [2])
      try expect(fs.getxattr("a", "user.synced"), [4])
      try fs.remount()
    }
  }

  static func extendedAttributesSurviveARewrite(_ fs: Volume) throws {
    try fs.make("a", "old")
    try fs.setxattr("a", "user.x", [1])
    try fs.make("a", pattern(100_000))
    let handle = try fs.open("a", O_RDWR)
    try fs.write(handle, "edited", at: 50_000)
    try fs.close(handle)
    try fs.truncate("a", to: 70_000)
    for _ in 0..<2 {
      try expect(fs.getxattr("a", "user.x"), [1])
      try expect(fs.listxattr("a"), ["user.x"])
      try fs.remount()
    }
  }

  static func extendedAttributesChangeDuringARewrite(_ fs: Volume) throws {
    try fs.make("a", "old")
    try fs.setxattr("a", "user.gone", [1])
    try fs.setxattr("a", "user.changed", [1])
    let handle = try fs.open("a", O_RDWR | O_TRUNC)
    try fs.write(handle, "new")
    try fs.removexattr("a", "user.gone")
    try fs.setxattr("a", "user.changed", [2])
    try fs.setxattr(.handle(handle), "user.added", [3])
    try expect(fs.listxattr("a"), ["user.added", "user.changed"])
    try fs.close(handle)
    for _ in 0..<2 {
      try expect(fs.listxattr("a"), ["user.added", "user.changed"])
      try expect(fs.getxattr("a", "user.changed"), [2])
      try fs.expectContents("a", "new")
      try fs.remount()
    }
  }

  static func extendedAttributesAreSeenByAllLinks(_ fs: Volume) throws {
    try fs.make("a", "x")
    try fs.link("a", "b")
    try fs.setxattr("b", "user.x", [1])
    let handle = try fs.open("a", O_WRONLY | O_APPEND)
    try fs.write(handle, "y")
    try fs.setxattr("b", "user.y", [2])
    try fs.close(handle)
    for _ in 0..<2 {
      try expect(fs.listxattr("a"), ["user.x", "user.y"])
      try expect(fs.listxattr("b"), ["user.x", "user.y"])
      try fs.remount()
    }
  }

  static func extendedAttributesDoNotFollowReplacement(_ fs: Volume) throws {
    try fs.make("a", "old")
    try fs.setxattr("a", "user.old", [1])
    try fs.make("b", "new")
    try fs.setxattr("b", "user.new", [2])
    try fs.rename("b", "a")
    try expect(fs.listxattr("a"), ["user.new"])
    try fs.unlink("a")
    try fs.make("a", "another")
    try expect(fs.listxattr("a"), [])
    try fs.remount()
    try expect(fs.listxattr("a"), [])
  }

  static func overlongExtendedAttributesAreRefused(_ fs: Volume) throws {
    try fs.make("a", "x")
    let longName = "user." + String(repeating: "n", count: 251)
    try expectError(ERANGE, ENAMETOOLONG) { try fs.setxattr("a", longName, [1]) }
    try expectError(E2BIG) { try fs.setxattr("a", "user.x", zeros(65_537)) }
    try expect(fs.listxattr("a"), [])
  }

  /// What the vault itself keeps in extended attributes must not get in the user's way.
  static func namesOfOurOwnAreLikeAnyOther(_ fs: Volume) throws {
    let names = ["user.photovault.chunks", "user.photovault.x.abc"]
    try fs.make("a", pattern(200_000))
    for name in names { try expectError(ENODATA) { try fs.getxattr("a", name) } }
    for name in names { try fs.setxattr("a", name, [1, 2]) }
    for _ in 0..<2 {
      try expect(fs.listxattr("a"), names)
      for name in names { try expect(fs.getxattr("a", name), [1, 2]) }
      try fs.expectContents("a", pattern(200_000))
      try fs.remount()
    }
    for name in names { try fs.removexattr("a", name) }
    try fs.remount()
    try fs.expectContents("a", pattern(200_000))
    try expect(fs.listxattr("a"), [])
  }
}
