/// What each source last said about the screen, so that a lock is seen once, and also one that
/// happened while nobody could listen.
struct ScreenStates {
  private var states: [String: Bool] = [:]

  /// true: locked since the last time. A source that is locked the first time it says something
  /// has just become so, unless `isBaseline`: then it was before the folder was unlocked.
  mutating func becameLocked(_ source: String, _ isLocked: Bool, isBaseline: Bool) -> Bool {
    let before = states.updateValue(isLocked, forKey: source)
    return isLocked && before != true && !(before == nil && isBaseline)
  }
}
