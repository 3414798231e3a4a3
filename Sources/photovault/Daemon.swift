import Glibc
import Platform
import Synchronization

/// The process in the background that answers for a mount. It is this program, started anew: the
/// job and the recovery key reach it through a pipe, and another brings back how it went.
enum Daemon {
  /// The word it is started with.
  static let command = "mount-daemon"
  private static let jobNumber: CInt = 3
  private static let answerNumber: CInt = 4
  private static let greatestJob = 1 << 16

  private struct Answer: Codable {
    let exitCode: CInt
    var message = ""
    var hint: String?
  }

  /// Returns when the folder answers. Throws what the other process could not do.
  static func start(
    _ job: MountJob, recoveryKey: consuming SecretBytes
  ) throws(CommandError) {
    let bytes = try about("starting the mount's process") { () throws(Errno) in
      try exchange(job, recoveryKey)
    }
    guard let answer = bytes.withUnsafeBytes({ JSONMessage.decode(Answer.self, from: $0) }) else {
      throw CommandError(
        .failed, "the mount's process ended without a word", hint: "look into the system's log")
    }
    guard answer.exitCode != ExitCode.done.rawValue else { return }
    throw CommandError(
      ExitCode(rawValue: answer.exitCode) ?? .failed, answer.message, hint: answer.hint)
  }

  /// The other process's whole life.
  static func run() -> ExitCode {
    // Still in the process group that it was started in: where that is autofs's, the mount point
    // answers nobody else.
    leaveDirectory()
    do throws(CommandError) {
      var recoveryKey: SecretBytes?
      let job = try receiveJob(&recoveryKey)
      guard let key = recoveryKey.take() else { return .failed }
      let isReady = Mutex(false)
      let code = try job.run(recoveryKey: key) {
        isReady.withLock { $0 = true }
        setsid()
        send(Answer(exitCode: ExitCode.done.rawValue))
        leaveTerminal()
      }
      if isReady.withLock({ $0 }) { return code }
      throw CommandError(
        .failed, "\(job.mountPoint) was locked or taken away before it was ready",
        hint: "mount it again")
    } catch {
      send(Answer(exitCode: error.exitCode.rawValue, message: error.message, hint: error.hint))
      return error.exitCode
    }
  }

  /// No terminal, no directory kept busy, and a name: the kernel would show "exe".
  static func takeOwnLife() {
    setsid()
    leaveDirectory()
  }

  private static func leaveDirectory() {
    chdir("/")
    NativeThread.nameThis("photovault")
  }

  private static func send(_ answer: Answer) {
    let bytes = JSONMessage.encode(answer)
    // Nobody waits any more if whoever started us was interrupted; the mount stands.
    _ = write(answerNumber, bytes, bytes.count)
    close(answerNumber)
  }

  private static func leaveTerminal() {
    Log.send(to: .systemLog)
    let null = open("/dev/null", O_RDWR | O_CLOEXEC)
    if null >= 0 { dup2(null, 2) }
    close(null)
  }

  private static func receiveJob(
    _ recoveryKey: inout SecretBytes?
  ) throws(CommandError) -> MountJob {
    let input = FileDescriptor(owning: jobNumber)
    let bytes = try about("reading the job") { () throws(Errno) in
      try whole(input.rawValue)
    }
    let job: MountJob? = bytes.withUnsafeBytes { bytes in
      JSONMessage.decode(MountJob.self, from: bytes.prefix { $0 != UInt8(ascii: "\n") })
    }
    guard let job else { throw CommandError(.failed, "the job is incomplete") }
    recoveryKey = try about("reading the job") { () throws(Errno) in
      try bytes.withUnsafeBytes { bytes throws(Errno) in
        let rest = bytes.drop { $0 != UInt8(ascii: "\n") }.dropFirst()
        return try SecretBytes(copying: UnsafeRawBufferPointer(rebasing: rest))
      }
    }
    return job
  }

  private static func whole(_ fd: CInt) throws(Errno) -> SecretBytes {
    var bytes = try SecretBytes(count: greatestJob)
    var done = 0
    while done < bytes.count {
      let count = try bytes.withUnsafeMutableBytes { buffer throws(Errno) in
        try Syscalls.read(fd, into: UnsafeMutableRawBufferPointer(rebasing: buffer[done...]))
      }
      if count == 0 { break }
      done += count
    }
    bytes.truncate(to: done)
    return bytes
  }

  /// Starts the process, hands it the job and waits for all that comes back.
  private static func exchange(
    _ job: MountJob, _ recoveryKey: borrowing SecretBytes
  ) throws(Errno) -> SecretBytes {
    let answers = try Pipe()
    let output = try answers.readEnd.duplicate()
    let input = try spawn(job, answers)
    do throws(Errno) {
      try JSONMessage.write(job, to: input.rawValue)
      try recoveryKey.withUnsafeBytes { bytes throws(Errno) in
        try Syscalls.write(input.rawValue, bytes)
      }
    } catch {
      // One that ended early says why.
    }
    try input.close()
    return try whole(output.rawValue)
  }

  /// The end to write the job to. Takes the pipe's ends along: no copy of them stays open here.
  private static func spawn(
    _ job: MountJob, _ answers: consuming Pipe
  ) throws(Errno) -> FileDescriptor {
    let jobs = try Pipe()
    // Standard error stays until the folder answers. The process becomes init's child.
    _ = try ChildProcess.spawn(
      "/proc/self/exe", ["photovault", command, job.user, job.mountPoint].map { FileName($0) },
      descriptors: [nil, nil, 2, jobs.readEnd.rawValue, answers.writeEnd.rawValue])
    return try jobs.writeEnd.duplicate()
  }
}
