import FUSESession
import Glibc
import Platform

/// A mount whose process answers on its control socket.
struct LiveMount: ~Copyable {
  /// How long an orderly end may take: what is written has to reach the disk.
  private static let patience: CInt = 20_000  // milliseconds
  /// How long a lock may take besides waiting for writers, before the process is ended by force.
  private static let lockPatience = CInt(MountedVault.lockMilliseconds)
  /// How long it may save what programs wrote when nobody sees the folder any more. The process
  /// itself gives up when that stands still.
  private static let savingPatience: CInt = 600_000
  /// How long a question that needs no work may take.
  private static let shortPatience: CInt = 3_000

  let record: MountRecord
  private let socket: FileDescriptor

  /// nil if nobody answers: the process was killed.
  init?(_ record: MountRecord, _ registry: MountRegistry) {
    do throws(Errno) {
      socket = try ControlSocket.connect(registry, record.mountPoint)
    } catch { return nil }
    self.record = record
  }

  /// nil if the process says nothing.
  consuming func status() -> ControlReply? {
    guard case .reply(let reply) = ask(ControlRequest(verb: .status), Self.shortPatience) else {
      return nil
    }
    return reply
  }

  /// Unless a program holds files. Returns when the process is gone, and the vault's lock with it.
  consuming func unmount() throws(CommandError) {
    let process = try? LocalPeer.process(of: socket.rawValue)
    switch ask(ControlRequest(verb: .unmount), Self.patience) {
    case .reply(let reply): try finish(reply, process, patience: Self.patience)
    case .ended: try waitForEndByOthers(process)
    case .silent:
      throw CommandError(
        .failed, "the process of the mount at \(record.mountPoint) does not answer",
        hint: "look into the system's log; 'photovault lock' ends it")
    }
  }

  /// Whatever programs hold. Returns when the process is gone, by force if it must be.
  consuming func lock() throws(CommandError) {
    let process = try? LocalPeer.process(of: socket.rawValue)
    let patience = CInt(clamping: record.lockGraceSeconds * 1000) + Self.lockPatience
    var answer = ask(ControlRequest(verb: .lock), patience)
    // One that has taken the mount away is at work: it saves what programs wrote.
    if case .silent = answer, !isMounted { answer = wait(Self.savingPatience) }
    switch answer {
    case .reply(let reply):
      // One that gave up may hang in the disk, where even its end has to wait.
      try finish(
        reply, process, patience: reply.outcome == .incomplete ? 1_000 : Self.shortPatience)
    case .ended: try waitForEndByOthers(process)
    case .silent:
      try kill(process)
      throw CommandError(
        .failed, "the process of the mount at \(record.mountPoint) does not answer",
        hint: "'umount -l' and 'kill -9' end it")
    }
  }

  private var isMounted: Bool {
    guard let table = try? MountTable.current() else { return true }
    return table.top(at: FileName(record.mountPoint))?.type == MountTable.photovaultType
  }

  /// Another command, a signal or the screen ended it first.
  private func waitForEndByOthers(
    _ process: consuming FileDescriptor?
  ) throws(CommandError) {
    if let process { try waitForEnd(process.rawValue, Self.patience) }
  }

  private func finish(
    _ reply: ControlReply, _ process: consuming FileDescriptor?, patience: CInt
  ) throws(CommandError) {
    let mountPoint = record.mountPoint
    switch reply.outcome {
    case .done, .incomplete: break
    case .busy:
      throw CommandError(
        .busy, "'\(record.user)' is busy: \(Holder.sentence(of: record))",
        hint: "close these programs, or give --force to cut them off")
    case .failed:
      throw CommandError(.failed, "cannot unmount \(mountPoint): \(reply.message ?? "")")
    }
    if let process { try waitForEnd(process.rawValue, patience) }
    var problems: [String] = []
    if reply.outcome == .incomplete, let message = reply.message { problems.append(message) }
    if !reply.unsaved.isEmpty {
      problems.append(
        "the last changes to these could not be saved: " + reply.unsaved.joined(separator: ", "))
    }
    if problems.isEmpty { return }
    throw CommandError(
      .failed, "'\(record.user)' is locked, but " + problems.joined(separator: "; "),
      hint: "the versions from before are complete; the system's log says why")
  }

  private func waitForEnd(_ process: CInt, _ patience: CInt) throws(CommandError) {
    var wanted = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
    var result: CInt = 0
    repeat { result = poll(&wanted, 1, patience) } while result < 0 && errno == EINTR
    if result == 0 {
      throw CommandError(
        .failed, "\(record.mountPoint) is locked, but its process does not end",
        hint: "it hangs in the disk below: is that still there?")
    }
  }

  /// For a process that is stuck: a folder that can't be locked in order is locked all the same.
  private func kill(_ process: consuming FileDescriptor?) throws(CommandError) {
    guard let process else { return }
    let place = FileName(record.mountPoint)
    try? Unmount.detach(place)
    Glibc.kill(pid_t(record.process), SIGKILL)
    try waitForEnd(process.rawValue, Self.shortPatience)
    throw CommandError(
      .failed, "the process of the mount at \(record.mountPoint) was stuck and was killed",
      hint: "the folder is locked; photos that were being written have their versions from before")
  }

  private enum Answer {
    case reply(ControlReply)
    /// The process hung up.
    case ended
    case silent
  }

  private func ask(_ request: ControlRequest, _ patience: CInt) -> Answer {
    do throws(Errno) { try ControlSocket.send(request, to: socket.rawValue) } catch {
      return .ended
    }
    return wait(patience)
  }

  private func wait(_ milliseconds: CInt) -> Answer {
    var wanted = pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0)
    var result: CInt = 0
    repeat { result = poll(&wanted, 1, milliseconds) } while result < 0 && errno == EINTR
    if result == 0 { return .silent }
    return ControlSocket.receive(ControlReply.self, from: socket.rawValue).map { .reply($0) }
      ?? .ended
  }
}
