import CLinux
import Glibc
import Platform

/// Threads shared by all files: they hash and write what the handlers encrypted.
final class WorkPool: Sendable {
  static let shared = WorkPool(
    threadCount: max(2, min(4, Int(sysconf(CInt(_SC_NPROCESSORS_ONLN))))))

  private let threadCount: Int
  private let jobs = ConditionLock<Jobs>(Jobs())

  private struct Jobs: Sendable {
    var waiting: [@Sendable () -> Void] = []
    var threadCount = 0
    var idleCount = 0
  }

  init(threadCount: Int) { self.threadCount = threadCount }

  /// Runs `job` on some thread soon. Threads start when first needed.
  func run(_ job: @escaping @Sendable () -> Void) {
    let job = SyscallFaults.inherited(job)
    let needsThread = jobs.withLock { jobs in
      jobs.waiting.append(job)
      guard jobs.idleCount < jobs.waiting.count, jobs.threadCount < threadCount else {
        return false
      }
      jobs.threadCount += 1
      return true
    }
    if needsThread { startThread() }
  }

  private func startThread() {
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, CInt(PTHREAD_CREATE_DETACHED))
    defer { pthread_attr_destroy(&attributes) }
    var thread = pthread_t()
    let context = Unmanaged.passRetained(self).toOpaque()
    let result = pthread_create(
      &thread, &attributes,
      { context in
        guard let context else { return nil }
        Unmanaged<WorkPool>.fromOpaque(context).takeRetainedValue().work()
        return nil
      }, context)
    if result != 0 {
      Unmanaged<WorkPool>.fromOpaque(context).release()
      // No thread to be had: this one does the work rather than nobody.
      let job = jobs.withLock { jobs in
        jobs.threadCount -= 1
        return jobs.threadCount == 0 && !jobs.waiting.isEmpty ? jobs.waiting.removeFirst() : nil
      }
      job?()
    }
  }

  private func work() {
    _ = pv_set_thread_name("blob-writer")
    while true {
      jobs.withLock { $0.idleCount += 1 }
      let job = jobs.withLock(
        when: { !$0.waiting.isEmpty },
        { jobs in
          jobs.idleCount -= 1
          return jobs.waiting.removeFirst()
        })
      job()
    }
  }
}
