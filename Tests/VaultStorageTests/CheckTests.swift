import Foundation
import Glibc
import Synchronization
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

/// What `check` sees of each kind of damage, and that it sees nothing else.
@Suite struct CheckTests {
  @Test(arguments: [NamesMode.encrypted, .plain])
  func aGoodVaultIsClean(_ names: NamesMode) throws {
    try SampleVault.with(names) { sample in
      let report = try sample.check()
      #expect(report.findings.isEmpty && report.isComplete)
      #expect(report.counts.files == 5 && report.counts.directories == 2)
      #expect(report.counts.unindexed == 0)
      #expect(report.counts.bytes > 2 * Int64(SampleVault.filmSize))
    }
  }

  /// Each byte of a blob is authenticated: version, options, salts, IV, ciphertext, HMAC.
  @Test(arguments: [0, 1, 2, 9, 10, 17, 18, 33, 34, 65_570, 200_000, -33, -32, -1])
  func anAlteredByteIsDamage(_ offset: Int) throws {
    try SampleVault.with { sample in
      for name in ["film", "album/one"] {
        try sample.flip(name, name == "film" ? offset : min(offset, 50))
      }
      let report = try sample.check()
      #expect(sample.findings(report) == ["blob album/one", "blob film"])
      let film = try #require(report.findings.first { $0.path?.text == "film" })
      #expect(film.isDamage && film.storedPath.text == sample.stored["film"])
      #expect(report.counts.files == 5)
    }
  }

  @Test(arguments: [0, 1, 33, 81, -16, -1, 1_000_016, 1_000_001])
  func anotherSizeIsDamage(_ size: Int) throws {
    try SampleVault.with { sample in
      let bytes = try sample.read("film")
      try sample.overwrite(
        "film",
        size > 1_000_000
          ? bytes + SampleVault.bytes(size - 1_000_000)
          : Array(bytes.prefix(size < 0 ? bytes.count + size : size)))
      #expect(try sample.findings() == ["blob film"])
    }
  }

  @Test func whatWasNeverEncryptedSaysSo() throws {
    try SampleVault.with { sample in
      try sample.overwrite("photo", [0xFF, 0xD8, 0xFF, 0xE0] + SampleVault.bytes(500))
      let report = try sample.check()
      #expect(sample.findings(report) == ["blob photo"])
      #expect(report.findings[0].reason.contains("JPEG"))
    }
  }

  @Test func contentsThatWereExchangedAreTold() throws {
    try SampleVault.with { sample in
      let (one, other) = (try sample.read("film"), try sample.read("album/two"))
      try sample.overwrite("film", other)
      try sample.overwrite("album/two", one)
      #expect(try sample.findings() == ["replaced album/two", "replaced film"])
    }
  }

  @Test func anOlderVersionUnderTheNewIndexIsTold() throws {
    try SampleVault.with { sample in
      let old = try sample.read("film")
      do {
        let opened = try sample.vault.open()
        try SampleVault.store(
          SampleVault.bytes(300_000), as: "film", in: opened.root, opened.keys)
      }
      #expect(try sample.findings().isEmpty)
      try sample.overwrite("film", old)
      #expect(try sample.findings() == ["replaced film"])
    }
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func photosExchangedWithTheirAttributesAreTold(_ names: NamesMode) throws {
    try SampleVault.with(names) { sample in
      for (one, other) in [("film", "album/two"), ("photo", "album/one")] {
        try sample.move(one, to: "aside")
        try sample.move(other, to: one)
        try sample.move("aside", to: other)
      }
      #expect(
        try sample.findings() == [
          "moved album/one", "moved album/two", "moved film", "moved photo",
        ])
    }
  }

  /// A small photo has no chunk index that would tell.
  @Test func aSmallPhotoThatWasOverwrittenWithAnotherIsTold() throws {
    try SampleVault.with { sample in
      try sample.overwrite("photo", try sample.read("album/one"))
      #expect(try sample.findings() == ["moved photo"])
    }
  }

  /// The limit of it: an older version, put back with all that belongs to it.
  @Test func anOlderVersionWithItsAttributesCantBeTold() throws {
    try SampleVault.with { sample in
      try FileManager.default.copyItem(atPath: sample.path("film"), toPath: sample.path("old"))
      for name in [SampleVault.index, SampleVault.seal] {
        try sample.setAttribute(name, of: "old", try sample.attribute(name, of: "film"))
      }
      do {
        let opened = try sample.vault.open()
        try SampleVault.store(
          SampleVault.bytes(300_000), as: "film", in: opened.root, opened.keys)
      }
      try sample.remove("film")
      try sample.move("old", to: "film")
      #expect(try sample.findings().isEmpty)
    }
  }

  @Test(arguments: [0, 15, -1]) func anAlteredSealIsTold(_ offset: Int) throws {
    try SampleVault.with { sample in
      var seal = try sample.attribute(SampleVault.seal, of: "photo")
      if offset < 0 { seal.removeAll() } else { seal[offset] ^= 1 }
      try sample.setAttribute(SampleVault.seal, of: "photo", seal)
      #expect(try sample.findings() == ["moved photo"])
    }
  }

  /// The size in it is for listings.
  @Test(arguments: [16, 23, -1]) func aSealWithAnotherSizeIsNoDamage(_ offset: Int) throws {
    try SampleVault.with { sample in
      var seal = try sample.attribute(SampleVault.seal, of: "photo")
      if offset < 0 { seal.removeLast() } else { seal[offset] ^= 1 }
      try sample.setAttribute(SampleVault.seal, of: "photo", seal)
      let report = try sample.check()
      #expect(report.findings.isEmpty && report.counts.unsealed == 1)
      _ = try sample.repair()
      #expect(try sample.check().counts.unsealed == 0)
    }
  }

  @Test func aMissingSealIsNoDamage() throws {
    try SampleVault.with { sample in
      try sample.setAttribute(SampleVault.seal, of: "photo", nil)
      let report = try sample.check()
      #expect(report.findings.isEmpty && report.counts.unsealed == 1)
    }
  }

  /// A sync program's copy has a name that nobody sealed.
  @Test func aConflictCopyWithItsAttributesIsNoDamage() throws {
    try SampleVault.with { sample in
      let copy =
        sample.path("photo").dropLast(".securedData".count) + " (conflicted copy).securedData"
      try FileManager.default.copyItem(atPath: sample.path("photo"), toPath: String(copy))
      let report = try sample.check()
      #expect(report.findings.isEmpty && report.counts.unsealed == 0)
    }
  }

  @Test(arguments: Expected.values.places) func sealsAreWhatHMACGives(
    _ place: Expected.Place
  ) throws {
    let mode: NamesMode = place.mode == "plain" ? .plain : .encrypted
    try TestVault.with(mode) { vault in
      let opened = try vault.open()
      let id = mode == .plain ? .plain : DirectoryID(Expected.bytes(Expected.values.directoryID))
      let directory = try VaultDirectory(
        fd: try Syscalls.duplicate(opened.root.fd.rawValue), id: id, isRoot: true,
        context: opened.root.context)
      let name = FileName(Expected.bytes(place.name))
      try SampleVault.store([1], as: "photo", in: opened.root, opened.keys)
      let file = try Syscalls.open(
        try #require(try opened.root.find(FileName("photo"))).stored.entry,
        in: opened.root.fd.rawValue, flags: O_RDONLY)
      let header = Header(
        mode: .password(opened.keys.salts), iv: Expected.bytes(place.iv))
      var status = stat()
      let second: Int64 = 1_000_000_000
      let part = (place.modified % second + second) % second
      status.st_mtim = timespec(
        tv_sec: Int((place.modified - part) / second), tv_nsec: Int(part))
      try PlaceSeal(header, PlaceSeal.Told(size: place.size, status), of: name, in: directory).put(
        on: file.rawValue)
      #expect(
        try Syscalls.extendedAttribute(file.rawValue, PlaceSeal.attribute)
          == Expected.bytes(place.seal))
    }
  }

  @Test(arguments: [0, 1, 4, 12, 28, 60, -1])
  func anAlteredIndexIsTold(_ offset: Int) throws {
    try SampleVault.with { sample in
      var index = try sample.attribute(SampleVault.index, of: "film")
      index[offset < 0 ? index.count + offset : offset] ^= 1
      try sample.setAttribute(SampleVault.index, of: "film", index)
      try sample.setAttribute(SampleVault.index, of: "photo", [1, 2, 3])
      #expect(try sample.findings() == ["index film", "index photo"])
    }
  }

  @Test func theIndexOfAnotherPhotoIsTold() throws {
    try SampleVault.with { sample in
      let index = try sample.attribute(SampleVault.index, of: "film")
      try sample.setAttribute(SampleVault.index, of: "photo", index)
      try sample.setAttribute(SampleVault.index, of: "album/two", index)
      #expect(try sample.findings() == ["replaced album/two", "replaced photo"])
    }
  }

  @Test func aMissingIndexIsNoDamage() throws {
    try SampleVault.with { sample in
      try sample.setAttribute(SampleVault.index, of: "film", nil)
      let report = try sample.check()
      #expect(report.findings.isEmpty && report.counts.unindexed == 1)
    }
  }

  @Test func aLongNameWithoutItsNameFileIsLost() throws {
    try SampleVault.with { sample in
      let stored = try #require(sample.stored["album/\(SampleVault.longName)"])
      try sample.flip(sample.companion, 0)
      #expect(try sample.findings() == ["companion \(stored)"])
      try sample.remove(sample.companion)
      let report = try sample.check()
      #expect(sample.findings(report) == ["companion \(stored)"])
      #expect(report.findings[0].path == nil && report.counts.files == 5)
      // The contents are looked at all the same.
      try sample.flip("album/\(SampleVault.longName)", 40)
      #expect(try sample.findings() == ["blob \(stored)"])
    }
  }

  @Test func aNameFromAnotherFolderIsLost() throws {
    try SampleVault.with { sample in
      let album = try #require(sample.stored["album"])
      let film = try #require(sample.stored["film"])
      try sample.move("film", to: "\(album)/\(film)")
      try sample.vault.write("AAAAAAAAAAAAAAAAAAAAAAAAAAAA.securedData", "no blob")
      #expect(
        try sample.findings() == [
          "blob AAAAAAAAAAAAAAAAAAAAAAAAAAAA.securedData", "name \(album)/\(film)",
        ])
    }
  }

  @Test(arguments: ["missing", "short", "long", "other"], ["album", ""])
  func aFolderWithoutItsIDIsTold(_ how: String, _ folder: String) throws {
    try SampleVault.with { sample in
      let place = folder.isEmpty ? "" : "\(try #require(sample.stored[folder]))/"
      let id = "\(place)directory.id"
      let bytes = try sample.read(id)
      switch how {
      case "missing": try sample.remove(id)
      case "short": try sample.overwrite(id, Array(bytes[..<8]))
      case "long": try sample.overwrite(id, [1] + bytes.reversed())
      default: try sample.overwrite(id, bytes.map { $0 ^ 0xA5 })
      }
      let report = try sample.check()
      #expect(sample.findings(report) == ["directory \(folder)"])
      #expect(report.findings[0].reason.contains("names of"))
      #expect(report.counts.files == 5 && report.counts.directories == 2)
      try sample.flip("album/one", 40)
      let stored = try #require(sample.stored["album/one"])
      #expect(try sample.findings().first == "blob \(stored)")
    }
  }

  @Test func anIDWithOneAlteredByteTellsItsNamesAllTheSame() throws {
    try SampleVault.with { sample in
      let id = "\(try #require(sample.stored["album"]))/directory.id"
      try sample.flip(id, 7)
      try sample.flip("album/one", 40)
      #expect(try sample.findings() == ["blob album/one", "directory album"])
    }
  }

  @Test func anEmptyFolderNeedsNoID() throws {
    try SampleVault.with { sample in
      let made = try sample.vault.open().root.makeDirectory(
        FileName("new"), mode: 0o755, owner: nil)
      try sample.remove("\(made.entry.text)/directory.id")
      #expect(try sample.findings().isEmpty)
    }
  }

  @Test func linkTargetsAreChecked() throws {
    try SampleVault.with { sample in
      try sample.remove("link")
      try FileManager.default.createSymbolicLink(
        atPath: sample.path("link"), withDestinationPath: "/etc/passwd")
      #expect(try sample.findings() == ["link link"])
    }
  }

  @Test func attributesAreChecked() throws {
    try SampleVault.with { sample in
      let attributes = ExtendedAttributes(keys: Expected.vaultKeys)
      let name = try attributes.storedName(FileName("user.title")).text
      var value = try sample.attribute(name, of: "photo")
      value[20] ^= 1
      try sample.setAttribute(name, of: "photo", value)
      try sample.setAttribute("user.photovault.x.AAAA", of: "album", [1])
      try sample.setAttribute("user.other", of: "film", [1])
      #expect(try sample.findings() == ["attribute album", "attribute photo"])
    }
  }

  @Test func whatIsNotTheVaultsIsToldApart() throws {
    try SampleVault.with { sample in
      try sample.vault.write("desktop.ini")
      try sample.vault.makeDirectory(".stfolder")
      try sample.vault.makeDirectory(".photovault-damaged")
      try sample.vault.write("vault (conflicted copy).json")
      try FileManager.default.createSymbolicLink(
        atPath: sample.path("latest"), withDestinationPath: "/etc/passwd")
      let report = try sample.check()
      #expect(
        sample.findings(report) == [
          "stranger .stfolder", "stranger desktop.ini", "stranger latest",
          "stranger vault (conflicted copy).json",
        ])
      #expect(!report.findings.contains { $0.isDamage })
    }
  }

  @Test func leftoversAndNamesOfNobodyAreNoDamage() throws {
    try SampleVault.with { sample in
      let album = try #require(sample.stored["album"])
      let orphan = "\(String(repeating: "A", count: 43)).long.name"
      try sample.vault.write(".photovault-aaaaaa.tmp", "half a blob")
      try sample.vault.write("\(album)/\(orphan)", "text")
      let expected = ["leftover .photovault-aaaaaa.tmp", "orphan \(album)/\(orphan)"]
      let report = try sample.check()
      #expect(sample.findings(report) == expected)
      #expect(!report.findings.contains { $0.isDamage })
      // A check changes nothing.
      #expect(try sample.findings() == expected)
      // While somebody writes they may be in use.
      let mounted = try sample.vault.open()
      try sample.vault.write(".photovault-bbbbbb.tmp", "half a blob")
      #expect(try sample.findings().isEmpty)
      _ = mounted
    }
  }

  @Test func everyNameOfADamagedFileIsTold() throws {
    try SampleVault.with { sample in
      do {
        let root = try sample.vault.open().root
        let second = try root.storedName(FileName("second"), kind: .blob)
        try Syscalls.link(
          FileName(try #require(sample.stored["film"])), in: root.fd.rawValue, as: second.entry,
          in: root.fd.rawValue)
      }
      let good = try sample.check()
      #expect(good.findings.isEmpty && good.counts.files == 6)
      try sample.flip("film", 100_000)
      #expect(try sample.findings() == ["blob film", "blob second"])
    }
  }

  @Test func whatTheDiskDoesNotGiveIsTold() throws {
    try SampleVault.with { sample in
      let check = try VaultCheck.open(at: sample.vault.path, repairing: false) { _ in
        Expected.vaultKeys
      }
      SyscallFaults.arm { $0 == .readDirectory ? .fail(.inputOutput) : nil }
      defer { SyscallFaults.disarm() }
      let report = try check.run()
      #expect(sample.findings(report) == ["unreadable "])
      #expect(report.findings[0].isDamage)
    }
  }

  @Test func aCheckCanBeStopped() throws {
    try SampleVault.with { sample in
      let check = try VaultCheck.open(at: sample.vault.path, repairing: false) { _ in
        Expected.vaultKeys
      }
      // Slow enough to be caught at it.
      SyscallFaults.arm { call in
        if call == .readDirectory { usleep(20_000) }
        return nil
      }
      defer { SyscallFaults.disarm() }
      #expect(try !check.run(everyMilliseconds: 0) { _, _ in false }.isComplete)
    }
  }

  @Test func progressEndsWithAllThereIs() throws {
    try SampleVault.with { sample in
      let check = try VaultCheck.open(at: sample.vault.path, repairing: false) { _ in
        Expected.vaultKeys
      }
      var last: VaultCheck.Progress?
      let report = try check.run(measuring: true) { progress, _ in
        last = progress
        return true
      }
      let end = try #require(last)
      #expect(end.counts == report.counts)
      #expect(end.expected?.files == 5)
      // Headers and HMACs are not counted as read.
      #expect(try #require(end.expected).bytes == report.counts.bytes + 5 * 66)
    }
  }

  private final class Writer: Sendable {
    let ends = Atomic(false)
    let rounds = Atomic(0)
    let failures = Mutex<[String]>([])
  }

  /// Beside a mount: photos come, change, move and go all the time.
  @Test func whatChangesMeanwhileIsNoDamage() throws {
    try SampleVault.with { sample in
      let opened = try sample.vault.open()
      let writer = Writer()
      let thread = try NativeThread(named: "writer") {
        while !writer.ends.load(ordering: .relaxed) {
          do { try Self.change(opened) } catch {
            writer.failures.withLock { $0.append("\(error)") }
          }
          writer.rounds.add(1, ordering: .relaxed)
        }
      }
      defer {
        writer.ends.store(true, ordering: .relaxed)
        thread.join()
      }
      let start = ContinuousClock.now
      var checks = 0
      while checks < 10 || writer.rounds.load(ordering: .relaxed) < 2 {
        #expect(try sample.findings() == [])
        checks += 1
        try #require(ContinuousClock.now - start < .seconds(120))
      }
      #expect(writer.failures.withLock { $0 } == [])
    }
  }

  private static func change(_ vault: Vault) throws {
    let root = vault.root
    try SampleVault.store(SampleVault.bytes(300_000), as: "film", in: root, vault.keys)
    let long = FileName(String(repeating: "m", count: 210))
    let stored = try SampleVault.store(SampleVault.bytes(10), as: long.text, in: root, vault.keys)
    try SampleVault.store(SampleVault.bytes(400_000), as: "film", in: root, vault.keys)
    try Syscalls.unlink(stored.entry, in: root.fd.rawValue)
    root.removeCompanion(stored)
    let directory = try root.makeDirectory(FileName("d"), mode: 0o755, owner: nil)
    try SampleVault.store([1], as: "x", in: try root.open(child: directory), vault.keys)
    let child = try root.open(child: directory)
    try Syscalls.unlink(
      try child.storedName(FileName("x"), kind: .blob).entry, in: child.fd.rawValue)
    try root.removeDirectory(directory)
  }
}
