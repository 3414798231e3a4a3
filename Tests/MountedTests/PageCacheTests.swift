import Testing

extension MountedTests {
  /// New files are written past the kernel's pages where Linux can do that right (6.6 and later).
  @Suite struct PageCacheTests {
    @Test("what is written is read by who has the file open, and anew, and after a remount")
    func writtenAndRead() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          python3 "$T/written_and_read.py" "$M"
          cd "$M"; sha256sum * >"$W/sums"
          """)
        try vault.remount()
        try vault.shell("cd \"$M\"; sha256sum --quiet -c \"$W/sums\"")
      }
    }

    @Test("a copied photo leaves no pages behind on Linux 6.6 and later; one that is read does")
    func pages() throws {
      try MountedVault.withMounted { vault in
        let pages = try vault.shell(
          """
          head -c 1000000 /dev/urandom >"$W/photo"; cp "$W/photo" "$M/photo"
          if printf '6.6\\n%s\\n' "$(uname -r)" | sort -CV; then expected=0; else expected=245; fi
          test "$(fincore -n -r -o PAGES "$M/photo")" = $expected
          cmp "$W/photo" "$M/photo"; fincore -n -r -o PAGES "$M/photo"
          """)
        #expect(pages == "245\n")
      }
    }
  }
}
