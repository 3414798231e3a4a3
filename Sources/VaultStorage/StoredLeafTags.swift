import Platform
import SecuredData

/// The tags of all leaves of a blob whose chunks have several, on disks that hold them: without
/// them one byte costs a look at a whole chunk. The xattrs `user.photovault.leaves.0`, `.1` ... of
/// 512 tags each.
///
/// Nothing in them is trusted: who reads them compares the tag that they make together with the
/// chunk's own, which the chunk index holds.
enum StoredLeafTags {
  static let prefix: StaticString = "user.photovault.leaves."
  /// 8 KiB: ext4 takes 4 KiB in all, and so none; btrfs 16 KiB each, xfs and tmpfs 64 KiB.
  private static let pieceTagCount = 512
  /// Blobs of 4 GiB. The names of all attributes have to fit into the 64 KiB of listxattr(2).
  private static let pieceLimit = 128

  private static func attribute(_ piece: Int) -> FileName { FileName("\(prefix)\(piece)") }

  /// Does nothing where the disk has no room for them.
  static func store(_ tags: [GMAC.Tag], on file: CInt) {
    for (piece, value) in pieces(tags).enumerated() {
      do throws(Errno) { try BlobAttribute.set(attribute(piece), value, on: file) } catch { return }
    }
  }

  static func remove(from file: CInt) throws(Errno) {
    for name in (try? Syscalls.extendedAttributeNames(file)) ?? [] where name.hasPrefix(prefix) {
      try BlobAttribute.remove(name, from: file)
    }
  }

  /// nil where they are not all there.
  static func load(_ leaves: Range<Int>, from file: CInt) -> [GMAC.Tag]? {
    var tags: [GMAC.Tag] = []
    tags.reserveCapacity(leaves.count)
    for piece in (leaves.lowerBound / pieceTagCount)...((leaves.upperBound - 1) / pieceTagCount) {
      guard let value = try? Syscalls.extendedAttribute(file, attribute(piece)) else { return nil }
      let first = piece * pieceTagCount
      for leaf in max(leaves.lowerBound, first)..<min(leaves.upperBound, first + pieceTagCount) {
        let start = GMAC.Tag.byteCount * (leaf - first)
        guard start + GMAC.Tag.byteCount <= value.count else { return nil }
        tags.append(GMAC.Tag(value[start..<(start + GMAC.Tag.byteCount)]))
      }
    }
    return tags
  }

  /// Whether what is there of them is what `tags`, those of all leaves, make.
  static func agree(with tags: [GMAC.Tag], on file: CInt) -> Bool {
    pieces(tags).enumerated().allSatisfy { piece, value in
      (try? Syscalls.extendedAttribute(file, attribute(piece))).map { $0 == value } ?? true
    }
  }

  private static func pieces(_ tags: [GMAC.Tag]) -> [[UInt8]] {
    guard ChunkLayout.level(leafCount: tags.count) > 0, tags.count <= pieceLimit * pieceTagCount
    else { return [] }
    return stride(from: 0, to: tags.count, by: pieceTagCount).map { first in
      var value: [UInt8] = []
      value.reserveCapacity(pieceTagCount * GMAC.Tag.byteCount)
      for tag in tags[first..<min(first + pieceTagCount, tags.count)] { value.append(tag) }
      return value
    }
  }
}

extension GMAC.Tag {
  static let byteCount = 16

  /// The first 16 of `bytes`.
  init(_ bytes: some Sequence<UInt8>) {
    self.init()
    withUnsafeMutableBytes(of: &self) { target in
      for (index, byte) in bytes.prefix(Self.byteCount).enumerated() { target[index] = byte }
    }
  }
}

extension [UInt8] {
  mutating func append(_ tag: GMAC.Tag) {
    Swift.withUnsafeBytes(of: tag) { append(contentsOf: $0) }
  }
}
