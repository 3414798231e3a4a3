import CFUSE
import Glibc
package import Platform
import Synchronization
package import VaultFileSystem

/// One mount, from the first word with the kernel to the last. Each step once, in this order:
/// `init`, `mount`, `loop` (meanwhile `dropCaches`, `cutOff` from other threads), `destroy`.
package final class Session: @unchecked Sendable {
  package struct Options: Sendable {
    /// What `mount` and `df` show, such as "photovault:alice".
    package let source: String
    /// libfuse's and the kernel's own, such as "allow_other".
    package let mountOptions: [String]

    package init(source: String, mountOptions: [String]) {
      self.source = source
      self.mountOptions = mountOptions
    }
  }

  package enum Failure: Error, Sendable {
    /// What libfuse or fusermount3 said.
    case message(String)
    case system(Errno)
  }

  /// Who talks to libfuse's session besides `loop`: an orderly unmount ends the loop, and `destroy`
  /// may come while another thread is still at the lock.
  private struct Use {
    var userCount = 0
    var isDestroyed = false
  }

  private enum Phase { case new, looping, ended }

  private let session: OpaquePointer
  private let fileSystem: Unmanaged<FileSystem>
  private let invalidation: Invalidation
  private let phase = ConditionLock(Phase.new)
  private let use = ConditionLock(Use())
  /// Set by `loop` before `phase` says so.
  private var loopThread = pthread_self()

  /// Requests are answered by these at most; libfuse starts them when all others are busy. Where the
  /// disk below hangs or is slow, those that wait for it keep nobody else waiting.
  private static let greatestThreadCount: CUnsignedInt = 24
  /// Threads beyond these end when they have nothing to do. Four carry the full load; with ten, which
  /// take turns, small files cost a third more CPU (measured).
  private static let idleThreadCount: CUnsignedInt = 4

  /// "fuse_session_new".
  package init(_ fileSystem: FileSystem, _ options: Options) throws(Failure) {
    LibfuseLog.attach()
    var arguments = fuse_args()
    defer { fuse_opt_free_args(&arguments) }
    let fixed =
      ["subtype=photovault"] + (fileSystem.isShared ? ["default_permissions"] : [])
    let source = "fsname=" + Self.escaped(options.source)
    for word in ["photovault"] + ([source] + fixed + options.mountOptions).map({ "-o" + $0 }) {
      guard fuse_opt_add_arg(&arguments, word) == 0 else { throw .system(.noMemory) }
    }
    var operations = Operations.table
    let retained = Unmanaged.passRetained(fileSystem)
    let (made, said) = LibfuseLog.capture {
      fuse_session_new(
        &arguments, &operations, MemoryLayout<fuse_lowlevel_ops>.size, retained.toOpaque())
    }
    guard let made else {
      retained.release()
      throw .message(said)
    }
    do throws(Errno) {
      invalidation = try Invalidation(session: made)
    } catch {
      fuse_session_destroy(made)
      retained.release()
      throw .system(error)
    }
    session = made
    self.fileSystem = retained
    fileSystem.attach(invalidation)
  }

  /// "fuse_session_mount". On return the kernel has the mount; it answers once `loop` runs.
  package func mount(at mountPoint: FileName) throws(Failure) {
    let (result, said) = LibfuseLog.capture {
      mountPoint.withCString { fuse_session_mount(session, $0) }
    }
    if result != 0 { throw .message(said) }
    let fileSystem = fileSystem.takeUnretainedValue()
    DeviceInterception.install(on: session) { [weak fileSystem] offer in
      if offer.contains(.directWritesDropPages) { fileSystem?.letWritesBypassCache() }
    }
  }

  /// "fuse_session_loop_mt": answers the kernel until the mount is gone or `cutOff` is called.
  /// Throws what ended it otherwise.
  package func loop() throws(Errno) {
    guard let configuration = fuse_loop_cfg_create() else { throw .noMemory }
    defer { fuse_loop_cfg_destroy(configuration) }
    fuse_loop_cfg_set_max_threads(configuration, Self.greatestThreadCount)
    fuse_loop_cfg_set_idle_threads(configuration, Self.idleThreadCount)
    // One descriptor for all threads: their own ones make no difference (measured).
    fuse_loop_cfg_set_clone_fd(configuration, 0)
    Self.letSignalsWake()
    loopThread = pthread_self()
    phase.withLock { $0 = .looping }
    defer { phase.withLock { $0 = .ended } }
    let result = fuse_session_loop_mt(session, configuration)
    if result < 0 { throw Errno(-result) }
  }

  /// Makes the kernel write back and drop what it holds of the folder: pages, attributes and names,
  /// so that descriptors, mappings and working directories that are still in use have to ask.
  /// Before `cutOff`, while the loop runs. Fails for what the kernel doesn't hold.
  package func dropCaches() {
    guard beginUse() else { return }
    defer { endUse() }
    let fileSystem = fileSystem.takeUnretainedValue()
    for node in fileSystem.knownNodes { fuse_lowlevel_notify_inval_inode(session, node, 0, 0) }
    for (parent, name) in fileSystem.knownEntries {
      _ = name.withCString {
        fuse_lowlevel_notify_inval_entry(session, parent, $0, name.count)
      }
    }
  }

  /// Ends `loop` and waits for the requests under way. Whoever holds files gets errors from
  /// `destroy` on; until then they wait.
  package func cutOff() {
    guard beginUse() else { return }
    defer { endUse() }
    invalidation.stop()
    fuse_session_exit(session)
    // The loop sleeps in sem_wait; a signal that comes just before that is missed, hence again.
    var isRunning = phase.withLock { $0 == .looping }
    while isRunning {
      pthread_kill(loopThread, Self.wakingSignal)
      isRunning = !phase.withLock(when: { $0 == .ended }, forMilliseconds: 10, { _ in })
    }
  }

  /// Whether `loop` has ended, waiting up to this long for it.
  package func hasEnded(within milliseconds: Int) -> Bool {
    phase.withLock(when: { $0 == .ended }, forMilliseconds: milliseconds, { _ in })
  }

  /// For the last moment of a process that can't end in order: lets go of the connection, which a
  /// thread that hangs in the disk below would keep open. Then `_exit`, which wakes the others.
  package func abandonConnection() { close(fuse_session_fd(session)) }

  /// "fuse_session_destroy". Closes the connection: requests that wait fail with ENOTCONN, and a
  /// mount that still stands is dead. "fuse_session_unmount" is not called: it would take away
  /// whatever is at the mount point by then.
  package func destroy() {
    use.withLock(when: { $0.userCount == 0 }, { $0.isDestroyed = true })
    invalidation.stop()
    fuse_session_destroy(session)
    fileSystem.release()
  }

  /// false: there is no session any more.
  private func beginUse() -> Bool {
    use.withLock { use in
      if !use.isDestroyed { use.userCount += 1 }
      return !use.isDestroyed
    }
  }

  private func endUse() { use.withLock { $0.userCount -= 1 } }

  private static let wakingSignal = SIGUSR1

  private static func letSignalsWake() {
    var action = sigaction()
    action.__sigaction_handler.sa_handler = { _ in }
    sigaction(wakingSignal, &action, nil)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, wakingSignal)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
  }

  /// Source: fuse_opt_parse: a comma separates options unless a backslash stands before it.
  private static func escaped(_ value: String) -> String {
    value.reduce(into: "") { result, character in
      if character == "," || character == "\\" { result.append("\\") }
      result.append(character)
    }
  }
}
