import Foundation
import Platform
import Testing

@Suite struct SecretBytesTests {
  private let marker = "the marker of a secret"

  private func makeSecret() throws -> SecretBytes {
    var bytes = Array(marker.utf8)
    return try SecretBytes(wiping: &bytes)
  }

  @Test func theyHoldWhatWasPutIn() throws {
    let secret = try makeSecret()
    let bytes = secret.withUnsafeBytes { Array($0) }
    let (count, isEmpty) = (secret.count, secret.isEmpty)
    #expect(bytes == Array(marker.utf8))
    #expect(count == bytes.count)
    #expect(!isEmpty)
    try bytes.withUnsafeBytes {
      let copied = try SecretBytes(copying: $0).withUnsafeBytes { Array($0) }
      #expect(copied == bytes)
    }
  }

  @Test func emptyOnesAndNewOnesAreZero() throws {
    let empty = try SecretBytes(count: 0).withUnsafeBytes { Array($0) }
    #expect(empty.isEmpty)
    let zeroed = try SecretBytes(count: 5000).withUnsafeBytes { Array($0) }
    #expect(zeroed == [UInt8](repeating: 0, count: 5000))
    var nothing: [UInt8] = []
    let taken = try SecretBytes(wiping: &nothing).count
    #expect(taken == 0)
  }

  @Test func takingBytesWipesTheirSource() throws {
    var source = Array(marker.utf8)
    let secret = try SecretBytes(wiping: &source)
    #expect(source == [UInt8](repeating: 0, count: marker.utf8.count))
    let bytes = secret.withUnsafeBytes { Array($0) }
    #expect(bytes == Array(marker.utf8))
  }

  @Test func truncatingWipesTheRest() throws {
    var secret = try makeSecret()
    let whole = secret.withUnsafeBytes { $0 }
    secret.truncate(to: 3)
    let count = secret.count
    #expect(count == 3)
    #expect(whole.prefix(3).elementsEqual("the".utf8))
    #expect(whole.dropFirst(3).allSatisfy { $0 == 0 })
  }

  @Test func wipingOverwritesABuffer() {
    var bytes = Array(marker.utf8)
    bytes.withUnsafeMutableBytes { SecretBytes.wipe($0) }
    #expect(bytes.allSatisfy { $0 == 0 })
    SecretBytes.wipe(UnsafeMutableRawBufferPointer(start: nil, count: 0))
  }

  @Test func aCopyHasAMappingOfItsOwn() throws {
    let secret = try makeSecret()
    var copy = try secret.copy()
    copy.withUnsafeMutableBytes { $0[0] = UInt8(ascii: "T") }
    let starts = secret.withUnsafeBytes { first in
      copy.withUnsafeBytes { [first[0], $0[0], $0[1]] }
    }
    #expect(starts == Array("tTh".utf8))
  }

  /// They can't be interpolated at all; what holds them can.
  @Test func describingTheirOwnerSaysNothing() throws {
    final class Owner {
      let secret: SecretBytes
      init(_ secret: consuming SecretBytes) { self.secret = secret }
    }
    let owner = Owner(try makeSecret())
    var text = "\(owner) \(String(reflecting: owner))"
    dump(owner, to: &text)
    #expect(!text.contains(marker))
    #expect(!text.contains("116, 104, 101"))  // "the" as numbers
    let count = owner.secret.count
    #expect(count == marker.utf8.count)
  }

  /// Source: proc(5), VmFlags: lo = locked, dd = not in core dumps, wf = zeroed in children.
  @Test(arguments: [1, 4096, 4097, 100_000])
  func everyPageIsLockedAndLeftOutOfDumps(_ count: Int) throws {
    var secret = try SecretBytes(count: count)
    let (first, last) = secret.withUnsafeMutableBytes {
      (UInt(bitPattern: $0.baseAddress), UInt(bitPattern: $0.baseAddress) + UInt($0.count) - 1)
    }
    for address in [first, last] {
      let flags = try #require(try Mapping.of(address)?.flags)
      #expect(flags.isSuperset(of: ["lo", "dd", "wf"]))
    }
    let countBehind = secret.count
    #expect(countBehind == count)
  }

  @Test func theyAreUnmappedInTheEnd() throws {
    let pages = 64  // enough that the next mapping isn't put into the hole by chance
    func address() throws -> UInt {
      let secret = try SecretBytes(count: pages * 4096)
      return secret.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    }
    let gone = try address()
    #expect(try Mapping.of(gone)?.flags.contains("wf") != true)
  }
}

/// A mapping of this process. Source: proc(5), smaps.
private struct Mapping {
  let flags: Set<String>

  static func of(_ address: UInt) throws -> Mapping? {
    let file = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/proc/self/smaps"))
    let text = String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self)
    var isInside = false
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      let ends = words.first?.split(separator: "-").compactMap { UInt($0, radix: 16) } ?? []
      if ends.count == 2 { isInside = (ends[0]..<ends[1]).contains(address) }
      if isInside, words.first == "VmFlags:" {
        return Mapping(flags: Set(words.dropFirst().map(String.init)))
      }
    }
    return nil
  }
}
