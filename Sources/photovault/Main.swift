import Glibc
import Platform

@main enum Main {
  static func main() {
    do throws(Errno) { try ProcessHardening.apply() } catch {
      Terminal.error(CommandError("hardening this process", error))
      exit(ExitCode.failed.rawValue)
    }
    // Some parents' threads block signals, and children inherit that: ^C shall end us all the same.
    var none = sigset_t()
    sigemptyset(&none)
    sigprocmask(SIG_SETMASK, &none, nil)
    // A reader that goes away is an error of write, not the end of the process.
    signal(SIGPIPE, SIG_IGN)
    let words = words()
    exit(run(MountInvocation.words(programName(), words) ?? words).rawValue)
  }

  static func run(_ words: [FileName]) -> ExitCode {
    do throws(CommandError) {
      guard let first = words.first?.description else { throw .usage("no command given") }
      switch first {
      case "--help", "help":
        try Terminal.print(Help.overview)
        return .done
      case "--version":
        try Terminal.print("photovault \(Help.version)")
        return .done
      case Daemon.command:
        return Daemon.run()
      case MountWatcher.command:
        return MountWatcher.run()
      default:
        break
      }
      guard let command = Commands.named(first) else {
        throw .usage("unknown command \(first)")
      }
      let arguments = try Arguments(Array(words.dropFirst()), for: command)
      if arguments.has("help") {
        try Terminal.print(Help.text(command))
        return .done
      }
      return try command.run(arguments)
    } catch {
      Terminal.error(error)
      return error.exitCode
    }
  }

  private static func programName() -> FileName {
    CommandLine.unsafeArgv[0].map { FileName(cString: $0) } ?? FileName("photovault")
  }

  /// `CommandLine.arguments` repairs bytes that aren't UTF-8, and so breaks file names.
  private static func words() -> [FileName] {
    (1..<max(1, Int(CommandLine.argc))).compactMap { index in
      CommandLine.unsafeArgv[index].map { FileName(cString: $0) }
    }
  }
}
