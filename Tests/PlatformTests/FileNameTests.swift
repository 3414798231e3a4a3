import Glibc
import Platform
import Testing

@Suite struct FileNameTests {
  static let oddNames: [[UInt8]] = [
    [0xFF], [0xC3, 0x28], [0x80, 0x2E, 0x6A, 0x70, 0x67],  // not UTF-8
    Array("Zu\u{308}rich".utf8), Array("Z\u{FC}rich".utf8),  // equal only when normalised
    Array("line\nbreak".utf8), Array(" ".utf8), Array("-rf".utf8), Array("🔑".utf8),
    [UInt8](repeating: 0xE4, count: 255),
  ]

  @Test(arguments: oddNames)
  func bytesComeBackAsTheyWere(_ bytes: [UInt8]) {
    let name = FileName(bytes)
    #expect(name.bytes == bytes)
    #expect(name.count == bytes.count)
    name.withCString { text in
      #expect(strlen(text) == bytes.count)
      #expect(FileName(cString: text) == name)
    }
    #expect(bytes.withUnsafeBytes { FileName($0) } == name)
  }

  @Test func namesThatLookTheSameAreNotEqual() {
    #expect(FileName("Zu\u{308}rich") != FileName("Z\u{FC}rich"))
    #expect(Set(Self.oddNames.map { FileName($0) }).count == Self.oddNames.count)
    #expect(FileName("a") == FileName([0x61]))
  }

  @Test func describingRepairsForReadersOnly() {
    #expect(FileName([0x61, 0xFF]).description == "a\u{FFFD}")
    #expect(FileName("Zürich.jpg").description == "Zürich.jpg")
  }

  @Test func dotsAreToldFromNamesWithDots() {
    #expect(FileName(".").isDotOrDotDot)
    #expect(FileName("..").isDotOrDotDot)
    #expect(!FileName("...").isDotOrDotDot)
    #expect(!FileName(".a").isDotOrDotDot)
    #expect(!FileName("").isDotOrDotDot)
  }

  @Test func prefixesAndSuffixesAreBytes() {
    let name = FileName("IMG_1.jpg.securedData")
    #expect(name.hasSuffix(".securedData"))
    #expect(!name.hasSuffix(".secureddata"))
    #expect(name.hasPrefix("IMG_"))
    #expect(!name.hasPrefix("MG_"))
    #expect(!FileName("a").hasSuffix("aa"))
    #expect(FileName("a").hasSuffix(""))
  }

  @Test func anErrorKeepsItsTypeThroughACString() {
    func fail() throws(Errno) {
      try FileName("a").withCString { _ throws(Errno) in throw .exists }
    }
    #expect(throws: Errno.exists) { try fail() }
  }
}
