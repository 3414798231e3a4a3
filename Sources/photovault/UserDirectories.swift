/// The file `user-dirs.dirs` of xdg-user-dirs: shell assignments of one form.
enum UserDirectories {
  /// The value of `XDG_PICTURES_DIR="$HOME/..."` or `="/..."`.
  static func pictures(in text: String, home: String) -> String? {
    let key = "XDG_PICTURES_DIR=\""
    let lines = text.split(separator: "\n").map { $0.drop { $0 == " " || $0 == "\t" } }
    guard let line = lines.last(where: { $0.hasPrefix(key) }) else { return nil }
    var value = ""
    var isEscaped = false
    for character in line.dropFirst(key.count) {
      if isEscaped || (character != "\\" && character != "\"") {
        value.append(character)
        isEscaped = false
      } else if character == "\\" {
        isEscaped = true
      } else {
        break
      }
    }
    if value == "$HOME" { return home }
    if value.hasPrefix("$HOME/") { value = home + value.dropFirst("$HOME".count) }
    while value.count > 1, value.hasSuffix("/") { value.removeLast() }
    return value.hasPrefix("/") ? value : nil
  }
}
