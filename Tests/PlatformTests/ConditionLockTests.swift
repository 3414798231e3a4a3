import Foundation
import Platform
import Synchronization
import Testing

@Suite struct ConditionLockTests {
  @Test func waitingEndsWhenTheConditionHolds() {
    let lock = ConditionLock(0)
    let thread = Thread { for _ in 0..<3 { lock.withLock { $0 += 1 } } }
    thread.start()
    let seen = lock.withLock(
      when: { $0 == 3 },
      { state -> Int in
        state += 10
        return state
      })
    #expect(seen == 13)
  }

  @Test func aTimeoutGivesUpWithoutRunningTheBody() {
    let lock = ConditionLock(false)
    var hasRun = false
    let start = ContinuousClock.now
    let isDone = lock.withLock(when: { $0 }, forMilliseconds: 50, { _ in hasRun = true })
    #expect(!isDone)
    #expect(!hasRun)
    #expect(ContinuousClock.now - start >= .milliseconds(50))
  }

  @Test(arguments: [0, 1, 999, 1000, 1999])
  func aConditionThatHoldsDoesNotWait(_ milliseconds: Int) {
    let lock = ConditionLock(1)
    #expect(lock.withLock(when: { $0 == 1 }, forMilliseconds: milliseconds, { $0 = 2 }))
    #expect(lock.withLock { $0 } == 2)
  }

  @Test func aWaiterWithATimeoutIsWokenInTime() {
    let lock = ConditionLock(false)
    let thread = Thread {
      usleep(20_000)
      lock.withLock { $0 = true }
    }
    thread.start()
    #expect(lock.withLock(when: { $0 }, forMilliseconds: 60_000, { _ in }))
  }

  @Test func theLockIsFreeAfterAFailure() {
    let lock = ConditionLock(0)
    func fail() throws(Errno) {
      try lock.withLock { state throws(Errno) in
        state = 5
        throw .busy
      }
    }
    #expect(throws: Errno.busy) { try fail() }
    #expect(lock.withLock { $0 } == 5)
  }

  @Test func threadsDoNotLoseUpdates() {
    let lock = ConditionLock(0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 0..<1000 { lock.withLock { $0 += 1 } }
    }
    #expect(lock.withLock { $0 } == 8000)
  }
}

@Suite struct ReadWriteLockTests {
  @Test func readersMeetAndWritersAreAlone() {
    let lock = ReadWriteLock()
    let inside = Atomic<Int>(0)
    let collisions = Atomic<Int>(0)
    DispatchQueue.concurrentPerform(iterations: 8) { worker in
      for _ in 0..<500 {
        if worker == 0 {
          lock.withExclusive {
            if inside.load(ordering: .relaxed) != 0 {
              collisions.add(1, ordering: .relaxed)
            }
          }
        } else {
          lock.withShared {
            inside.add(1, ordering: .relaxed)
            inside.subtract(1, ordering: .relaxed)
          }
        }
      }
    }
    #expect(collisions.load(ordering: .relaxed) == 0)
  }

  @Test func twoReadersHoldItAtOnce() {
    let lock = ReadWriteLock()
    let met = ConditionLock(0)
    let thread = Thread { lock.withShared { met.withLock { $0 += 1 } } }
    let hasMet = lock.withShared {
      thread.start()
      return met.withLock(when: { $0 == 1 }, forMilliseconds: 60_000, { _ in })
    }
    #expect(hasMet)
  }

  @Test func itIsFreeAfterAFailure() {
    let lock = ReadWriteLock()
    #expect(throws: Errno.busy) {
      try lock.withExclusive { () throws(Errno) in throw .busy }
    }
    #expect(lock.withExclusive { true })
  }
}
