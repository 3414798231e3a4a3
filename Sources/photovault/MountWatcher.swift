import FUSESession
import Glibc
import Platform

/// A second, small process that outlives a mount's own: it removes the traces of the photos on the
/// desktop and, if the other process was killed, takes the dead mount away. It holds no secret,
/// only the read end of a pipe whose other end closes with the mount's process.
struct MountWatcher: ~Copyable {
  /// The word it is started with.
  static let command = "mount-watcher"
  private static let pipeNumber: CInt = 3
  private static let farewell = UInt8(ascii: "q")

  private struct Assignment: Codable {
    let record: MountRecord
    let registry: String
  }

  private let pipe: FileDescriptor

  /// Starts the process, before the mount is made.
  init(_ record: MountRecord, _ registry: MountRegistry) throws(Errno) {
    let pipe = try Pipe()
    // It is not waited for: this process ends first, by one way or another.
    _ = try ChildProcess.spawn(
      "/proc/self/exe",
      ["photovault", Self.command, record.mountPoint].map { FileName($0) },
      descriptors: [nil, nil, nil, pipe.readEnd.rawValue])
    let assignment = Assignment(record: record, registry: registry.path)
    try JSONMessage.write(assignment, to: pipe.writeEnd.rawValue)
    self.pipe = try pipe.writeEnd.duplicate()
  }

  /// Sends it home: all is put away. A process that is killed gets no chance to say so.
  deinit { _ = write(pipe.rawValue, [Self.farewell], 1) }

  /// The other process's whole life.
  static func run() -> ExitCode {
    Daemon.takeOwnLife()
    // Who ends the session ends the mount's process too; that one says when we may go.
    for number in [SIGTERM, SIGINT, SIGHUP] { signal(number, SIG_IGN) }
    Log.send(to: .systemLog)
    var input: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = read(pipeNumber, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      input += chunk[..<count]
    }
    let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1)
    guard let first = parts.first,
      let assignment = JSONMessage.decode(Assignment.self, from: first)
    else { return .done }
    // Without a farewell the mount's process was killed.
    let code = parts.count == 1 ? cleanUp(assignment) : .done
    let mountPoint = assignment.record.mountPoint
    for trace in DesktopTraces.remove(of: mountPoint) {
      Log.warning("not removed after the end of the mount at \(mountPoint): \(trace)")
    }
    return code
  }

  private static func cleanUp(_ assignment: Assignment) -> ExitCode {
    let mountPoint = assignment.record.mountPoint
    Log.error("the process of the mount at \(mountPoint) is gone; taking the mount away")
    // The pipe may close a moment before the kernel cuts the connection: the mount then looks alive.
    for attempt in 1...20 {
      do throws(CommandError) {
        try MountPoint.clearStaleMount(mountPoint)
        break
      } catch {
        if error.exitCode == .alreadyMounted, attempt < 20 {
          usleep(100_000)
          continue
        }
        if error.exitCode == .alreadyMounted { return .done }  // somebody else's, and alive
        Log.error(error.message)
        return error.exitCode
      }
    }
    if assignment.record.mountPointWasMade { rmdir(mountPoint) }
    let registry = MountRegistry(path: assignment.registry)
    if registry.record(of: mountPoint)?.process == assignment.record.process {
      registry.remove(mountPoint)
    }
    return .done
  }
}
