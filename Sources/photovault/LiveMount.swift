import FUSESession
import Glibc
import Platform

/// A mount whose process answers on its control socket.
struct LiveMount: ~Copyable {
  /// How long an orderly end may take: what is written has to reach the disk.
  private static let patience: CInt = 60_000  // milliseconds
  /// How long a process that is to be cut off may take to commit, before it is ended by force.
  private static let forcedPatience: CInt = 20_000
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
    ask(ControlRequest(verb: .status), patience: Self.shortPatience)
  }

  consuming func unmount(force: Bool) throws(CommandError) {
    try end(ControlRequest(verb: .unmount, isForced: force), isForced: force)
  }

  consuming func lock() throws(CommandError) {
    try end(ControlRequest(verb: .lock), isForced: true)
  }

  /// Returns when the process is gone, and the vault's lock with it.
  private consuming func end(_ request: ControlRequest, isForced: Bool) throws(CommandError) {
    let mountPoint = record.mountPoint
    let process = try? LocalPeer.process(of: socket.rawValue)
    let patience = isForced ? Self.forcedPatience : Self.patience
    guard
      let reply = ask(request, patience: patience)
    else {
      if isForced, let process { try kill(process.rawValue) }
      throw CommandError(
        .failed, "the process of the mount at \(mountPoint) does not answer",
        hint: "look into the system's log; 'umount' or 'kill' end it")
    }
    switch reply.outcome {
    case .done: break
    case .busy:
      throw CommandError(
        .busy, "'\(record.user)' is busy: \(Holder.sentence(of: record))",
        hint: "close these programs, or give --force to cut them off")
    case .failed:
      throw CommandError(.failed, "cannot unmount \(mountPoint): \(reply.message ?? "")")
    }
    if let process { try waitForEnd(process.rawValue, mountPoint) }
    guard reply.unsaved.isEmpty else {
      throw CommandError(
        .failed,
        "unmounted, but the last changes to these could not be saved: "
          + reply.unsaved.joined(separator: ", "),
        hint: "their versions from before are complete; the system's log says why")
    }
  }

  private func waitForEnd(_ process: CInt, _ mountPoint: String) throws(CommandError) {
    var wanted = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
    var result: CInt = 0
    repeat { result = poll(&wanted, 1, Self.patience) } while result < 0 && errno == EINTR
    if result == 0 {
      throw CommandError(.failed, "\(mountPoint) is unmounted, but its process does not end")
    }
  }

  /// For a process that is stuck: a folder that can't be locked in order is locked all the same.
  private func kill(_ process: CInt) throws(CommandError) {
    let place = FileName(record.mountPoint)
    try? Unmount.detach(place)
    Glibc.kill(pid_t(record.process), SIGKILL)
    try waitForEnd(process, record.mountPoint)
    throw CommandError(
      .failed, "the process of the mount at \(record.mountPoint) was stuck and was killed",
      hint: "the folder is locked; photos that were being written have their versions from before")
  }

  private func ask(_ request: ControlRequest, patience milliseconds: CInt) -> ControlReply? {
    var patience = timeval(tv_sec: Int(milliseconds) / 1000, tv_usec: 0)
    setsockopt(
      socket.rawValue, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    do throws(Errno) { try ControlSocket.send(request, to: socket.rawValue) } catch { return nil }
    return ControlSocket.receive(ControlReply.self, from: socket.rawValue)
  }
}
