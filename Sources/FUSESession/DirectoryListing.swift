import CFUSE
import Platform
import VaultFileSystem

/// The answer to one readdirplus: entries packed into the bytes the kernel asked for.
struct DirectoryListing: ~Copyable {
  private let buffer: UnsafeMutableRawBufferPointer
  private var filled = 0
  /// Whose lookup counts the listing raises when it is delivered.
  private(set) var nodes: [NodeID] = []

  init(into buffer: UnsafeMutableRawBufferPointer) { self.buffer = buffer }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: buffer[..<filled]) }

  /// False if `entry` does not fit; its lookup is then not counted here.
  mutating func add(
    _ entry: DirectoryEntry, _ request: borrowing Request
  ) -> Bool {
    var parameters =
      entry.entry.map { fuse_entry_param($0) }
      ?? fuse_entry_param(inode: entry.inode, type: entry.type)
    let rest = UnsafeMutableRawBufferPointer(rebasing: buffer[filled...])
    let size = request.add(entry.name, &parameters, nextOffset: entry.nextOffset, to: rest)
    guard size <= rest.count else { return false }
    filled += size
    if let node = entry.entry?.nodeID { nodes.append(node) }
    return true
  }
}
