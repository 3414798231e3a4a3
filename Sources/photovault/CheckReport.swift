import Platform
import VaultStorage

/// What `check --json` prints. Members are added, never taken away or given another meaning.
struct CheckReport: Encodable {
  let user: String
  let vault: String
  /// As the exit code says it: no damage, or all of it put right without loss.
  let clean: Bool
  let counts: Counts
  /// By stored path.
  let findings: [Finding]

  struct Counts: Encodable {
    let files: Int
    let bytes: Int64
    let directories: Int
    let damaged: Int
    let leftovers: Int
    let orphans: Int
    let strangers: Int
    let missingIndexes: Int
    let missingSeals: Int
    let setAside: Int
  }

  struct Finding: Encodable {
    let kind: String
    let damage: Bool
    /// Missing where the name is lost, and for what never shows.
    let path: String?
    let storedPath: String
    let reason: String
    /// "none", "mended", "renamed", "set aside" or "failed".
    let repair: String
    let repairDetail: String?
  }

  init(_ user: String, vault: String, _ report: VaultCheck.Report) {
    self.user = user
    self.vault = vault
    clean = report.isInOrder
    func count(_ kind: VaultFinding.Kind) -> Int { report.findings.count { $0.kind == kind } }
    counts = Counts(
      files: report.counts.files, bytes: report.counts.bytes,
      directories: report.counts.directories, damaged: report.findings.count { $0.isDamage },
      leftovers: count(.leftover), orphans: count(.orphan), strangers: count(.stranger),
      missingIndexes: report.counts.unindexed, missingSeals: report.counts.unsealed,
      setAside: report.counts.setAside)
    findings = report.findings.map { finding in
      let (repair, detail) = CheckText.words(finding.repair)
      return Finding(
        kind: finding.kind.rawValue, damage: finding.isDamage, path: finding.path?.description,
        storedPath: finding.storedPath.description, reason: finding.reason, repair: repair,
        repairDetail: detail)
    }
  }
}

/// What `check` prints for people.
enum CheckText {
  /// What is no damage.
  static func isDebris(_ kind: VaultFinding.Kind) -> Bool { kind == .leftover || kind == .orphan }

  /// "damaged: album/IMG_1.jpg (Zm9v.securedData): its bytes are not those that were written"
  static func line(_ finding: VaultFinding) -> String {
    let stored = finding.storedPath.count == 0 ? "." : finding.storedPath.description
    let place =
      finding.path.map { "\($0.count == 0 ? FileName("/") : $0) (\(stored))" } ?? stored
    let (_, detail) = words(finding.repair)
    let done = detail.map { "; \($0)" } ?? ""
    return Terminal.clean("\(word(finding)): \(place): \(finding.reason)\(done)")
  }

  private static func word(_ finding: VaultFinding) -> String {
    switch finding.kind {
    case .blob, .link, .attribute, .directory: "damaged"
    case .index: "wrong index"
    case .replaced: "replaced"
    case .moved: "moved"
    case .companion, .name: "name lost"
    case .unreadable: "unreadable"
    case .leftover, .orphan: "left over"
    case .stranger: "foreign"
    }
  }

  static func words(_ repair: VaultFinding.Repair) -> (word: String, detail: String?) {
    switch repair {
    case .none: ("none", nil)
    case .mended(let what): ("mended", what)
    case .renamed(let name, let folder):
      (
        "renamed",
        (name.map { "it is now '\($0)'" } ?? "what is in it has new names")
          + ", see \(folder)/note.txt"
      )
    case .setAside(let folder): ("set aside", "moved to \(folder)")
    case .failed(let why): ("failed", "not put right: \(why)")
    }
  }

  /// The last lines.
  static func summary(_ report: VaultCheck.Report, user: String, repaired: Bool) -> [String] {
    let counts = report.counts
    let damaged = report.findings.count { $0.isDamage }
    var lines: [String] = []
    if counts.setAside > 0 {
      lines.append(
        "\(counted(counts.setAside, "file")) set aside in .photovault-damaged by a repair")
    }
    if counts.unindexed > 0 {
      lines.append(
        "\(counted(counts.unindexed, "chunk index", "chunk indexes")) missing: no damage, but "
          + "such photos open more slowly")
    }
    if counts.unsealed > 0 {
      lines.append(
        "\(counted(counts.unsealed, "place seal")) missing: no damage, but whether such photos "
          + "were exchanged can't be told")
    }
    var result = damaged == 0 ? "no damage" : "\(damaged) damaged"
    if damaged > 0, repaired {
      let mended = report.findings.count { finding in
        if case .mended = finding.repair { finding.isDamage } else { false }
      }
      result += ", \(mended) of them put right"
    }
    lines.append(
      "checked '\(user)': \(counted(counts.files, "file")), \(ByteCount.text(counts.bytes)), "
        + "\(counted(counts.directories, "folder")): \(result)")
    return lines
  }

  private static func counted(_ count: Int, _ one: String, _ many: String? = nil) -> String {
    count == 1 ? "1 \(one)" : "\(count) \(many ?? one + "s")"
  }
}
