import Testing

extension MountedTests {
  @Suite struct MemoryTests {
    @Test(
      "a film of 256 MiB goes in, comes out and is changed in place within 64 MiB of the daemon's memory"
    )
    func bigFile() throws {
      let size = (Int(Environment["PHOTOVAULT_TEST_FILM_MIB"] ?? "") ?? 256) << 20
      try MountedVault.withUnmounted { vault in
        // In the background: the process that derives the key from the password is not the daemon.
        try vault.photovault(
          ["mount", MountedVault.user, vault.mountPoint, "--idle", "0"], expecting: 0)
        let daemons = MountTable.daemons(of: vault.folder)
        try vault.shell(
          """
          head -c \(size) /dev/zero | openssl enc -aes-128-ctr -nosalt -K 0 -iv 0 >"$W/film" 2>/dev/null
          cp "$W/film" "$M/film"
          cmp "$W/film" "$M/film"
          """, limit: 600)
        #expect(try peak(daemons, vault) < 64 * 1024)
        try vault.shell(
          """
          printf changed | dd of="$M/film" bs=1 seek=\(size / 2) conv=notrunc status=none
          printf changed | dd of="$W/film" bs=1 seek=\(size / 2) conv=notrunc status=none
          head -c 1000000 "$W/film" >>"$M/film"; head -c 1000000 "$W/film" >>"$W/film"
          cmp "$W/film" "$M/film"
          """, limit: 600)
        #expect(try peak(daemons, vault) < 64 * 1024)
        try vault.photovault(["unmount", vault.mountPoint], password: false, expecting: 0)
        try vault.mount()
        try vault.shell("cmp \"$W/film\" \"$M/film\"", limit: 300)
        try vault.unmount()
      }
    }

    /// The most memory that any of these processes ever had, in KiB.
    private func peak(_ processes: [Int32], _ vault: MountedVault) throws -> Int {
      try #require(!processes.isEmpty)
      return try processes.map { process in
        let text = try vault.shell("awk '/VmHWM/ { print $2 }' /proc/\(process)/status")
        return try #require(Int(text.prefix { $0.isNumber }))
      }.max() ?? 0
    }
  }
}
