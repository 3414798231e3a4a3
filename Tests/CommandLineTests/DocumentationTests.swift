import Foundation
import Testing

@testable import photovault

/// The options that the program takes are those of the man page and of the completions.
@Suite struct DocumentationTests {
  private static let share =
    URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().path + "/scripts/share"

  let program: Program

  init() throws { program = try Program() }

  private static func options(of command: any Command.Type) -> [OptionSpec] {
    command.options + (command.usesHome ? [.home, .help] : [.help])
  }

  private static func spellings(_ command: any Command.Type) -> Set<String> {
    Set(options(of: command).map(\.spelling))
  }

  /// Runs `line` for each command; the words that it prints that look like options.
  private func offered(_ line: String, _ command: any Command.Type) throws -> Set<String> {
    let result = try program.shell(
      line.replacing("COMMAND", with: command.name).replacing("SHARE", with: Self.share))
    #expect(result.status == 0, "\(result.errors)")
    return Set(result.output.split(whereSeparator: \.isWhitespace).map(String.init))
      .filter { $0.hasPrefix("-") }
  }

  // MARK: completions

  @Test func bashOffersEveryOption() throws {
    for command in Commands.all {
      let offered = try offered(
        """
        exec bash -c '. SHARE/photovault.bash
        COMP_WORDS=(photovault COMMAND -); COMP_CWORD=2; _photovault; echo "${COMPREPLY[@]}"'
        """, command)
      #expect(offered == Self.spellings(command), "\(command.name)")
    }
  }

  @Test func zshOffersEveryOption() throws {
    for command in Commands.all {
      let offered = try offered(
        #"""
        exec zsh -fc '_describe() { }; _arguments() { print -l -- $@ }
        words=(photovault COMMAND -); CURRENT=3
        . SHARE/_photovault' | sed -n 's/^\**\(-[a-z-]*\)\[.*/\1/p'
        """#, command)
      #expect(offered == Self.spellings(command), "\(command.name)")
    }
  }

  @Test func fishOffersEveryOption() throws {
    for command in Commands.all {
      let offered = try offered(
        """
        exec fish --no-config -c 'set fish_complete_path; source SHARE/photovault.fish
        complete -C "photovault COMMAND -"; complete -C "photovault COMMAND --"' | cut -f 1
        """, command)
      #expect(offered == Self.spellings(command), "\(command.name)")
    }
  }

  @Test func shellsOfferTheAccounts() throws {
    try program.makeAccount("alice")
    try program.makeAccount("al fresco")
    let names = "al fresco\nalice\n"
    // Such a name is no code.
    try program.write("home/accounts/al`touch touched`$(touch touched).json", "")
    let commands = [
      "mount", "unmount", "lock", "passwd", "recovery-key", "recover", "remove", "check",
    ]
    for command in commands {
      let bash = try program.shell(
        """
        exec bash -c '. \(Self.share)/photovault.bash
        COMP_WORDS=(photovault \(command) al); COMP_CWORD=2; _photovault
        printf "%s\\n" "${COMPREPLY[@]}"' | grep -v touch | sort
        """)
      #expect(bash.output == names, "bash, \(command): \(bash.errors)")
      let fish = try program.shell(
        """
        exec fish --no-config -c 'source \(Self.share)/photovault.fish
        complete -C "photovault \(command) al"' | cut -f 1 | sed 's/\\\\//g' | grep -v touch | sort
        """)
      #expect(fish.output == names, "fish, \(command): \(fish.errors)")
      let zsh = try program.shell(
        """
        exec zsh -fc 'compadd() { print -l -- $users }; _files() { }; _describe() { }
        _alternative() { _photovault_users }
        _arguments() { case "$*" in *_photovault_users*) _photovault_users;; esac }
        words=(photovault \(command) al); CURRENT=3
        . \(Self.share)/_photovault' | grep -v touch | sort
        """)
      #expect(zsh.output == names, "zsh, \(command): \(zsh.errors)")
    }
    #expect(!program.exists("touched"))
  }

  // MARK: the man page

  /// The text about a command, in which dashes are plain.
  private static func manual() throws -> String {
    try String(contentsOfFile: share + "/photovault.1", encoding: .utf8)
      .replacing("\\-", with: "-")
  }

  /// What stands below "photovault COMMAND", up to the next command.
  private static func section(_ name: String, _ manual: String) -> String {
    var lines: [Substring] = []
    var isInside = false
    var wasHeading = false
    for line in manual.split(separator: "\n") {
      let isHeading = line.contains(/^\.BI? "photovault [a-z]/)
      if isHeading {
        let isOwn = ["\"", " "].contains { line.contains("\"photovault \(name)\($0)") }
        isInside = isOwn || (isInside && wasHeading)
      } else if line.hasPrefix(".SH ") {
        isInside = false
      }
      if line != ".TQ", line != ".TP" { wasHeading = isHeading }
      if isInside { lines.append(line) }
    }
    return lines.joined(separator: "\n")
  }

  @Test func theManPageNamesEveryOptionOfEveryCommand() throws {
    let manual = try Self.manual()
    let everywhere = try #require(manual.split(separator: "\n.SH OPTIONS").last)
    for command in Commands.all {
      let section = Self.section(command.name, manual)
      #expect(!section.isEmpty, "\(command.name)")
      let common = Set((OptionSpec.secret("password", "") + [.home, .help]).map(\.name))
      for option in Self.options(of: command) {
        let isCommon =
          common.contains(option.name) || option.name.hasPrefix("new-password-")
          || option.name.hasPrefix("recovery-key-")
        let text = isCommon ? String(everywhere) : section
        #expect(
          Self.words(text).contains(option.spelling), "\(command.name) \(option.spelling)")
      }
    }
  }

  @Test func theManPageNamesNoOptionThatIsNone() throws {
    let known = Commands.all.reduce(into: Set<String>()) { $0.formUnion(Self.spellings($1)) }
    // Of other programs, and of no command.
    let others: Set = ["--version", "--user", "--exclude-caches", "--"]
    let named = Self.words(try Self.manual()).filter { $0.hasPrefix("--") }
    #expect(named.subtracting(known).subtracting(others) == [])
  }

  private static func words(_ text: String) -> Set<String> {
    Set(text.split { !$0.isLetter && $0 != "-" }.filter { $0.hasPrefix("-") }.map(String.init))
  }

  @Test func theManPageNamesEveryExitCodeAndEveryMemberOfJSON() throws {
    let manual = try Self.manual()
    for code in ExitCode.allCases {
      #expect(manual.contains("\n\(code.rawValue)\t"), "\(code)")
    }
    try program.makeAccount()
    for command in ["accounts", "doctor"] {
      let json = try program.run(command, "--json").data
      for member in Self.members(try JSONSerialization.jsonObject(with: json)) {
        #expect(manual.contains(member), "\(command): \(member)")
      }
    }
  }

  private static func members(_ value: Any) -> Set<String> {
    if let list = value as? [Any] {
      return list.reduce(into: []) { $0.formUnion(members($1)) }
    }
    guard let object = value as? [String: Any] else { return [] }
    return object.reduce(into: Set(object.keys)) { $0.formUnion(members($1.value)) }
  }
}
