import CFUSE
import Platform
import VaultFileSystem

/// Tells the kernel to forget what it cached, on a thread of its own: a notification may wait for
/// a lock of the kernel's that is held until a handler replies.
final class Invalidation: KernelCache, @unchecked Sendable {
  private enum Work {
    case node(NodeID)
    case entry(FileName, parent: NodeID)
  }

  private struct State {
    var queue: [Work] = []
    var isStopped = false
  }

  /// libfuse's session, which outlives the thread.
  private let session: OpaquePointer
  private let state = ConditionLock(State())
  /// Set once, before anybody else knows this object.
  private var thread: NativeThread?

  init(session: OpaquePointer) throws(Errno) {
    self.session = session
    thread = try NativeThread(named: "invalidation") { [unowned self] in work() }
  }

  func invalidate(node: NodeID) { add(.node(node)) }

  /// A negative offset means that the pages stay, and with them every lock that could be waited for.
  func invalidateAttributes(of node: NodeID) {
    fuse_lowlevel_notify_inval_inode(session, node, -1, 0)
  }

  func invalidate(entry: FileName, in parent: NodeID) { add(.entry(entry, parent: parent)) }

  /// Ends the thread; later invalidations do nothing. The session's loop has to run meanwhile, or
  /// its connection be cut: the notification under way may wait for a reply. Idempotent only
  /// on one thread.
  func stop() {
    state.withLock {
      $0.isStopped = true
      $0.queue.removeAll()
    }
    thread?.join()
    thread = nil
  }

  private func add(_ work: Work) {
    state.withLock { if !$0.isStopped { $0.queue.append(work) } }
  }

  private func work() {
    while true {
      var batch: [Work] = []
      state.withLock(
        when: { $0.isStopped || !$0.queue.isEmpty }, { swap(&batch, &$0.queue) })
      if batch.isEmpty { return }
      for work in batch { notify(work) }
    }
  }

  /// Failure means that the kernel has nothing cached (ENOENT) or is gone (ENOTCONN).
  private func notify(_ work: Work) {
    switch work {
    case .node(let node):
      fuse_lowlevel_notify_inval_inode(session, node, 0, 0)
    case .entry(let name, let parent):
      _ = name.withCString {
        fuse_lowlevel_notify_inval_entry(session, parent, $0, name.count)
      }
    }
  }
}
