import Fuzzing
import Platform
import Testing

@testable import photovault

/// Words of any bytes: an error that says so, or a command; never a trap.
@Suite struct ArgumentFuzzTests {
  @Test func alteredWords() {
    let seed = UInt64.random(in: 0...UInt64.max)
    print("fuzz arguments: seed \(seed)")
    var mutator = Mutator(seed: seed)
    let specs =
      Commands.all.flatMap { $0.options }.map { $0.spelling }
      + MountOptions.specs.map { $0.spelling }
    let dictionary: [[UInt8]] =
      (specs + [
        "=", "--", "-", "-o", ",", "\\,", "idle=1h", "setuid=", "90s", "99999999999999999999h", "0",
        "~", "/", "..", "photovault#alice", "ro", "nonempty", "x-gvfs-hide", "\u{0}", "é",
      ]).map { Array($0.utf8) } + [[0xFF], [0xC0, 0xAF]]
    let corpus =
      [
        "alice\n/mnt\n--idle\n10m", "alice\n--password-file=/x\n--read-only",
        "alice\n/mnt\n-o\nidle=10m,password-file=F,allow_other", "--json", "a\nb\nc\n--\n--d",
        "photovault#alice\n/mnt\n-o\nro,setuid=root", "alice\n/m\n-sfnv\n-N\nx\n-t\nfuse",
      ].map { Array($0.utf8) } + Commands.all.map { Array($0.name.utf8) }
    var accepted = 0
    for _ in 0..<20_000 {
      let input = mutator.mutated(corpus, dictionary: dictionary)
      let words = input.split(separator: 10).map { FileName(Array($0)) }
      let command = Commands.all[mutator.below(Commands.all.count)]
      do throws(CommandError) {
        let arguments = try Arguments(words, for: command)
        accepted += 1
        if command == Mount.self { _ = try MountOptions(arguments) }
        if let translated = MountInvocation.words(FileName("mount.photovault"), words) {
          _ = try Arguments(Array(translated.dropFirst()), for: Mount.self)
        }
        _ = MountInvocation.words(FileName("photovault"), words)
        _ = try FUSEOptionList(words.map(\.description), known: MountOptions.specs)
      } catch { if error.message.isEmpty { Issue.record("no message: seed \(seed), \(input)") } }
    }
    #expect(accepted > 100, "seed \(seed)")
  }
}
