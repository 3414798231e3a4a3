import Glibc
import Platform

/// Random operations by seed, compared with a model or with a plain directory.
enum RandomChecks {
  static let all: [Check] =
    (1...6).map { seed in
      Check("randomOperationsMatchAPlainDirectory\(seed)") {
        try OperationMix.run(on: $0, seed: UInt64(seed), count: 2000)
      }
    }
    + (1...6).map { seed in
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
