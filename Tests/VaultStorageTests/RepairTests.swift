import Foundation
import Glibc
import Testing

@testable import Platform
@testable import VaultStorage

/// `check --repair`: what can be put right is, and nothing is ever lost by it.
@Suite struct RepairTests {
  /// Repairs, expects a clean vault behind it and as many blobs as before; returns what was done to
  /// what, such as "mended index film".
  private func repaired(_ sample: SampleVault) throws -> [String] {
    let count = try sample.blobCount()
    let report = try sample.repair()
    #expect(try sample.blobCount() == count)
    let after = try sample.check()
    #expect(after.findings.filter { $0.kind != .stranger }.isEmpty, "\(sample.findings(after))")
    #expect(after.counts.unindexed == 0 && report.counts.unindexed == 0)
    #expect(after.counts.setAside == report.counts.setAside)
    return report.findings.map { finding in
      let word =
        switch finding.repair {
        case .none: "none"
        case .mended: "mended"
        case .renamed: "renamed"
        case .setAside: "set aside"
        case .failed(let why): "failed (\(why))"
        }
      return "\(word) \(finding.kind.rawValue) \((finding.path ?? finding.storedPath).text)"
    }.sorted()
  }

  private func withoutDamage(_ names: String...) -> [String: Int] {
    SampleVault.everything.filter { !names.contains($0.key) }
  }

  @Test func aGoodVaultStaysAsItIs() throws {
    try SampleVault.with { sample in
      let before = try FileManager.default.subpathsOfDirectory(atPath: sample.vault.path).sorted()
      #expect(try repaired(sample) == [])
      #expect(
        try FileManager.default.subpathsOfDirectory(atPath: sample.vault.path).sorted() == before)
      #expect(try sample.shown() == SampleVault.everything)
    }
  }

  @Test func indexesAreMadeAnew() throws {
    try SampleVault.with { sample in
      let index = try sample.attribute(SampleVault.index, of: "film")
      try sample.setAttribute(SampleVault.index, of: "film", nil)
      try sample.setAttribute(SampleVault.index, of: "album/two", index)
      try sample.setAttribute(SampleVault.index, of: "photo", index)
      chmod(sample.path("film"), 0o400)
      #expect(try repaired(sample) == ["mended replaced album/two", "mended replaced photo"])
      #expect(try sample.attribute(SampleVault.index, of: "film") == index)
      var status = stat()
      #expect(stat(sample.path("film"), &status) == 0 && status.st_mode & 0o777 == 0o400)
      #expect(throws: Errno.self) { try sample.attribute(SampleVault.index, of: "photo") }
      #expect(try sample.shown() == SampleVault.everything)
    }
  }

  @Test func sealsAreMadeAnew() throws {
    try SampleVault.with { sample in
      try sample.move("film", to: "aside")
      try sample.move("album/two", to: "film")
      try sample.move("aside", to: "album/two")
      try sample.setAttribute(SampleVault.seal, of: "photo", nil)
      chmod(sample.path("photo"), 0o400)
      #expect(try repaired(sample) == ["mended moved album/two", "mended moved film"])
      #expect(try sample.check().counts.unsealed == 0)
      var status = stat()
      #expect(stat(sample.path("photo"), &status) == 0 && status.st_mode & 0o777 == 0o400)
    }
  }

  @Test(arguments: [NamesMode.encrypted, .plain])
  func whatCantBeReadIsSetAsideUnderItsStoredName(_ names: NamesMode) throws {
    try SampleVault.with(names) { sample in
      try sample.flip("film", 70_000)
      try sample.flip("album/one", 40)
      let long = "album/\(SampleVault.longName)"
      try sample.flip(long, -1)
      let damaged = try sample.read("film")
      #expect(
        try repaired(sample)
          == [
            "set aside blob album/one", "set aside blob \(long)", "set aside blob film",
          ].sorted())
      #expect(try sample.shown() == withoutDamage("film", "album/one", long))
      #expect(try sample.check().counts.setAside == 3)
      let place = ".photovault-damaged/1/"
      #expect(try sample.read(place + sample.stored["film"]!) == damaged)
      if names == .encrypted {
        // What their names need lies beside them.
        for folder in ["", sample.stored["album"]! + "/"] {
          let id = folder + "directory.id"
          #expect(try sample.read(place + id) == sample.read(id))
        }
        _ = try sample.read(place + sample.companion)
        #expect(!FileManager.default.fileExists(atPath: sample.path(sample.companion)))
      }
      let note = String(decoding: try sample.read(place + "note.txt"), as: UTF8.self)
      #expect(note.contains(sample.stored["album/one"]!))
      #expect(names == .plain || !note.contains("film"))
      // The next one gets a folder of its own.
      try sample.flip("photo", 40)
      #expect(try repaired(sample) == ["set aside blob photo"])
      #expect(try sample.read(".photovault-damaged/2/" + sample.stored["photo"]!).count > 1000)
    }
  }

  @Test func linksAndAttributesAreSetAside() throws {
    try SampleVault.with { sample in
      try sample.remove("link")
      try FileManager.default.createSymbolicLink(
        atPath: sample.path("link"), withDestinationPath: "/etc/passwd")
      try sample.setAttribute("user.photovault.x.AAAA", of: "album", [1, 2])
      let name = try ExtendedAttributes(keys: Expected.vaultKeys)
        .storedName(FileName("user.title")).text
      try sample.setAttribute(name, of: "photo", [7])
      #expect(
        try repaired(sample) == [
          "set aside attribute album", "set aside attribute photo", "set aside link link",
        ])
      #expect(try sample.shown() == SampleVault.everything)
      let kept = (1...2).map { try? sample.read(".photovault-damaged/1/attribute-\($0)") }
      #expect(kept.contains([1, 2]) && kept.contains([7]))
    }
  }

  /// One altered byte, what was put behind it, a copy in another file, a file that was not finished.
  @Test(arguments: ["altered", "longer", "moved", "leftover"])
  func nameFilesAreFoundAgain(_ how: String) throws {
    try SampleVault.with { sample in
      let album = sample.stored["album"]!
      switch how {
      case "altered": try sample.flip(sample.companion, 30)
      case "longer": try sample.overwrite(sample.companion, sample.read(sample.companion) + [10])
      case "moved": try sample.move(sample.companion, to: "\(album)/x (conflicted copy).name")
      default: try sample.move(sample.companion, to: "\(album)/.photovault-abcdef.tmp")
      }
      #expect(
        try repaired(sample).contains(
          "mended companion \(sample.stored["album/\(SampleVault.longName)"]!)"))
      #expect(try sample.shown() == SampleVault.everything)
    }
  }

  @Test func whatHasLostItsNameGetsAnother() throws {
    try SampleVault.with { sample in
      let album = sample.stored["album"]!
      let long = "album/\(SampleVault.longName)"
      try sample.overwrite(sample.companion, Array("nothing".utf8))
      try sample.move("film", to: "\(album)/\(sample.stored["film"]!)")
      try sample.move("album", to: String(album.reversed()))
      let done = try repaired(sample)
      #expect(done.count == 3 && done.allSatisfy { $0.hasPrefix("renamed ") }, "\(done)")
      let shown = try sample.shown()
      #expect(
        Set(shown.keys) == [
          "photo", "recovered folder 1/one", "recovered folder 1/two",
          "recovered folder 1/recovered file 1", "recovered folder 1/recovered file 2",
        ])
      #expect(shown.values.sorted() == SampleVault.everything.values.sorted())
      let note = String(
        decoding: try sample.read(".photovault-damaged/1/note.txt"), as: UTF8.self)
      for old in [sample.stored["film"]!, sample.stored[long]!] {
        #expect(note.contains(String(old.split(separator: "/").last ?? "")))
      }
    }
  }

  @Test(arguments: ["altered", "longer", "copy"], ["album", ""])
  func aFolderGetsItsIDBack(_ how: String, _ folder: String) throws {
    try SampleVault.with { sample in
      let place = folder.isEmpty ? "" : "\(sample.stored[folder]!)/"
      let id = place + "directory.id"
      let bytes = try sample.read(id)
      switch how {
      case "altered": try sample.flip(id, 15)
      case "longer": try sample.overwrite(id, bytes + [0x0A])
      default: try sample.move(id, to: place + "directory (conflicted copy).id")
      }
      try sample.flip("photo", 50)
      let done = try repaired(sample).filter { !$0.hasPrefix("none stranger ") }
      #expect(done == ["mended directory \(folder)", "set aside blob photo"])
      #expect(try sample.read(id) == bytes)
      #expect(try sample.shown() == withoutDamage("photo"))
    }
  }

  @Test(arguments: ["missing", "garbage", "folder"], ["album", ""])
  func aFolderWhoseIDIsLostGetsAnother(_ how: String, _ folder: String) throws {
    try SampleVault.with { sample in
      let id = (folder.isEmpty ? "" : "\(sample.stored[folder]!)/") + "directory.id"
      try sample.remove(id)
      if how == "garbage" { try sample.vault.write(id, "0123456789abcdef") }
      if how == "folder" { try sample.vault.makeDirectory(id) }
      let done = try repaired(sample)
      #expect(done.contains("renamed directory \(folder)"), "\(done)")
      #expect(try sample.shown().values.sorted() == SampleVault.everything.values.sorted())
      if folder == "album", how != "missing" {
        #expect(
          FileManager.default.fileExists(atPath: sample.path(".photovault-damaged/1/\(id)")))
      }
    }
  }

  @Test func leftoversGoAndStrangersStay() throws {
    try SampleVault.with { sample in
      let orphan = "\(String(repeating: "A", count: 43)).long.name"
      try sample.remove("album/\(SampleVault.longName)")
      try sample.vault.write(".photovault-aaaaaa.tmp", "half a blob")
      try sample.vault.write(orphan, "text")
      try sample.vault.write("desktop.ini", "text")
      #expect(
        try repaired(sample) == [
          "mended leftover .photovault-aaaaaa.tmp", "mended orphan \(sample.companion)",
          "none stranger desktop.ini", "set aside orphan \(orphan)",
        ])
      #expect(try sample.read("desktop.ini").count == 4)
    }
  }

  @Test func aMountedVaultIsRefused() throws {
    try SampleVault.with { sample in
      let mounted = try sample.vault.open()
      do {
        _ = try sample.repair()
        Issue.record("repaired")
      } catch StorageError.alreadyOpen {}
      #expect(try sample.findings().isEmpty)
      withExtendedLifetime(mounted) {}
    }
  }

  @Test func whatWasSetAsideGoesWithTheVault() throws {
    try SampleVault.with { sample in
      try sample.flip("film", 70_000)
      _ = try repaired(sample)
      let kept = try TestVault.onceClosed {
        try Vault.remove(at: sample.vault.path, id: Expected.bytes(Expected.values.vaultID))
      }
      #expect(kept == 0)
      #expect(!FileManager.default.fileExists(atPath: sample.vault.path))
    }
  }

  /// Whatever call fails or is the last, in turns: nothing is lost, and the next repair ends it.
  @Test(arguments: Faults.Kind.allCases)
  func anInterruptedRepairLosesNothing(_ kind: Faults.Kind) throws {
    var number = kind == .failure ? 0 : 1
    var wasReached = true
    while wasReached {
      try SampleVault.with { sample in
        try sample.flip("film", 70_000)
        try sample.setAttribute(SampleVault.index, of: "album/two", [1])
        try sample.overwrite(sample.companion, Array("nothing".utf8))
        // An altered one would be searched for each time, which takes longer than all the rest.
        try sample.overwrite("\(sample.stored["album"]!)/directory.id", [])
        let count = try sample.blobCount()
        do {
          let check = try sample.openForRepair()
          let report = try check.run()
          wasReached = Faults.failing(number, kind: kind) { _ = try? check.repair(report) }
        }
        #expect(try sample.blobCount() == count, "after \(number) calls")
        _ = try sample.repair()
        #expect(try sample.blobCount() == count, "after \(number) calls")
        let after = try sample.check()
        #expect(after.findings.isEmpty, "after \(number) calls: \(sample.findings(after))")
        #expect(
          try sample.shown().values.sorted() == withoutDamage("film").values.sorted(),
          "after \(number) calls")
      }
      number += 2
    }
    #expect(number > 50)
  }
}
