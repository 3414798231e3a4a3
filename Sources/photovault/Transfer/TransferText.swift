import Glibc
import Platform

/// What `import` and `export` print at their end.
enum TransferText {
  static func lines(_ tally: ImportTally, user: String) -> [String] {
    var lines: [String] = []
    for (path, twin) in sorted(tally.duplicates) {
      lines.append("duplicate: \(path) holds the same as \(twin)")
    }
    for (path, twin) in sorted(tally.leftOut) {
      lines.append("left out: \(path) holds the same as \(twin)")
    }
    if tally.undated > 0 {
      lines.append(
        "\(counted(tally.undated, "file")) without a date inside: sorted by the time of the last "
          + "change")
    }
    var parts = ["\(counted(tally.files, "file")), \(ByteCount.text(tally.bytes))"]
    if tally.folders > 0 { parts[0] += ", \(counted(tally.folders, "folder"))" }
    if tally.links > 0 { parts[0] += ", \(counted(tally.links, "link"))" }
    var details: [String] = []
    func add(_ count: Int, _ words: String) { if count > 0 { details.append("\(count) \(words)") } }
    add(tally.present, "there already")
    add(tally.duplicates.count, tally.duplicates.count == 1 ? "duplicate" : "duplicates")
    add(tally.leftOut.count, "left out as duplicates")
    add(tally.renamed, "under another name")
    add(tally.skipped, "skipped")
    add(tally.incomplete, "without all attributes")
    add(tally.kept, "not removed")
    add(tally.failed, "failed")
    if !details.isEmpty { parts.append(details.joined(separator: ", ")) }
    lines.append("imported into '\(user)': \(parts.joined(separator: "; "))")
    return lines.map(Terminal.clean)
  }

  static func lines(_ tally: ExportTally, user: String) -> [String] {
    var parts = ["\(counted(tally.files, "file")), \(ByteCount.text(tally.bytes))"]
    if tally.folders > 0 { parts[0] += ", \(counted(tally.folders, "folder"))" }
    if tally.links > 0 { parts[0] += ", \(counted(tally.links, "link"))" }
    var details: [String] = []
    func add(_ count: Int, _ words: String) { if count > 0 { details.append("\(count) \(words)") } }
    add(tally.present, "there already")
    add(tally.renamed, "under another name")
    add(tally.incomplete, "without all attributes")
    add(tally.skipped, "skipped")
    add(tally.damaged, "damaged")
    add(tally.failed, "failed")
    if !details.isEmpty { parts.append(details.joined(separator: ", ")) }
    return [Terminal.clean("exported from '\(user)': \(parts.joined(separator: "; "))")]
  }

  static func counted(_ count: Int, _ one: String) -> String {
    count == 1 ? "1 \(one)" : "\(count) \(one)s"
  }

  private static func sorted(
    _ pairs: [(path: FileName, twin: FileName)]
  ) -> [(path: FileName, twin: FileName)] {
    pairs.sorted { $0.path.bytes.lexicographicallyPrecedes($1.path.bytes) }
  }
}
