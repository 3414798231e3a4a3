import Testing

@testable import SessionMonitor

@Suite struct ScreenStatesTests {
  /// What becomes of the states that source "a" reports one after the other.
  private func locks(_ isLocked: [Bool], isBaseline: [Bool]) -> [Bool] {
    var states = ScreenStates()
    return zip(isLocked, isBaseline).map {
      states.becameLocked("a", $0, isBaseline: $1)
    }
  }

  @Test func eachLockIsSeenOnce() {
    #expect(
      locks(
        [false, true, true, false, true], isBaseline: [true, false, false, false, false])
        == [false, true, false, false, true])
  }

  @Test func aLockFromBeforeIsNone() {
    #expect(
      locks([true, true, false, true], isBaseline: [true, false, false, false])
        == [false, false, false, true])
  }

  @Test func aSourceThatComesLockedIsOne() {
    #expect(locks([true, true], isBaseline: [false, false]) == [true, false])
  }

  @Test func aLockWhileTheBaselineIsTakenCounts() {
    #expect(locks([false, true], isBaseline: [true, true]) == [false, true])
  }

  @Test func sourcesDoNotMix() {
    var states = ScreenStates()
    let results = ["a", "b", "a"].map { states.becameLocked($0, true, isBaseline: false) }
    #expect(results == [true, true, false])
  }
}

@Suite struct NotifierTests {
  @Test func textIsNoMarkup() {
    #expect(Notifier.escaped("R&D <b>.jpg") == "R&amp;D &lt;b&gt;.jpg")
  }
}
