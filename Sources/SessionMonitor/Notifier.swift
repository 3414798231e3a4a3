/// A message to whoever sits there.
package struct Notice: Equatable, Sendable {
  package let title: String
  package let text: String
  /// Stays until it is looked at.
  package let isUrgent: Bool

  package init(_ title: String, _ text: String, isUrgent: Bool = false) {
    self.title = title
    self.text = text
    self.isUrgent = isUrgent
  }
}

/// Shows notices on the desktop; each takes the place of the one before.
/// Source: Desktop Notifications Specification.
final class Notifier {
  private static let service = "org.freedesktop.Notifications"
  private static let path = "/org/freedesktop/Notifications"

  /// What was shown last, 0: nothing, and the unique name of who showed it.
  private var shown: (number: UInt32, by: String?) = (0, nil)
  /// Notices under way.
  private(set) var pendingCount = 0

  func show(_ notice: Notice, on bus: Bus) {
    pendingCount += 1
    bus.call(Self.service, Self.path, Self.service, "GetCapabilities") {
      [unowned self, unowned bus] answer in
      pendingCount -= 1
      // Nobody there to show it.
      guard let answer, !answer.isError else { return }
      if answer.sender != shown.by { shown = (0, answer.sender) }
      show(notice, on: bus, asMarkup: answer.strings().contains("body-markup"))
    }
  }

  /// The connection is gone, and with it all answers.
  func end() { pendingCount = 0 }

  private func show(_ notice: Notice, on bus: Bus, asMarkup: Bool) {
    let text = asMarkup ? Self.escaped(notice.text) : notice.text
    pendingCount += 1
    bus.call(
      Self.service, Self.path, Self.service, "Notify",
      [
        .string("photovault"), .uint32(shown.number), .string("dialog-password"),
        .string(notice.title),
        .string(text), .strings([]),
        .dictionary([("urgency", .byte(notice.isUrgent ? 2 : 1))]), .int32(-1),
      ]
    ) { [unowned self] answer in
      pendingCount -= 1
      if let answer, !answer.isError, let number = answer.uint32() { shown.number = number }
    }
  }

  static func escaped(_ text: String) -> String {
    text.reduce(into: "") { result, character in
      switch character {
      case "&": result += "&amp;"
      case "<": result += "&lt;"
      case ">": result += "&gt;"
      default: result.append(character)
      }
    }
  }
}
