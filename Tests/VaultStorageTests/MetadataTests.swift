import Testing

@testable import Platform
@testable import VaultStorage

@Suite struct MetadataTests {
  private let attributes = ExtendedAttributes(keys: Expected.vaultKeys)

  @Test func linkTargetsAreThoseOfTheSecondImplementation() throws {
    try TestVault.with(.encrypted) { vault in
      let root = try vault.open().root
      for link in Expected.values.links {
        let target = FileName(Expected.bytes(link.target))
        let stored = FileName(Expected.bytes(link.stored))
        #expect(try root.encodeLinkTarget(target) == stored)
        #expect(try root.decodeLinkTarget(stored) == target)
      }
      #expect(throws: StorageError.self) {
        try root.encodeLinkTarget(FileName([UInt8](repeating: 1, count: 3056)))
      }
      for foreign in ["", "A", "/etc/passwd", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] {
        #expect(throws: StorageError.self) { try root.decodeLinkTarget(FileName(foreign)) }
      }
    }
  }

  @Test func plainVaultsKeepLinkTargets() throws {
    try TestVault.with(.plain) { vault in
      let root = try vault.open().root
      let target = FileName("../somewhere/else")
      #expect(try root.encodeLinkTarget(target) == target)
      #expect(try root.decodeLinkTarget(target) == target)
      #expect(throws: StorageError.self) {
        try root.encodeLinkTarget(FileName([UInt8](repeating: 1, count: 4096)))
      }
    }
  }

  @Test func attributesAreThoseOfTheSecondImplementation() throws {
    for expected in Expected.values.attributes {
      let name = FileName(Expected.bytes(expected.name))
      let value = Expected.bytes(expected.value)
      let storedName = FileName(Expected.bytes(expected.storedName))
      let storedValue = Expected.bytes(expected.storedValue)
      #expect(try attributes.storedName(name) == storedName)
      #expect(try attributes.name(stored: storedName) == name)
      #expect(
        try attributes.encode(value: value, name: name, nonce: Expected.bytes(expected.nonce))
          == storedValue)
      #expect(try attributes.decode(stored: storedValue, name: name) == value)
      #expect(storedValue.count == value.count + ExtendedAttributes.valueOverhead)
    }
  }

  @Test func equalValuesDontShow() throws {
    let name = FileName("user.a")
    let first = try attributes.encode(value: [1, 2], name: name)
    let second = try attributes.encode(value: [1, 2], name: name)
    #expect(first != second)
    #expect(try attributes.decode(stored: first, name: name) == [1, 2])
    #expect(try attributes.decode(stored: second, name: name) == [1, 2])
  }

  @Test func alteredAndForeignValuesAreRefused() throws {
    let name = FileName("user.a")
    let stored = try attributes.encode(value: [1, 2], name: name)
    for index in stored.indices {
      var altered = stored
      altered[index] ^= 1
      #expect(throws: StorageError.self) { try attributes.decode(stored: altered, name: name) }
    }
    for count in 0..<stored.count {
      #expect(throws: StorageError.self) {
        try attributes.decode(stored: Array(stored[..<count]), name: name)
      }
    }
    #expect(throws: StorageError.self) {
      try attributes.decode(stored: stored, name: FileName("user.b"))
    }
  }

  @Test func attributesOfOthersAreNotOurs() throws {
    for foreign in [
      "user.photovault.chunks", "user.xdg.origin.url", "security.selinux", "user.photovault.x.",
      "user.photovault.x.AAAA", "user.photovault.x.*",
    ] { #expect(try attributes.name(stored: FileName(foreign)) == nil) }
  }

  @Test func tooLongAttributeNamesAreOutOfRange() throws {
    _ = try attributes.storedName(FileName([UInt8](repeating: 1, count: 161)))
    for count in [0, 162, 255] {
      #expect(throws: StorageError.self) {
        try attributes.storedName(FileName([UInt8](repeating: 1, count: count)))
      }
    }
  }
}
