import Fuzzing
import Glibc
import Testing

/// Mutations of valid samples, for so many seconds each (`PHOTOVAULT_FUZZ_SECONDS`); the seed is
/// printed before, and `PHOTOVAULT_FUZZ_SEED` repeats it.
@Suite struct FuzzTests {
  @Test("no alteration traps, hangs or is believed", arguments: FuzzTarget.allCases)
  func alterations(of target: FuzzTarget) throws {
    let seed = Self.number("PHOTOVAULT_FUZZ_SEED") ?? UInt64.random(in: 0...UInt64.max)
    let end = Self.now + Double(Self.number("PHOTOVAULT_FUZZ_SECONDS") ?? 2)
    print("fuzz \(target): seed \(seed)")
    for sample in target.corpus { try target.run(sample) }
    var mutator = Mutator(seed: seed)
    var count = 0
    while Self.now < end {
      for _ in 0..<50 {
        let input = mutator.mutated(target.corpus, dictionary: target.dictionary)
        do { try target.run(input) } catch {
          Issue.record("\(error): seed \(seed), input \(input)")
          return
        }
        count += 1
      }
    }
    print("fuzz \(target): tried \(count)")
    #expect(count > 0)
  }

  /// Else the alterations would be tried on what is refused at once.
  @Test("the samples are valid", arguments: FuzzTarget.allCases)
  func samples(of target: FuzzTarget) throws {
    #expect(!target.corpus.isEmpty)
    for sample in target.corpus { try target.run(sample) }
    #expect(try target.accepts(target.corpus[0]))
    #expect(try !target.accepts([]))
  }

  private static func number(_ variable: String) -> UInt64? {
    getenv(variable).flatMap { UInt64(String(cString: $0)) }
  }

  private static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }
}
