import Glibc
import Synchronization

/// The seam of `Syscalls`: tests make a call fail, move less than asked, or stop the process.
/// In release builds it isn't there.
package enum SyscallFaults {
  package enum Call: String, Sendable, CaseIterable {
    case open, openTemporary, read, write, status, synchronize, truncate, allocate, link, rename
    case unlink, makeDirectory, makeNode, makeSymbolicLink, readSymbolicLink, setAttributes
    case getExtendedAttribute, setExtendedAttribute, readDirectory, lock
  }

  package enum Fault: Sendable {
    case fail(Errno)
    /// The read or write moves at most this many bytes.
    case short(Int)
    /// The process ends as by kill -9, before the call.
    case stop
  }

  #if DEBUG
    private final class Hook: Sendable {
      let decide: @Sendable (Call) -> Fault?
      init(_ decide: @escaping @Sendable (Call) -> Fault?) { self.decide = decide }
    }

    /// Threads that were ever armed; none in a program's normal life.
    private static let armedCount = Atomic<Int>(0)
    private static let key: pthread_key_t = {
      var key = pthread_key_t()
      pthread_key_create(&key) { if let hook = $0 { Unmanaged<Hook>.fromOpaque(hook).release() } }
      return key
    }()

    /// Asks `decide` before every call that this thread makes, or a job that it starts through
    /// `inherited`, until `disarm`. Other threads' tests are not disturbed.
    package static func arm(_ decide: @escaping @Sendable (Call) -> Fault?) {
      set(Hook(decide))
    }

    package static func disarm() { set(nil) }

    private static var hook: Hook? {
      guard armedCount.load(ordering: .acquiring) > 0 else { return nil }
      return pthread_getspecific(key).map {
        Unmanaged<Hook>.fromOpaque($0).takeUnretainedValue()
      }
    }

    private static func set(_ hook: Hook?) {
      armedCount.add(1, ordering: .acquiringAndReleasing)
      if let old = pthread_getspecific(key) { Unmanaged<Hook>.fromOpaque(old).release() }
      pthread_setspecific(key, hook.map { Unmanaged.passRetained($0).toOpaque() })
    }

    private static func fault(_ call: Call) -> Fault? { hook?.decide(call) }
  #endif

  /// `job` with the faults of the thread that starts it.
  package static func inherited(_ job: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    #if DEBUG
      guard let hook else { return job }
      return {
        set(hook)
        job()
        set(nil)
      }
    #else
      return job
    #endif
  }

  @inline(__always)
  static func before(_ call: Call) throws(Errno) {
    #if DEBUG
      if call == .write || call == .read { return }  // asked in short(_:of:)
      try raise(fault(call))
    #endif
  }

  @inline(__always)
  static func short(_ call: Call, of count: Int) throws(Errno) -> Int {
    #if DEBUG
      while true {
        let fault = fault(call)
        if case .short(let limit) = fault { return min(count, max(1, limit)) }
        do throws(Errno) {
          try raise(fault)
          break
        } catch {
          if error != .interrupted { throw error }
        }
      }
    #endif
    return count
  }

  #if DEBUG
    private static func raise(_ fault: Fault?) throws(Errno) {
      switch fault {
      case .fail(let error): throw error
      case .stop: kill(getpid(), SIGKILL)
      case .short, nil: break
      }
    }
  #endif
}
