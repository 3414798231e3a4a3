import Glibc
import Platform

/// Where accounts and vaults are kept: `--home`, `$PHOTOVAULT_HOME`, `$XDG_DATA_HOME/photovault`,
/// `~/.local/share/photovault`, the first there is.
struct Home: Sendable {
  /// Absolute.
  let path: String

  init(_ arguments: Arguments) throws(CommandError) {
    if let given = arguments.value(of: "home") {
      guard !given.isEmpty else { throw .usage("--home is empty") }
      path = try Self.absolute(given)
    } else if let given = try Self.environment("PHOTOVAULT_HOME") {
      path = try Self.absolute(given)
    } else if let data = try Self.environment("XDG_DATA_HOME"), data.hasPrefix("/") {
      path = data + "/photovault"
    } else {
      path = try Self.userDirectory() + "/.local/share/photovault"
    }
  }

  var accounts: String { path + "/accounts" }
  func defaultVault(_ user: String) -> String { path + "/photos/" + user }

  /// The user's own home directory.
  static func userDirectory() throws(CommandError) -> String {
    if let home = try environment("HOME"), home.hasPrefix("/") { return home }
    guard let entry = getpwuid(getuid()), let directory = entry.pointee.pw_dir else {
      throw CommandError(
        .failed, "this user has no home directory", hint: "set HOME or give --home DIR")
    }
    return FileName(cString: directory).description
  }

  /// `path` from the root, its symbolic links as they are.
  static func absolute(_ path: String) throws(CommandError) -> String {
    if path.hasPrefix("/") { return path }
    guard let current = getcwd(nil, 0) else {
      throw CommandError("current directory", Errno.current)
    }
    defer { free(current) }
    let bytes = FileName(cString: current)
    guard bytes.isUTF8 else {
      throw CommandError(
        .failed, "the current directory's name is not UTF-8 text: \(bytes)",
        hint: "give a path from the root")
    }
    return bytes.description + "/" + path
  }

  /// nil for a variable that is not set or empty.
  static func environment(_ name: String) throws(CommandError) -> String? {
    guard let value = getenv(name), value.pointee != 0 else { return nil }
    let bytes = FileName(cString: value)
    guard bytes.isUTF8 else {
      throw CommandError(.failed, "\(name) is not UTF-8 text", hint: "choose another directory")
    }
    return bytes.description
  }
}
