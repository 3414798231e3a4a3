package import Synchronization

/// Pieces of blobs that this process has put on the disk so far: for who has to tell work that takes
/// long from work that hangs.
package enum WriteProgress {
  package static let pieceCount = Atomic<Int>(0)
}
