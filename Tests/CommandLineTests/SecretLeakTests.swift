import Foundation
import Glibc
import Testing

/// Looks for the marker where secrets must not be while the program holds them.
@Suite struct SecretLeakTests {
  let program: Program

  init() throws {
    program = try Program()
    try program.makeAccount()
  }

  /// The program's process and its children.
  private func processes(from process: pid_t) -> [pid_t] {
    let path = "/proc/\(process)/task/\(process)/children"
    let children = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    return [process]
      + children.split(separator: " ").compactMap { pid_t($0) }
      .flatMap { processes(from: $0) }
  }

  private func wait(until condition: () -> Bool) throws {
    for _ in 0..<500 where !condition() { usleep(20_000) }
    try #require(condition())
  }

  @Test func noSecretIsInArgumentsOrEnvironmentOrFilesWhileRunning() throws {
    let fifo = program.path("new password")
    #expect(mkfifo(fifo, 0o600) == 0)
    let process = Process()
    process.executableURL = URL(filePath: program.executable)
    process.arguments = [
      "passwd", "alice", "--password-file", program.path("password"), "--new-password-command",
      "echo waiting >\"\(program.path("flag"))\"; cat \"\(fifo)\"",
    ]
    process.environment = program.environment
    let errors = Pipe()
    (process.standardInput, process.standardError) = (FileHandle.nullDevice, errors)
    process.standardOutput = errors
    try process.run()
    // Now the first password is read and checked, and the recovery key in memory.
    try wait { program.exists("flag") }
    let found = processes(from: process.processIdentifier)
    #expect(found.count >= 2)
    for process in found {
      for file in ["cmdline", "environ"] {
        // Only root may look into the environment of a process that isn't dumpable.
        guard let data = FileManager.default.contents(atPath: "/proc/\(process)/\(file)") else {
          #expect(file == "environ" && getuid() != 0)
          continue
        }
        #expect(!String(decoding: data, as: UTF8.self).contains(Program.marker))
      }
    }
    let maps = FileManager.default.contents(atPath: "/proc/\(found[0])/limits") ?? Data()
    let limits = String(decoding: maps, as: UTF8.self)
    #expect(limits.contains(/Max core file size +0 +0/), "no core dumps")
    let handle = try FileHandle(forWritingTo: URL(filePath: fifo))
    try handle.write(contentsOf: Data("\(Program.marker) new\n".utf8))
    try handle.close()
    let text = errors.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    #expect(process.terminationStatus == 0)
    #expect(text.isEmpty)
    try FileManager.default.removeItem(atPath: program.path("password"))
    try FileManager.default.removeItem(atPath: fifo)
    try expectNoMarkerOnDisk()
  }

  private func expectNoMarkerOnDisk() throws {
    let files = try #require(FileManager.default.enumerator(atPath: program.folder))
    for case let name as String in files {
      guard let data = FileManager.default.contents(atPath: program.path(name)) else { continue }
      #expect(data.firstRange(of: Data(Program.marker.utf8)) == nil, "\(name)")
    }
  }

  @Test func theUsersOtherProgramsCantLookIn() throws {
    let fifo = program.path("wait")
    #expect(mkfifo(fifo, 0o600) == 0)
    try program.write("photo", "x")
    for path in [program.folder, fifo, program.path("photo")] { chmod(path, 0o777) }
    let process = Process()
    // Root could always look, so root's run is somebody else's.
    let words = [program.executable, "encrypt", program.path("photo"), "--password-file", fifo]
    process.executableURL = URL(filePath: getuid() == 0 ? "/usr/bin/setpriv" : words[0])
    process.arguments =
      getuid() == 0
      ? ["--reuid=65534", "--clear-groups"] + words : Array(words.dropFirst())
    process.environment = program.environment
    let errors = Pipe()
    (process.standardInput, process.standardError) = (FileHandle.nullDevice, errors)
    try process.run()
    // The files of a process that isn't dumpable belong to root. Source: proc(5).
    let directory = "/proc/\(process.processIdentifier)"
    var status = stat()
    try wait {
      let name = try? String(contentsOfFile: directory + "/comm", encoding: .utf8)
      return name == "photovault\n" && lstat(directory + "/mem", &status) == 0
        && status.st_uid == 0
    }
    let text = try String(contentsOfFile: directory + "/status", encoding: .utf8)
    #expect(text.contains(/Uid:\t[1-9]/), "it doesn't run as root")
    let handle = try FileHandle(forWritingTo: URL(filePath: fifo))
    try handle.write(contentsOf: Data("\(Program.marker) password\n".utf8))
    try handle.close()
    process.waitUntilExit()
    let message = errors.fileHandleForReading.readDataToEndOfFile()
    #expect(process.terminationStatus == 0, "\(String(decoding: message, as: UTF8.self))")
  }

  /// Every failing command around a marked secret; `run` looks for the marker in what it prints.
  @Test func noErrorMessageHoldsASecret() throws {
    try program.write("wrong", "\(Program.marker) wrong")
    try program.write("photo", "x")
    let key = try program.recoveryKey()
    let lines: [[String]] = [
      ["create", "alice", "--password-file", "wrong"],
      ["create", "bob", "--password-file", "wrong", "--vault", "wrong"],
      ["create", "bob", "--password-command", "cat wrong; exit 1"],
      ["passwd", "alice", "--password-file", "wrong"],
      ["recovery-key", "alice", "--password-file", "wrong"],
      ["recover", "bob", "--vault", "home/photos/alice", "--recovery-key-file", "wrong"],
      ["decrypt", "photo", "--password-file", "wrong", "-o", "out"],
      ["recovery-key", "nobody", "--password-file", "wrong"],
      ["create", "c", "--password=\(Program.marker)"], ["create", "c", "-p\(Program.marker)"],
    ]
    for line in lines {
      let words = line.map { "'\($0)'" }.joined(separator: " ")
      let result = try program.shell("exec \"$PV\" \(words) </dev/null")
      #expect(result.status != 0, "\(line)")
      let printed = result.output + result.errors
      #expect(!printed.contains(Program.marker) && !printed.contains(key), "\(printed)")
    }
  }
}
