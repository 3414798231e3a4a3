import Testing

@testable import SessionMonitor

@Suite struct IdleMonitorTests {
  @Test func locksOnceNobodyUsedItForTheLimit() {
    let monitor = IdleMonitor(limit: 600, forcedLimit: 0)
    #expect(monitor.action(now: 1599, lastUse: 1000) == .wait)
    #expect(monitor.action(now: 1600, lastUse: 1000) == .lock)
    #expect(monitor.action(now: 90_000, lastUse: 1000) == .lock, "time asleep counts")
  }

  @Test func leavesBusyProgramsAloneForAWhileAndTriesAgain() {
    var monitor = IdleMonitor(limit: 600, forcedLimit: 0)
    monitor.wasBusy(now: 1600)
    #expect(monitor.action(now: 1604, lastUse: 1000) == .wait)
    #expect(monitor.action(now: 1605, lastUse: 1000) == .lock)
  }

  @Test func lockingByForceWaitsForNobody() {
    var monitor = IdleMonitor(limit: 600, forcedLimit: 1200)
    monitor.wasBusy(now: 2199)
    #expect(monitor.action(now: 2199, lastUse: 1000) == .wait)
    #expect(monitor.action(now: 2200, lastUse: 1000) == .lockByForce)
  }

  @Test(arguments: [(0, 0), (0, 5000)])
  func zeroIsNever(limit: Int, forcedLimit: Int) {
    let monitor = IdleMonitor(limit: limit, forcedLimit: forcedLimit)
    #expect(monitor.action(now: 5999, lastUse: 1000) == .wait)
  }
}
