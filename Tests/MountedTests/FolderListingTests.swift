import Testing

extension MountedTests {
  /// The kernel keeps listings for a while: no program may see yesterday's.
  @Suite struct FolderListingTests {
    @Test("a change through the mount shows in the listing right behind it")
    func ownChanges() throws {
      try MountedVault.withMounted { vault in
        let listings = try vault.shell(
          """
          list() { ls "$M" | tr '\\n' ' '; echo; }
          echo 1 >"$M/a"; list; list
          echo 2 >"$M/b"; list; list
          mv "$M/a" "$M/c"; list; list
          ln "$M/b" "$M/d"; list; list
          mkdir "$M/e"; list; list
          rm "$M/b"; list; list
          rmdir "$M/e"; list; list
          mv "$M/c" "$M/d"; list; list
          """)
        let expected = [
          "a", "a b", "b c", "b c d", "b c d e", "c d e", "c d", "d",
        ]
        #expect(listings == expected.map { "\($0) \n\($0) \n" }.joined())
        // Many at once, with their attributes, while others change the folder.
        try vault.shell(
          """
          for round in $(seq 20); do
            (for name in x y z; do echo "$round" >"$M/$name$round"; done) &
            ls -l "$M" >/dev/null; ls "$M" >/dev/null
            wait
            test "$(ls -l "$M" | grep -c " [xyz][0-9]*$")" = $((3 * round))
          done
          """)
        try vault.unmount()
      }
    }

    @Test("what is changed beneath the mount shows within two seconds, however often it is listed")
    func changesBeneath() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          for name in a b c; do echo "$name" >"$M/$name"; done
          ls -l "$M" >/dev/null; ls -l "$M" >/dev/null
          rm "$V"/*.securedData
          end=$(($(date +%s%N) + 2000000000))
          while test -n "$(ls "$M")"; do test "$(date +%s%N)" -lt $end; sleep 0.05; done
          """)
        try vault.unmount()
      }
    }
  }
}
