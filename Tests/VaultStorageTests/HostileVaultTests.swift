import Foundation
import Fuzzing
import Glibc
import Testing

@testable import Platform
@testable import SecuredData
@testable import VaultStorage

/// The disk is in the hands of somebody who has no key but knows this program.
@Suite(.timeLimit(.minutes(5))) struct HostileVaultTests {
  // MARK: vault.json

  private static let genuine = Expected.values.superblocks["encrypted"] ?? ""

  @Test(
    "what vault.json says twice, in other kinds or in numbers beyond all bounds opens nothing else",
    arguments: [
      genuine.replacing("{", with: "{\"names\":\"plain\","),
      genuine.replacing("}", with: ",\"names\":\"plain\"}"),
      genuine.replacing("}", with: ",\"format\":2}"),
      genuine.replacing("{", with: "{\"id\":\"00000000000000000000000000000000\","),
      genuine.replacing("}", with: ",\"encryptionSalt\":\"0000000000000000\"}"),
      genuine.replacing("\"format\":1", with: "\"format\":1e308"),
      genuine.replacing("\"format\":1", with: "\"format\":18446744073709551617"),
      genuine.replacing("\"format\":1", with: "\"format\":-9223372036854775809"),
      genuine.replacing("\"format\":1", with: "\"format\":1.0000000000000001"),
      genuine.replacing("\"format\":1", with: "\"format\":" + String(repeating: "9", count: 3000)),
      genuine.replacing("\"format\":1", with: "\"format\":[1]"),
      genuine.replacing("\"encrypted\"", with: "{\"encrypted\":null}"),
      genuine.replacing("\"encrypted\"", with: "\"encrypted\\u0000\""),
      genuine.replacing("\"mac\":\"", with: "\"mac\":\"0"),
      "\u{FEFF}" + genuine, genuine + genuine, genuine + "\0",
      String(repeating: "{\"a\":", count: 800), String(repeating: "[", count: 4096),
    ])
  func vaultJSON(_ text: String) throws {
    try TestVault.with(.encrypted) { vault in
      try vault.write("vault.json", text)
      do throws(StorageError) {
        let opened = try Vault.open(at: vault.path, readOnly: true) { _ in Expected.vaultKeys }
        // Then it says, to this reader, what was written.
        #expect(opened.names == .encrypted)
        #expect(opened.id == Expected.bytes(Expected.values.vaultID))
      } catch {
        switch error {
        case .notAVault, .wrongRecoveryKey, .unsupportedFormat: break
        default: Issue.record("\(error)")
        }
      }
    }
  }

  @Test func aVaultJSONOfAGigabyteIsNotRead() throws {
    try TestVault.with(.encrypted) { vault in
      #expect(truncate(vault.path + "/vault.json", 1 << 30) == 0)
      do {
        _ = try vault.open()
        Issue.record("opened")
      } catch StorageError.notAVault {}
    }
  }

  @Test("vault.json as something that is no file opens nothing", arguments: Plant.allCases)
  func vaultJSONIsNoFile(_ plant: Plant) throws {
    try TestVault.with(.encrypted) { vault in
      try vault.remove("vault.json")
      try plant.put(at: vault.path + "/vault.json")
      do {
        _ = try vault.open()
        Issue.record("opened")
      } catch StorageError.notAVault {}
    }
  }

  // MARK: What is no file

  enum Plant: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case fifo, socket, zeros, terminal, link, deadLink, directory

    var testDescription: String { rawValue }

    static let outside = "/proc/version"

    func put(at path: String) throws {
      switch self {
      case .fifo: #expect(mkfifo(path, 0o644) == 0)
      // The node is what counts; nobody listens.
      case .socket: #expect(mknod(path, S_IFSOCK | 0o644, 0) == 0)
      case .zeros: #expect(mknod(path, S_IFCHR | 0o644, 1 << 8 | 5) == 0)  // /dev/zero
      case .terminal: #expect(mknod(path, S_IFCHR | 0o644, 5 << 8) == 0)  // /dev/tty
      case .link: #expect(symlink(Self.outside, path) == 0)
      case .deadLink: #expect(symlink("nowhere", path) == 0)
      case .directory: #expect(mkdir(path, 0o755) == 0)
      }
    }
  }

  /// Where it is put, and what of the sample can't be read then.
  static let places: [(place: String, lost: [String])] = [
    ("photo", ["photo"]), ("film", ["film"]), ("album/one", ["album/one"]), ("link", []),
    ("album", ["album/one", "album/two", "album/\(SampleVault.longName)"]),
    ("companion", ["album/\(SampleVault.longName)"]),
    ("album/directory.id", ["album/one", "album/two", "album/\(SampleVault.longName)"]),
  ]

  @Test(
    "what was put in the place of something of the vault's is neither waited for, nor read, nor followed",
    arguments: Plant.allCases, [0, 1, 2, 3, 4, 5, 6])
  func planted(_ plant: Plant, _ number: Int) throws {
    let (place, lost) = Self.places[number]
    try SampleVault.with { sample in
      let inner = sample.stored["album"] ?? ""
      let path =
        switch place {
        case "companion": sample.vault.path + "/" + sample.companion
        case "album/directory.id": sample.vault.path + "/\(inner)/directory.id"
        default: sample.path(place)
        }
      try FileManager.default.removeItem(atPath: path)
      try plant.put(at: path)
      let findings = try sample.findings()
      if !(place == "link" || place == "album" || plant == .directory) {
        #expect(!findings.isEmpty)
      }
      let expected = SampleVault.everything.filter { !lost.contains($0.key) }
      if place == "album/directory.id" {
        // The folder can't be opened, and says so.
        #expect(throws: StorageError.self) { try sample.shown() }
        #expect(findings.contains("directory album"), "\(findings)")
      } else {
        #expect(try sample.shown() == expected, "\(findings)")
      }
      // A repair neither.
      _ = try sample.repair()
      for (name, size) in expected where place != "album/directory.id" {
        #expect(try sample.shown()[name] == size)
      }
    }
  }

  // MARK: Names, depth, indexes

  @Test("names of any bytes show as one name or none", arguments: [NamesMode.encrypted, .plain])
  func names(_ mode: NamesMode) throws {
    try SampleVault.with(mode) { sample in
      let before = try sample.shown()
      let stem = (sample.stored["photo"] ?? "").dropLast(".securedData".count)
      let bombs: [[UInt8]] =
        [
          String(repeating: "A", count: 255), String(repeating: "A", count: 243) + ".securedData",
          "..%2f..%2fetc%2fpasswd.securedData", "..\\..\\x.securedData", "...securedData",
          "\(stem)\u{202E}gpj.securedData", "\(stem)\n.securedData", "\(stem) .securedData",
          "\(stem)" + String(repeating: "=", count: 100) + ".securedData",
          String(repeating: "_", count: 43) + ".long.securedData",
          String(repeating: "_", count: 43) + ".long.name", "-rf", "~root", "$(reboot)",
        ].map { Array($0.utf8) } + [
          [0xFF, 0xFE, 0x80] + Array(".securedData".utf8), [0xC0, 0xAF] + Array(stem.utf8),
          Array(stem.utf8) + [0xED, 0xA0, 0x80] + Array(".securedData".utf8),
        ]
      let root = try Syscalls.open(FileName(sample.vault.path), flags: O_RDONLY | O_DIRECTORY)
      for bomb in bombs {
        try SmallFile.write(
          [UInt8](repeating: 3, count: 82), as: FileName(bomb), in: root.rawValue, durably: false)
      }
      let opened = try sample.vault.open(readOnly: true)
      let shown = try opened.root.shownNames()
      #expect(Set(shown).count == shown.count)
      for name in shown {
        #expect(BlobName.isPossible(name.bytes), "\(name)")
        #expect(try opened.root.find(name) != nil, "\(name)")
      }
      for name in before.keys where !name.contains("/") {
        #expect(shown.contains(FileName(name)))
      }
      _ = try sample.check()
    }
  }

  @Test func directoriesDeeperThanAnyPathAreLookedThrough() throws {
    try TestVault.with(.plain) { vault in
      let depth = 3_000  // times two bytes, above PATH_MAX
      var current = try Syscalls.open(FileName(vault.path), flags: O_RDONLY | O_DIRECTORY)
      for _ in 0..<depth {
        try Syscalls.makeDirectory(FileName("d"), in: current.rawValue, mode: 0o755)
        current = try Syscalls.open(
          FileName("d"), in: current.rawValue, flags: O_RDONLY | O_DIRECTORY)
      }
      let check = try VaultCheck.open(at: vault.path, repairing: false) { _ in
        Expected.vaultKeys
      }
      #expect(try check.run().counts.directories == depth + 1)
      // rm(1) can, where Foundation's paths end.
      #expect(system("rm -r '\(vault.path)/d'") == 0)
    }
  }

  @Test("no altered chunk index changes a byte of what is read, or keeps it from being read")
  func chunkIndexes() throws {
    try SampleVault.with { sample in
      let index = try sample.attribute(SampleVault.index, of: "film")
      var mutator = Mutator(seed: 7)
      for round in 0..<40 {
        var altered = index
        switch round {
        case 0: altered = []
        case 1: altered = [1]
        case 2: altered = [UInt8](repeating: 255, count: index.count)
        case 3: altered = try sample.attribute(SampleVault.index, of: "album/two")
        default: altered = mutator.mutated([index], dictionary: [])
        }
        if altered.isEmpty, round > 0 { continue }
        try sample.setAttribute(SampleVault.index, of: "film", Array(altered.prefix(3500)))
        #expect(try sample.shown() == SampleVault.everything, "seed 7, round \(round)")
      }
    }
  }
}
