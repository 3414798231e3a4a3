/// What the desktops' screen savers say on the session bus.
final class ScreenSaverMonitor {
  static let gnome = "org.gnome.ScreenSaver"
  /// Each is the name of a service and of its interface.
  static let names = [
    "org.freedesktop.ScreenSaver", gnome, "org.cinnamon.ScreenSaver", "org.mate.ScreenSaver",
    "org.xfce.ScreenSaver",
  ]

  private let isBaseline: () -> Bool
  private let becameActive: (String) -> Void

  private var bus: Bus?
  private var owners: [String: String] = [:]
  private var states = ScreenStates()

  /// `becameActive` gets the name of the screen saver.
  init(isBaseline: @escaping () -> Bool, becameActive: @escaping (String) -> Void) {
    self.isBaseline = isBaseline
    self.becameActive = becameActive
  }

  func begin(_ bus: Bus) {
    self.bus = bus
    for name in Self.names {
      bus.watchOwner(of: name) { [unowned self] in appeared(name, $0) }
      // KDE sends it from two paths.
      bus.watch("type='signal',sender='\(name)',interface='\(name)',member='ActiveChanged'") {
        [unowned self] message in
        guard message.sender == owners[name], let isActive = message.bool() else { return }
        became(name, isActive, isBaseline: false)
      }
      bus.owner(of: name) { [unowned self] in appeared(name, $0) }
    }
  }

  func end() {
    bus = nil
    owners = [:]
  }

  private func appeared(_ name: String, _ owner: String?) {
    owners[name] = owner
    guard let owner else { return }
    let ownPath = "/" + name.split(separator: ".").joined(separator: "/")
    ask(name, owner, at: [ownPath, "/ScreenSaver", "/"])
  }

  /// Asks at the first of `paths` where there is an answer.
  private func ask(_ name: String, _ owner: String, at paths: [String]) {
    guard let path = paths.first else { return }
    bus?.call(owner, path, name, "GetActive") { [unowned self] answer in
      guard let answer, owners[name] == owner else { return }
      if let isActive = answer.isError ? nil : answer.bool() {
        became(name, isActive, isBaseline: isBaseline())
      } else {
        ask(name, owner, at: Array(paths.dropFirst()))
      }
    }
  }

  private func became(_ name: String, _ isActive: Bool, isBaseline: Bool) {
    if states.becameLocked(name, isActive, isBaseline: isBaseline) { becameActive(name) }
  }
}
