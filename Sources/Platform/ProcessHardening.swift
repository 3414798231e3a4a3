import CLinux
import Glibc

/// What a process does before it holds a secret.
package enum ProcessHardening {
  /// No core dumps, no ptrace or /proc/PID/mem for others, files private by default, and no report
  /// of a crash by the Swift runtime: it prints registers and memory.
  /// Throws if the kernel refuses, which it doesn't for the process's own limits.
  package static func apply() throws(Errno) {
    var none = rlimit(rlim_cur: 0, rlim_max: 0)
    if setrlimit(__rlimit_resource_t(RLIMIT_CORE.rawValue), &none) != 0 { throw .current }
    if pv_set_not_dumpable() != 0 { throw .current }
    umask(0o077)
    for fatal in [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV] {
      signal(fatal, SIG_DFL)
    }
  }

  /// Keeps plaintext in `mapping`, whole pages, off the disk: out of swap where the limit allows,
  /// out of core dumps.
  package static func keepOffDisk(_ mapping: UnsafeMutableRawBufferPointer) {
    guard let start = mapping.baseAddress else { return }
    _ = mlock(start, mapping.count)
    _ = madvise(start, mapping.count, pv_MADV_DONTDUMP)
  }

  /// Keeps the whole process out of swap where the limit can't be met by accident: for root, and
  /// where locked memory is unlimited. Elsewhere secrets and scratch space lock their own pages.
  package static func lockMemory() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(__RLIMIT_MEMLOCK.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return }
    guard geteuid() == 0 || limit.rlim_cur == rlim_t.max else { return }
    if pv_lock_all_memory() != 0 {
      Log.warning("memory can't be locked, so plaintext may reach the swap space: \(Errno.current)")
    }
  }

  /// For a process of many threads that lives long in little memory.
  package static func limitHeaps() { _ = pv_limit_heaps(2) }

  /// Raises the soft limit of open files to the hard one: open photos and directories need them.
  package static func raiseDescriptorLimit() {
    var limit = rlimit()
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    guard getrlimit(resource, &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(resource, &limit)
  }
}
