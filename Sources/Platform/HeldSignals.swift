import CLinux
import Glibc

/// While it lives, the signals that end or stop a program wait, so that the program can first put
/// right what must not stay as it is: a silent terminal, a half-written file.
/// Belongs to the thread that made it. One that is blocked already is left alone: it would stay
/// pending for ever.
package struct HeldSignals: ~Copyable {
  private let descriptor: FileDescriptor
  private let signals: sigset_t
  private let former: sigset_t

  package init() throws(Errno) {
    var former = sigset_t()
    pthread_sigmask(SIG_BLOCK, nil, &former)
    var signals = sigset_t()
    sigemptyset(&signals)
    for number in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP]
    where sigismember(&former, number) == 0 {
      sigaddset(&signals, number)
    }
    let number = pv_signalfd(&signals)
    if number < 0 { throw .current }
    descriptor = FileDescriptor(owning: number)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    self.signals = signals
    self.former = former
  }

  deinit {
    var former = former
    pthread_sigmask(SIG_SETMASK, &former, nil)
  }

  /// Whether one of them came and waits.
  package var isPending: Bool {
    var request = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
    return poll(&request, 1, 0) > 0
  }

  /// The signal that came and waits, taken away; nil without one. `deliver` no longer knows of it.
  package func take() -> CInt? {
    guard isPending else { return nil }
    // signalfd_siginfo: 128 bytes, the number first. Source: signalfd(2).
    var information = [UInt8](repeating: 0, count: 128)
    let count = information.withUnsafeMutableBytes { buffer in
      Glibc.read(descriptor.rawValue, buffer.baseAddress, buffer.count)
    }
    guard count == information.count else { return nil }
    return CInt(bitPattern: information.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
  }

  /// As if `number` had come just now, and no one had held it.
  package func deliver(_ number: CInt) {
    kill(getpid(), number)
    deliver()
  }

  /// Waits until `fd` can be read, or one of the signals came: false then.
  package func waitForInput(_ fd: CInt) throws(Errno) -> Bool {
    var requests = [
      pollfd(fd: fd, events: Int16(POLLIN), revents: 0),
      pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0),
    ]
    while poll(&requests, 2, -1) < 0 {
      if errno != EINTR { throw .current }
    }
    return requests[1].revents == 0
  }

  /// Lets what waits take effect now: mostly the program ends here, or stops and goes on later.
  package func deliver() {
    var former = former
    var signals = signals
    pthread_sigmask(SIG_SETMASK, &former, nil)
    pthread_sigmask(SIG_BLOCK, &signals, nil)
  }
}
