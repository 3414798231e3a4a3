import FUSESession
import Glibc
import Platform
import SessionMonitor
import VaultFileSystem
import VaultStorage

/// An unlocked vault in its place: puts the layers together and owns the order in which they end.
///
/// Whatever ends the mount (umount(8), `photovault unmount`, a signal, idleness), the thread that
/// called `serve` puts things away: changes to the disk, then the connection, then the mount
/// point, then the record that others find us by.
final class MountedVault: Sendable {
  enum Outcome: Equatable {
    /// The names of files whose last changes could not be saved, and what else went wrong.
    case ended(unsaved: [String], problems: [String])
    /// A program has something open, nothing has changed.
    case busy
    case failed(Errno)
  }

  struct State {
    /// Somebody is trying to end the mount; one at a time.
    var isEnding = false
    /// No name leads to the mount any more.
    var isUnmounted = false
    var unsaved: Set<String> = []
    var problems: [String] = []
    /// Nobody gets at anything any more: the mount is gone, questions fail, the kernel has nothing.
    var isClosed = false
    /// What the lock is at, for the case that it hangs there.
    var step = ""
    /// Everything is put away, or given up on: the process ends.
    var isOver = false
  }

  let fileSystem: FileSystem
  let session: Session
  let record: MountRecord
  let options: MountOptions
  /// When to lock by itself, and whom to tell.
  let watch: SessionWatch
  /// As it was when the mount began.
  let lockMark: LockMark
  let state = ConditionLock(State())

  init(
    _ fileSystem: FileSystem, _ session: Session, _ record: MountRecord, _ options: MountOptions,
    _ watch: SessionWatch, _ lockMark: LockMark
  ) {
    self.fileSystem = fileSystem
    self.session = session
    self.record = record
    self.options = options
    self.watch = watch
    self.lockMark = lockMark
  }

  // MARK: The end

  /// Takes the mount away, unless a program has something open, and waits until all is saved and
  /// put away. Any thread but `serve`'s.
  func unmount() -> Outcome {
    if claimEnd() {
      let error = unmountInOrder(tries: 10)
      if error == nil { cutOffElsewhere() }
      giveBackEnd(isUnmounted: error == nil)
      if let error { return error == .busy ? .busy : .failed(error) }
    }
    return waitForEnd()
  }

  /// A container or the like that began meanwhile may have a copy of the mount in a mount namespace
  /// of its own. The kernel would go on asking us, and the folder would stay open there.
  private func cutOffElsewhere() {
    if session.hasEnded(within: Self.endMilliseconds) { return }
    Log.warning("\(record.mountPoint) is seen in another mount namespace still: cutting off")
    fileSystem.refuseOpens()
    session.dropCaches()
    session.cutOff()
  }

  /// The kernel takes no time; a machine under load might.
  private static let endMilliseconds = 3_000

  /// Whether the caller is to end the mount; waits for others who try.
  func claimEnd() -> Bool {
    state.withLock(
      when: { !$0.isEnding },
      { state in
        state.isEnding = !state.isUnmounted
        return state.isEnding
      })
  }

  func giveBackEnd(isUnmounted: Bool) {
    state.withLock { state in
      state.isEnding = false
      state.isUnmounted = isUnmounted
    }
  }

  func waitForEnd() -> Outcome {
    state.withLock(
      when: { $0.isOver }, { .ended(unsaved: $0.unsaved.sorted(), problems: $0.problems) })
  }

  /// nil: done. A program that is just ending, or a listing just read, keeps a mount busy for a
  /// moment: hence several tries.
  func unmountInOrder(tries: Int) -> Errno? {
    var error = Errno.busy
    for _ in 0..<tries {
      do throws(Errno) {
        try Unmount.orderly(place)
        return nil
      } catch let failure { error = failure }
      // Gone by other hands meanwhile.
      if !isMounted { return nil }
      if error != .busy { break }
      usleep(50_000)
    }
    return error
  }

  /// Programs may have files open of a mount that was cut off: by us, who refuse opens before, or by
  /// `umount --force`, which leaves it in the table then.
  func save() {
    let unsaved = fileSystem.commitAll(areAllClosed: !isMounted && fileSystem.isOpen)
    state.withLock { $0.unsaved.formUnion(unsaved) }
  }

  var place: FileName { FileName(record.mountPoint) }

  var isMounted: Bool {
    guard let table = try? MountTable.current() else { return true }
    return table.top(at: place)?.type == MountTable.photovaultType
  }

  // MARK: Life

  /// Answers the kernel until the mount ends, then puts everything away. `ready` is called, on
  /// another thread, once the folder answers.
  func serve(
    _ mountPoint: consuming MountPoint, _ registry: MountRegistry,
    _ socket: consuming FileDescriptor, ready: @escaping @Sendable () -> Void
  ) -> ExitCode {
    var threads: [NativeThread] = []
    var control: ControlServer?
    var watching: NativeThread?
    var failure: Errno?
    do throws(Errno) {
      let server = try ControlServer(socket) { self.answer($0) }
      control = server
      threads.append(try server.start())
      threads.append(try NativeThread(named: "idle") { self.watchUse() })
      watching = try startWatch()
      _ = try NativeThread(named: "signals") { [weak self] in
        // It never ends, and the keys go with the last one who holds on to this.
        while Self.waitForSignal() { self?.lock(.sessionEnded) }
      }
      _ = try NativeThread(named: "ready") { self.waitUntilReady(ready) }
      try session.loop()
    } catch {
      failure = error
      Log.error("the mount at \(record.mountPoint) ends: \(error)")
    }
    // First, so that whoever still waits for an answer gets an error.
    session.destroy()
    save()
    if MountPoint.isDead(record.mountPoint) { try? Unmount.detach(place) }
    _ = consume mountPoint
    registry.remove(record.mountPoint)
    let (unsaved, problems) = state.withLock { state in
      state.isUnmounted = true
      state.isOver = true
      return (state.unsaved, state.problems)
    }
    control?.stop()
    for thread in threads { thread.join() }
    // Last: the others may have something to tell.
    watch.stop()
    watching?.join()
    if !unsaved.isEmpty {
      Log.error("could not save: \(unsaved.sorted().joined(separator: ", "))")
    }
    return failure == nil && unsaved.isEmpty && problems.isEmpty ? .done : .failed
  }

  /// The first question to the mount, ours, is answered when all others are.
  private func waitUntilReady(_ ready: () -> Void) {
    var status = stat()
    guard lstat(record.mountPoint, &status) == 0 else { return }
    // A lock that came while the password was checked could not find this mount.
    if lockMark != LockMark(of: record.user) { lock(.requested) } else { becomeReady(ready) }
  }

  /// Signals that ask a process to end; blocked in all threads, see `blockSignals`.
  private static var endingSignals: sigset_t {
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGTERM, SIGINT, SIGHUP] { sigaddset(&signals, number) }
    return signals
  }

  /// To be called before any thread is made.
  static func blockSignals() {
    var signals = endingSignals
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }

  /// The machine or the session ends: programs get no say.
  private static func waitForSignal() -> Bool {
    var signals = endingSignals
    var number: CInt = 0
    while sigwait(&signals, &number) != 0 {}
    return true
  }

  private func watchUse() {
    var monitor = IdleMonitor(
      limit: options.idleSeconds, forcedLimit: options.forcedIdleSeconds)
    guard monitor.isActive else { return }
    var reported: [Holder] = []
    while !state.withLock(when: { $0.isOver }, forMilliseconds: 1000, { _ in }) {
      let action = monitor.action(now: BootTime.seconds, lastUse: Int(fileSystem.lastUse))
      if action == .wait { continue }
      if action == .lock, fileSystem.openFileCount > 0 || unmountUnused() == .busy {
        monitor.wasBusy(now: BootTime.seconds)
        let holders = Holder.all(of: record)
        if holders != reported {
          let who = Holder.sentence(holders, record.mountPoint)
          Log.notice("\(record.mountPoint) is not in use but can't be locked: \(who)")
          tellWaiting(holders)
        }
        reported = holders
      } else if action == .lockByForce {
        lockAndTell(.idle)
      }
    }
  }

  // MARK: What other commands ask

  private func answer(_ request: ControlRequest) -> ControlReply {
    switch request.verb {
    case .status:
      return ControlReply(
        idleSeconds: max(0, BootTime.seconds - Int(fileSystem.lastUse)),
        idleLimitSeconds: options.idleSeconds, isReadOnly: options.isReadOnly)
    case .unmount: return Self.reply(unmount())
    case .lock: return Self.reply(lock(.requested))
    }
  }

  private static func reply(_ outcome: Outcome) -> ControlReply {
    switch outcome {
    case .ended(let unsaved, []): ControlReply(unsaved: unsaved)
    case .ended(let unsaved, let problems):
      ControlReply(
        outcome: .incomplete, unsaved: unsaved, message: problems.joined(separator: "; "))
    case .busy: ControlReply(outcome: .busy)
    case .failed(let error): ControlReply(outcome: .failed, message: "\(error)")
    }
  }
}

/// CLOCK_BOOTTIME: time asleep counts.
enum BootTime {
  static var seconds: Int {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return time.tv_sec
  }
}
