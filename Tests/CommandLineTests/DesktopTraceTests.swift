import Foundation
import Glibc
import Platform
import RuntimeLibraries
import Testing

@testable import photovault

/// Finding the traces of a mount; removing them at its end is in MountedTests.
@Suite struct DesktopTraceTests {
  private let places = MountedPlaces(["/home/a/My Photos", "/mnt/ü"])

  @Test(arguments: [
    "file:///home/a/My%20Photos/x.jpg", "file:///home/a/My%20Photos", "file:/mnt/%C3%BC/x",
    "FILE:///mnt/%c3%bc/x", "file://localhost/mnt/ü/x", "file:///mnt/ü/100%",
    "file:///home/a/M%79%20Photos/[1].jpg",
  ])
  func theseAreInTheMount(uri: String) { #expect(places.contain(Array(uri.utf8)[...])) }

  @Test(arguments: [
    "", "file:", "file://", "file:///", "file:///home/a/My%20Photos2/x", "file:///home/a/My",
    "https:///home/a/My%20Photos/x", "file:///home/a/my%20photos/x", "/home/a/My Photos/x",
    "file:home/a/My%20Photos/x", "file:///x/home/a/My%20Photos/x",
  ])
  func theseAreNot(uri: String) { #expect(!places.contain(Array(uri.utf8)[...])) }

  @Test func paths() {
    #expect(FileURI.path(Array("file:///a%2Fb%00%zz%4".utf8)[...]) == Array("/a/b\0%zz%4".utf8))
  }

  // MARK: Compressed texts

  /// What Python's zlib made of it is what comes out, or nothing.
  @Test func compressedTextsAreExpanded() throws {
    let made = try Program().shell(
      """
      python3 -c '
      import json, zlib
      texts = [b"", b"a", b"file:///home/a/" + b"%20" * 300, bytes(range(256)) * 3]
      print(json.dumps([[text.hex(), zlib.compress(text).hex()] for text in texts]))'
      """)
    for pair in try JSONDecoder().decode([[String]].self, from: made.data) {
      let (text, packed) = (try bytes(pair[0]), try bytes(pair[1]))
      #expect(Zlib.expand(packed[...], limit: 1 << 16) == text)
      if text.count > 1 { #expect(Zlib.expand(packed[...], limit: text.count - 1) == nil) }
      #expect(Zlib.expand(packed.dropLast(), limit: 1 << 16) == nil)
      #expect(Zlib.expand(packed.dropFirst(), limit: 1 << 16) == nil)
    }
  }

  private func bytes(_ digits: String) throws -> [UInt8] {
    let characters = Array(digits)
    return try stride(from: 0, to: characters.count, by: 2).map {
      try #require(UInt8(String(characters[$0...($0 + 1)]), radix: 16))
    }
  }

  // MARK: Thumbnails

  private static let makeThumbnails = """
    import os, struct, sys, zlib
    def chunk(kind, data):
        return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
    def png(name, *texts, before=True):
        head = chunk(b'IHDR', struct.pack('>IIBBBBB', 1, 1, 8, 0, 0, 0, 0))
        picture = chunk(b'IDAT', zlib.compress(b'\\0\\0')) + chunk(b'IDAT', os.urandom(9000))
        texts = b''.join(texts)
        body = texts + picture if before else picture + texts
        os.makedirs(os.path.dirname('cache/' + name), exist_ok=True)
        with open('cache/' + name, 'wb') as file:
            file.write(b'\\x89PNG\\r\\n\\x1a\\n' + head + body + chunk(b'IEND', b''))
    def plain(uri): return chunk(b'tEXt', b'Thumb::URI\\0' + uri)
    def packed(uri): return chunk(b'zTXt', b'Thumb::URI\\0\\0' + zlib.compress(uri))
    def wide(uri, pack): return chunk(b'iTXt', b'Thumb::URI\\0' + (b'\\1' if pack else b'\\0')
        + b'\\0de\\0Adresse\\0' + (zlib.compress(uri) if pack else uri))
    other = chunk(b'tEXt', b'Software\\0GNOME::ThumbnailFactory')

    """

  private func remove(
    _ program: Program, since: Int = 0, places: [String] = ["/mnt/p"],
    deadline: ContinuousClock.Instant = .now + .seconds(60)
  ) -> [String] {
    Thumbnails(
      roots: [program.path("cache"), program.path("none")], places: MountedPlaces(places),
      changed: since..<Int.max, deadline: deadline
    ).remove()
  }

  @Test func thumbnailsOfTheMountGoAndOthersStay() throws {
    let program = try Program()
    try program.write(
      "make.py",
      Self.makeThumbnails + """
        ours = b'file:///mnt/p/a.jpg'
        png('normal/plain.png', other, plain(ours))
        png('large/packed.png', other, packed(ours), other)
        png('x-large/wide.png', wide(ours, False))
        png('xx-large/wide-packed.png', wide(ours, True))
        png('fail/gnome-thumbnail-factory/failed.png', plain(ours))
        png('normal/behind-the-picture.png', other, plain(ours), before=False)
        png('normal/half-written.png.A1B2C3', plain(ours))
        png('normal/KEEP-other.png', plain(b'file:///mnt/private/a.jpg'))
        png('normal/KEEP-none.png', other)
        png('large/KEEP-packed.png', packed(b'file:///mnt/q/' + b'x' * 99))
        png('deep/er/than/KEEP-needed.png', plain(ours))
        png('elsewhere/KEEP-link.png', plain(ours))
        os.rename('cache/elsewhere', 'elsewhere')
        os.symlink('../elsewhere', 'cache/link')
        os.symlink('../../elsewhere/KEEP-link.png', 'cache/normal/KEEP-link.png')
        os.mkfifo('cache/normal/KEEP-fifo.png')
        open('cache/normal/KEEP-text.png', 'w').write('Thumb::URI file:///mnt/p/a.jpg')
        open('cache/normal/KEEP-empty.png', 'w')
        open('cache/normal/KEEP-cut.png', 'wb').write(
            open('cache/normal/plain.png', 'rb').read()[:60])
        """)
    #expect(try program.shell("python3 make.py").status == 0)
    #expect(remove(program) == [])
    let left = try program.shell("find . -name '*.png*' | sort").output
    #expect(
      left == """
        ./cache/deep/er/than/KEEP-needed.png
        ./cache/large/KEEP-packed.png
        ./cache/normal/KEEP-cut.png
        ./cache/normal/KEEP-empty.png
        ./cache/normal/KEEP-fifo.png
        ./cache/normal/KEEP-link.png
        ./cache/normal/KEEP-none.png
        ./cache/normal/KEEP-other.png
        ./cache/normal/KEEP-text.png
        ./elsewhere/KEEP-link.png

        """)
  }

  @Test func onlyWhatIsNewerThanTheMountIsLookedAt() throws {
    let program = try Program()
    try program.write(
      "make.py", Self.makeThumbnails + "png('normal/a.png', plain(b'file:///mnt/p/a.jpg'))")
    // A time that a program sets is not believed.
    #expect(try program.shell("python3 make.py; touch -d 1990-01-01 cache/*/*").status == 0)
    #expect(remove(program, since: time(nil) + 3600) == [])
    #expect(program.exists("cache/normal/a.png"))
    #expect(remove(program, since: time(nil) - 3600) == [])
    #expect(!program.exists("cache/normal/a.png"))
  }

  @Test func fiftyThousandThumbnailsAreNoTrouble() throws {
    let program = try Program()
    try program.write(
      "make.py",
      Self.makeThumbnails + """
        png('large/a.png', plain(b'file:///home/a/b.jpg'))
        for number in range(50_000): os.link('cache/large/a.png', 'cache/large/%032x.png' % number)
        png('normal/ours.png', plain(b'file:///mnt/p/a.jpg'))
        """)
    #expect(try program.shell("python3 make.py").status == 0)
    #expect(remove(program) == [])
    #expect(!program.exists("cache/normal/ours.png"))
    #expect(try program.list("cache/large").count == 50_001)
    // Out of time: that is said, and the next try finds what is left.
    try program.write(
      "more.py", Self.makeThumbnails + "png('normal/b.png', plain(b'file:///mnt/p/'))")
    #expect(try program.shell("python3 more.py").status == 0)
    let problems = remove(program, deadline: .now)
    #expect(problems == ["thumbnails in \(program.path("cache")): there were too many to look at"])
    #expect(program.exists("cache/normal/b.png"))
    #expect(remove(program) == [])
    #expect(!program.exists("cache/normal/b.png"))
  }

  // MARK: Recent files

  private func without(_ text: String) -> String? {
    BookmarkFile.without(MountedPlaces(["/mnt/p"]), Array(text.utf8))
      .map { String(decoding: $0, as: UTF8.self) }
  }

  private func entry(_ uri: String) -> String {
    """

      <bookmark href="\(uri)" added="2026-01-01T00:00:00.000001Z" modified="2026-01-01T00:00:00Z">
        <info>
          <metadata owner="http://freedesktop.org">
            <mime:mime-type type="image/jpeg"/>
            <bookmark:applications>
              <bookmark:application name="eog" exec="&apos;eog %u&apos;" count="1"/>
            </bookmark:applications>
          </metadata>
        </info>
      </bookmark>
    """
  }

  private let head = """
    <?xml version="1.0" encoding="UTF-8"?>
    <xbel version="1.0"
          xmlns:bookmark="http://www.freedesktop.org/standards/desktop-bookmarks"
          xmlns:mime="http://www.freedesktop.org/standards/shared-mime-info"
    >
    """

  @Test func onlyBookmarksOfTheMountAreCutOut() {
    let (ours, other) = (entry("file:///mnt/p/a&amp;b%20&#x63;.jpg"), entry("file:///mnt/pq/a.jpg"))
    let end = "\n</xbel>"
    #expect(without(head + ours + other + ours + end) == head + other + end)
    #expect(without(head + ours + end) == head + end)
    #expect(without(head + other + end) == head + other + end)
    #expect(without("") == "")
  }

  @Test(arguments: [
    ("<a/><bookmark href='file:///mnt/p/x'/><b/>", "<a/><b/>"),
    ("<a/>\r\n\t<bookmark title=\"a > b\" href = 'file:///mnt/p/x' />\r\n", "<a/>\r\n"),
    (
      "<!-- <bookmark href='file:///mnt/p/x'> --><bookmark href='x'/>",
      "<!-- <bookmark href='file:///mnt/p/x'> --><bookmark href='x'/>"
    ),
    (
      "<bookmark href='x'><desc><![CDATA[</bookmark>]]></desc></bookmark>",
      "<bookmark href='x'><desc><![CDATA[</bookmark>]]></desc></bookmark>"
    ),
    ("<bookmark href='file:///mnt/p/x'><![CDATA[</bookmark>]]></bookmark>|", "|"),
    ("<bookmark xhref='file:///mnt/p/x'/>", "<bookmark xhref='file:///mnt/p/x'/>"),
    ("<bookmarks href='file:///mnt/p/x'/>", "<bookmarks href='file:///mnt/p/x'/>"),
    ("<bookmark/>", "<bookmark/>"),
  ])
  func spellings(text: String, result: String) { #expect(without(text) == result) }

  @Test(arguments: [
    "<bookmark href='file:///mnt/p/x'>", "<bookmark href='file:///mnt/p/x", "</bookmark>", "<",
    "<bookmark href='x'><bookmark href='file:///mnt/p/x'/></bookmark>",
  ])
  func whatIsDamagedIsNotTouched(text: String) { #expect(without(text) == nil) }

  @Test func theListIsReplacedWithItsMode() throws {
    let program = try Program()
    let recent = RecentFiles(
      path: program.path("recently-used.xbel"), places: MountedPlaces(["/mnt/p"]))
    #expect(recent.remove() == nil)
    let other = head + entry("file:///x") + "\n</xbel>\n"
    try program.write(
      "recently-used.xbel", head + entry("file:///mnt/p/x") + entry("file:///x") + "\n</xbel>\n")
    try program.write(".recently-used.xbel.photovault", "left by one that was killed")
    #expect(try program.shell("chmod 640 recently-used.xbel").status == 0)
    #expect(recent.remove() == nil)
    #expect(try program.read("recently-used.xbel") == Data(other.utf8))
    #expect(try program.shell("stat -c %a recently-used.xbel").output == "640\n")
    #expect(try !program.list(".").contains { $0.hasPrefix(".recently-used") })
    // Nothing of ours: not even written.
    let before = try program.shell("stat -c '%i %Z' recently-used.xbel").output
    #expect(recent.remove() == nil)
    #expect(try program.shell("stat -c '%i %Z' recently-used.xbel").output == before)
    try program.write("recently-used.xbel", "<bookmark href='file:///mnt/p/x'>")
    #expect(recent.remove()?.hasSuffix("it is damaged and was left as it is") == true)
    try program.write("recently-used.xbel", "<bookmark href='file:///mnt/pq/x'>")
    #expect(recent.remove() == nil)
    #expect(try program.shell("ln -sf /dev/null recently-used.xbel").status == 0)
    #expect(recent.remove() == nil)
    #expect(try program.shell("readlink recently-used.xbel").output == "/dev/null\n")
  }

  /// Another program adds entries by replacing the file, as GTK does: none of them may be lost.
  @Test func noEntryOfOthersIsLostInARace() throws {
    let program = try Program()
    try program.write(
      "writer.py",
      """
      import os
      ours = "\\n  <bookmark href='file:///mnt/p/x'></bookmark>"
      for number in range(400):
          # GTK reads, adds, and replaces without a lock; only what it writes last has to stay.
          text = '<xbel>' + ''.join(
              f"\\n  <bookmark href='file:///o/{n}'></bookmark>{ours}" for n in range(number + 1))
          with open('new', 'w') as file: file.write(text + '\\n</xbel>')
          os.rename('new', 'recently-used.xbel')
      open('done', 'w')
      """)
    let recent = RecentFiles(
      path: program.path("recently-used.xbel"), places: MountedPlaces(["/mnt/p"]))
    let writer = Thread { _ = try? program.shell("python3 writer.py") }
    writer.start()
    while !program.exists("done") { _ = recent.remove() }
    #expect(recent.remove() == nil)
    let expected = (0..<400).map { "\n  <bookmark href='file:///o/\($0)'></bookmark>" }.joined()
    #expect(try program.read("recently-used.xbel") == Data("<xbel>\(expected)\n</xbel>".utf8))
  }
}
