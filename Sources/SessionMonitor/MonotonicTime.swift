import Glibc

/// CLOCK_MONOTONIC, the clock of poll(2) and of sd-bus.
enum MonotonicTime {
  static var milliseconds: Int {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
  }
}
