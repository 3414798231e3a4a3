import FUSESession
import Glibc
import Platform
import SessionMonitor
import Synchronization
import VaultFileSystem
import VaultStorage

/// The lock: one procedure, whatever triggered it. It can't be refused, and no step of it may
/// hang: what isn't done in time is given up, and the process ends all the same.
extension MountedVault {
  /// How long it may take, besides waiting for writers, until nobody gets at anything any more.
  /// Source: logind.conf(5) gives 5 s before a suspend (InhibitDelayMaxSec), of which the waiting
  /// takes up to 3.
  static let lockMilliseconds = 1_500
  /// How long saving may stand still afterwards: a slow disk takes its time for a sync.
  private static let greatestStall = 10  // seconds
  /// The longest wait for writers where the machine doesn't wait for us.
  private static let greatestGraceBeforeSleep = 3
  /// How long the kernel gets to drop its pages, and whoever asked for the lock to hear of it, when
  /// it was given up.
  private static let farewellMilliseconds = 300

  /// Locks the folder and waits until all is put away. Any thread but `serve`'s.
  @discardableResult
  func lock(_ trigger: LockTrigger) -> Outcome {
    if claimEnd() {
      Log.notice("locking \(record.mountPoint): \(trigger.reason)")
      let grace = graceMilliseconds(trigger)
      do throws(Errno) {
        // Threads of their own, so that whoever asked is told even of a lock that hangs.
        _ = try NativeThread(named: "lock watch") {
          self.watchLock(within: grace + Self.lockMilliseconds)
        }
        _ = try NativeThread(named: "lock") { self.cutOff(waitingForWriters: grace) }
      } catch {
        cutOff(waitingForWriters: grace)
      }
    }
    return waitForEnd()
  }

  private func graceMilliseconds(_ trigger: LockTrigger) -> Int {
    switch trigger {
    case .suspending, .shuttingDown:
      min(options.lockGraceSeconds, Self.greatestGraceBeforeSleep) * 1000
    default: options.lockGraceSeconds * 1000
    }
  }

  /// Gives up when the folder is not closed in time, or saving stands still afterwards.
  private func watchLock(within milliseconds: Int) {
    let isClosed = state.withLock(
      when: { $0.isClosed || $0.isOver }, forMilliseconds: milliseconds, { _ in })
    if !isClosed { giveUp() }
    var pieces = 0
    var stall = 0
    while !state.withLock(when: { $0.isOver }, forMilliseconds: 1_000, { _ in }) {
      let now = WriteProgress.pieceCount.load(ordering: .relaxed)
      stall = now == pieces ? stall + 1 : 0
      if stall >= Self.greatestStall { giveUp() }
      pieces = now
    }
  }

  private func cutOff(waitingForWriters grace: Int) {
    step("waiting for programs that are writing")
    fileSystem.refuseOpens()
    // Beside the waiting, for it may take long.
    let early = try? NativeThread(named: "early commits") { self.fileSystem.commitEdited() }
    waitForWriters(grace)
    step("closing the folder")
    // What programs changed in mappings comes as writes.
    session.dropCaches()
    fileSystem.close()
    if let error = unmountInOrder(tries: 1) {
      if error == .busy { Log.warning("cutting off: \(Holder.sentence(of: record))") }
      do throws(Errno) { try Unmount.detach(place) } catch {
        if isMounted { note("the mount could not be taken away: \(error)") }
      }
      session.dropCaches()
    }
    state.withLock { $0.isClosed = true }
    step("saving what was written")
    early?.join()
    // Waits for the requests under way; from then on the kernel is not answered any more, and
    // `serve` saves and puts things away.
    session.cutOff()
    giveBackEnd(isUnmounted: true)
  }

  private func step(_ step: String) { state.withLock { $0.step = step } }

  private func note(_ problem: String) {
    Log.error("\(record.mountPoint): \(problem)")
    state.withLock { $0.problems.append(problem) }
  }

  private func waitForWriters(_ milliseconds: Int) {
    let pause = 20
    for _ in 0..<(milliseconds / pause) {
      if fileSystem.filesBeingWritten.isEmpty { return }
      usleep(UInt32(pause) * 1000)
    }
    let files = fileSystem.filesBeingWritten
    if !files.isEmpty { Log.warning("still being written: \(files.joined(separator: ", "))") }
  }

  /// A step hangs, perhaps in the disk below. The connection ends with the process, and with it
  /// every program's access; the watcher takes away what is left.
  private func giveUp() -> Never {
    let step = state.withLock { $0.step }
    note("the lock did not get done in time (\(step)), so the mount's process was ended")
    let unsaved = fileSystem.filesBeingWritten
    fileSystem.close()
    try? Unmount.detach(place)
    // The kernel goes on serving the pages that it has, even behind the end of the process. This may
    // hang as well, on a page that a program waits for.
    let isDropped = ConditionLock(false)
    _ = try? NativeThread(named: "farewell") {
      self.session.dropCaches()
      isDropped.withLock { $0 = true }
    }
    _ = isDropped.withLock(when: { $0 }, forMilliseconds: Self.farewellMilliseconds, { _ in })
    state.withLock { state in
      state.unsaved.formUnion(unsaved)
      state.isOver = true
    }
    tellGivenUp()
    usleep(UInt32(Self.farewellMilliseconds) * 1000)
    session.abandonConnection()
    _exit(ExitCode.failed.rawValue)
  }
}
