import Testing

extension MountedVault {
  /// Runs a script in an empty folder on the ordinary disk and in an empty folder of the mount: both must
  /// end up alike and say the same, now and after a remount.
  func expectLikeAnOrdinaryFolder(_ script: String, limit: Int = 120) throws {
    try shell("mkdir \"$W/folder\" \"$M/folder\"")
    let said = try shell("cd \"$W/folder\"\n" + script, limit: limit)
    let mountedSaid = try shell("cd \"$M/folder\"\n" + script, limit: limit)
    #expect(mountedSaid == said)
    let compare = """
      python3 "$T/manifest.py" --no-times "$W/folder" >"$W/expected"
      python3 "$T/manifest.py" --no-times "$M/folder" | diff "$W/expected" -
      """
    try shell(compare)
    try remount()
    try shell(compare)
  }
}
