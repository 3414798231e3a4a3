import Glibc
import Platform

/// Answers other commands, one after the other, on a thread of its own.
final class ControlServer: Sendable {
  private let socket: FileDescriptor
  /// Written to by `stop`.
  private let wake: Pipe
  private let answer: @Sendable (ControlRequest) -> ControlReply

  init(
    _ socket: consuming FileDescriptor,
    _ answer: @escaping @Sendable (ControlRequest) -> ControlReply
  ) throws(Errno) {
    wake = try Pipe()
    self.socket = socket
    self.answer = answer
  }

  func start() throws(Errno) -> NativeThread {
    try NativeThread(named: "control") { self.serve() }
  }

  /// The answer under way is still sent; join the thread to wait for that.
  func stop() { _ = write(wake.writeEnd.rawValue, "x", 1) }

  private func serve() {
    var wanted = [
      pollfd(fd: wake.readEnd.rawValue, events: Int16(POLLIN), revents: 0),
      pollfd(fd: socket.rawValue, events: Int16(POLLIN), revents: 0),
    ]
    while true {
      if poll(&wanted, 2, -1) < 0, errno != EINTR { return }
      if wanted[0].revents != 0 { return }
      if wanted[1].revents != 0 { serveOne() }
    }
  }

  private func serveOne() {
    let number = accept(socket.rawValue, nil, nil)
    guard number >= 0 else { return }
    let connection = FileDescriptor(owning: number)
    let peer = LocalPeer.user(of: number)
    guard peer == getuid() || peer == 0 else { return }
    // Somebody who connects and says nothing must not keep others waiting.
    var patience = timeval(tv_sec: 2, tv_usec: 0)
    setsockopt(
      number, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    guard let request = ControlSocket.receive(ControlRequest.self, from: number) else { return }
    // One who doesn't wait for the answer needs none.
    try? ControlSocket.send(answer(request), to: connection.rawValue)
  }
}
