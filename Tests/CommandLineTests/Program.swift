import Foundation
import Glibc
import Testing

/// The built program with a home of its own, gone with the test.
final class Program: Sendable {
  struct Result {
    let status: Int32
    let data: Data
    let errors: String
    var output: String { String(decoding: data, as: UTF8.self) }
  }

  /// Passwords in tests contain it, so that a leak can be found.
  static let marker = "MARK3R"

  let executable: String
  let folder: String
  var home: String { folder + "/home" }

  init() throws {
    // The test bundle lies beside the program.
    let bundle = URL(filePath: CommandLine.arguments[0]).resolvingSymlinksInPath()
    executable = bundle.deletingLastPathComponent().path + "/photovault"
    try #require(FileManager.default.isExecutableFile(atPath: executable))
    let place = URL(filePath: NSTemporaryDirectory()).resolvingSymlinksInPath().path
    var template = Array("\(place)/pv-cli-XXXXXX".utf8CString)
    let made = template.withUnsafeMutableBufferPointer { mkdtemp($0.baseAddress!) }
    folder = String(cString: try #require(made))
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  var environment: [String: String] {
    ["PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": folder, "PHOTOVAULT_HOME": home]
  }

  /// Ends every run with a look for the marker in what was printed; `mayShowMarker` where that is
  /// the command's purpose.
  @discardableResult
  func run(
    _ arguments: String..., input: String? = nil, inputFile: String = "/dev/null",
    environment changes: [String: String?] = [:], folder: String? = nil,
    mayShowMarker: Bool = false
  ) throws -> Result {
    let result = try run(
      executable, arguments, input: input, inputFile: inputFile, environment: changes,
      folder: folder)
    #expect(!result.errors.contains(Self.marker))
    #expect(mayShowMarker || !result.output.contains(Self.marker))
    return result
  }

  /// A shell line in which "$PV" is the program.
  func shell(_ line: String) throws -> Result {
    try run("/bin/sh", ["-c", line], environment: ["PV": executable])
  }

  /// One of the Python files beside this one.
  func python(_ script: String, _ arguments: String..., inputFile: String = "/dev/null") throws
    -> Result
  {
    try run(
      "/usr/bin/env", ["python3", try Self.resource(script)] + arguments, inputFile: inputFile)
  }

  /// The program on a terminal: waits for each text, then types the keys behind it.
  func onTerminal(_ steps: [(String, String)], _ arguments: String...) throws -> Result {
    let script = try JSONSerialization.data(withJSONObject: steps.map { [$0.0, $0.1] })
    return try run(
      "/usr/bin/env",
      ["python3", try Self.resource("terminal.py"), String(decoding: script, as: UTF8.self)]
        + [executable] + arguments)
  }

  static func resource(_ name: String) throws -> String {
    try #require(Bundle.module.path(forResource: name, ofType: nil))
  }

  private func run(
    _ executable: String, _ arguments: [String], input: String? = nil,
    inputFile: String = "/dev/null", environment changes: [String: String?] = [:],
    folder: String? = nil
  ) throws -> Result {
    let process = Process()
    process.executableURL = URL(filePath: executable)
    process.arguments = arguments
    process.currentDirectoryURL = URL(filePath: folder ?? self.folder)
    process.environment = changes.reduce(into: environment) { $0[$1.key] = $1.value }
    let (output, errors) = (Pipe(), Pipe())
    process.standardOutput = output
    process.standardError = errors
    if let input {
      let pipe = Pipe()
      process.standardInput = pipe
      try pipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
      try pipe.fileHandleForWriting.close()
    } else {
      process.standardInput = try FileHandle(forReadingFrom: URL(filePath: inputFile))
    }
    try Self.withoutBlockedSignals { try process.run() }
    // What goes to standard error is always less than a pipe holds.
    let data = output.fileHandleForReading.readDataToEndOfFile()
    let text = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    let status =
      process.terminationReason == .exit
      ? process.terminationStatus : 128 + process.terminationStatus
    return Result(status: status, data: data, errors: String(decoding: text, as: UTF8.self))
  }

  /// The threads of a test block signals, and a program inherits that: a shell then waits for its
  /// jobs for ever.
  private static func withoutBlockedSignals(_ body: () throws -> Void) rethrows {
    var none = sigset_t()
    sigemptyset(&none)
    var before = sigset_t()
    pthread_sigmask(SIG_SETMASK, &none, &before)
    defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
    try body()
  }

  // MARK: files

  func path(_ name: String) -> String { name.hasPrefix("/") ? name : "\(folder)/\(name)" }

  @discardableResult
  func write(_ name: String, _ contents: String) throws -> String {
    try write(name, Data(contents.utf8))
  }

  @discardableResult
  func write(_ name: String, _ contents: Data) throws -> String {
    try contents.write(to: URL(filePath: path(name)))
    return path(name)
  }

  func read(_ name: String) throws -> Data { try Data(contentsOf: URL(filePath: path(name))) }
  func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: path(name)) }

  /// All names in a folder, hidden ones, too.
  func list(_ name: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: path(name)).sorted()
  }

  /// An account with the password "MARK3R password".
  func makeAccount(_ user: String = "alice") throws {
    try write("password", "\(Self.marker) password\n")
    let made = try run("create", user, "--password-file", path("password"))
    #expect(made.status == 0, "\(made.errors)")
  }

  func recoveryKey(_ user: String = "alice") throws -> String {
    let shown = try run("recovery-key", user, "--password-file", path("password"))
    #expect(shown.status == 0, "\(shown.errors)")
    return shown.output.trimmingCharacters(in: .newlines)
  }
}

extension Data {
  /// Bytes that no compressor likes, the same each time.
  static func noise(_ count: Int) -> Data {
    var state: UInt64 = 0x9E37_79B9_7F4A_7C15
    return Data(
      (0..<count).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
      })
  }
}
