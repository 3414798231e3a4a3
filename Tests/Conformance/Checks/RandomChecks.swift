import Glibc
import Platform

/// Random operations by seed, compared with a model or with a plain directory.
enum RandomChecks {
  /// $CONFORMANCE_SEEDS: more of them, for a longer run.
  private static let seeds =
    1...max(1, getenv("CONFORMANCE_SEEDS").flatMap { Int(String(cString: $0)) } ?? 6)

  static let all: [Check] =
    seeds.map { seed in
      Check("randomOperationsMatchAPlainDirectory\(seed)") {
        try OperationMix.run(on: $0, seed: UInt64(seed), count: 2000)
      }
    }
    + seeds.map { seed in
      Check("randomReadsAndWritesMatchAModel\(seed)") {
        try FileExerciser.run(on: $0, seed: UInt64(seed), count: 700, mapping: false)
      }
    }
    + (1...3).map { seed in
      Check("randomReadsWritesAndMappingsMatchAModel\(seed)", needs: .systemCalls) {
        try FileExerciser.run(on: $0, seed: UInt64(seed + 100), count: 700, mapping: true)
      }
    }
}
