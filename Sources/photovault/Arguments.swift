import Platform

/// The words behind the command, taken apart. Options stand anywhere; `--` ends them.
struct Arguments: Sendable {
  /// Paths as the shell gave them, byte for byte.
  let rawPositionals: [FileName]
  private let options: [(name: String, value: FileName?)]

  /// `words` is what stands behind the command. Throws `.usage`.
  init(_ words: [FileName], for command: any Command.Type) throws(CommandError) {
    try self.init(
      words, options: command.options + [.home, .help], command: command.name,
      takesRawPaths: command.takesRawPaths)
  }

  /// For a command with a spelling of its own, such as `mount.fuse`.
  init(
    _ words: [FileName], options known: [OptionSpec], command: String, takesRawPaths: Bool = false
  ) throws(CommandError) {
    var positionals: [FileName] = []
    var found: [(name: String, value: FileName?)] = []
    var rest = words[...]
    var optionsEnded = false
    while let word = rest.popFirst() {
      guard takesRawPaths || word.isUTF8 else {
        throw .usage("an argument is not UTF-8 text: \(word)", command)
      }
      if optionsEnded || !word.hasPrefix("-") || word.count == 1 {
        positionals.append(word)
      } else if word == FileName("--") {
        optionsEnded = true
      } else {
        let (spelling, attached) = Self.split(word)
        guard let spec = known.first(where: { $0.spelling == spelling }) else {
          throw .usage("unknown option \(spelling)", command)
        }
        let name = spec.name
        if !spec.takesValue {
          guard attached == nil else { throw .usage("\(spec.spelling) takes no value", command) }
          found.append((name, nil))
        } else if let value = attached ?? rest.popFirst() {
          guard takesRawPaths || value.isUTF8 else {
            throw .usage("the value of \(spec.spelling) is not UTF-8 text", command)
          }
          found.append((name, value))
        } else {
          throw .usage("\(spec.spelling) needs a value: \(spec.valueName)", command)
        }
      }
    }
    rawPositionals = positionals
    options = found
  }

  /// With options from elsewhere, which count as given last. Throws `.usage`.
  func adding(
    _ words: [FileName], options known: [OptionSpec], command: String
  ) throws(CommandError) -> Arguments {
    let more = try Arguments(words, options: known, command: command)
    return Arguments(rawPositionals + more.rawPositionals, options + more.options)
  }

  private init(
    _ rawPositionals: [FileName], _ options: [(name: String, value: FileName?)]
  ) {
    self.rawPositionals = rawPositionals
    self.options = options
  }

  var positionals: [String] { rawPositionals.map(\.description) }

  func has(_ flag: String) -> Bool { options.contains { $0.name == flag } }

  /// The last one given counts.
  func value(of option: String) -> String? { rawValue(of: option)?.description }

  func rawValue(of option: String) -> FileName? {
    options.last { $0.name == option }.flatMap(\.value)
  }

  func values(of option: String) -> [String] {
    options.filter { $0.name == option }.compactMap(\.value?.description)
  }

  /// The positionals, if there are as many as `range` says. Throws `.usage`.
  func positionals(
    _ range: ClosedRange<Int>, of command: any Command.Type
  ) throws(CommandError) -> [String] {
    if rawPositionals.count < range.lowerBound {
      throw .usage("\(command.name) needs \(command.usage)", command.name)
    }
    if rawPositionals.count > range.upperBound {
      throw .usage("too many arguments: \(rawPositionals[range.upperBound])", command.name)
    }
    return positionals
  }

  /// `--name`, `--name=value`, `-n`, `-nvalue`.
  private static func split(_ word: FileName) -> (spelling: String, attached: FileName?) {
    let bytes = word.bytes
    func parts(_ end: Int, _ start: Int) -> (spelling: String, attached: FileName?) {
      (
        String(decoding: bytes[..<end], as: UTF8.self),
        start <= bytes.count && end < bytes.count ? FileName(Array(bytes[start...])) : nil
      )
    }
    if !word.hasPrefix("--") { return parts(2, 2) }
    guard let sign = bytes.firstIndex(of: UInt8(ascii: "=")) else {
      return parts(bytes.count, bytes.count)
    }
    return parts(sign, sign + 1)
  }
}

extension FileName {
  var isUTF8: Bool { String(validating: bytes, as: UTF8.self) != nil }
}

extension CommandError {
  static func usage(_ message: String, _ command: String? = nil) -> CommandError {
    let help = command.map { "photovault \($0) --help" } ?? "photovault --help"
    return CommandError(.usage, message, hint: "see '\(help)'")
  }
}
