import CLinux
import Glibc

/// A thread of the operating system. No signal is ever delivered to it.
package final class NativeThread: Sendable {
  private final class Work {
    let name: StaticString
    let body: @Sendable () -> Void

    init(_ name: StaticString, _ body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  private let id: pthread_t

  /// `name` shows in `top`; Linux keeps 15 bytes of it. Throws EAGAIN.
  package init(
    named name: StaticString, _ body: @escaping @Sendable () -> Void
  ) throws(Errno) {
    let work = Unmanaged.passRetained(Work(name, body))
    var everything = sigset_t()
    var before = sigset_t()
    sigfillset(&everything)
    pthread_sigmask(SIG_BLOCK, &everything, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    var id = pthread_t()
    let result = pthread_create(
      &id, nil,
      { argument in
        guard let argument else { return nil }
        let work = Unmanaged<Work>.fromOpaque(argument).takeRetainedValue()
        NativeThread.nameThis(work.name)
        work.body()
        return nil
      }, work.toOpaque())
    guard result == 0 else {
      work.release()
      throw Errno(result)
    }
    self.id = id
  }

  /// Names the calling thread; the first thread's name is the process's.
  package static func nameThis(_ name: StaticString) {
    name.withUTF8Buffer { name in
      name.withMemoryRebound(to: CChar.self) { text in
        if let start = text.baseAddress { pv_set_thread_name(start) }
      }
    }
  }

  /// Waits for the end of its body. Once, and not on the thread itself.
  package func join() { pthread_join(id, nil) }
}
