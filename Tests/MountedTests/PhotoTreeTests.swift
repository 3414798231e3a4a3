import Testing

extension MountedTests {
  /// Trees of real photos, in and out.
  @Suite struct PhotoTreeTests {
    @Test(
      "a tree of photos goes in with cp -a and comes out byte for byte after a remount",
      arguments: Names.allCases)
    func copiedTree(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(Self.makeTree)
        try vault.shell(
          """
          python3 "$T/manifest.py" "$W/tree" >"$W/expected"
          cp -a "$W/tree" "$M/"
          python3 "$T/manifest.py" "$M/tree" | diff "$W/expected" -
          """)
        try vault.remount()
        try vault.shell(
          """
          python3 "$T/manifest.py" "$M/tree" | diff "$W/expected" -
          cp -a "$M/tree" "$W/out"
          python3 "$T/manifest.py" "$W/out" | diff "$W/expected" -
          """)
      }
    }

    @Test(
      "every stored blob opens without the program, by the recovery key", arguments: Names.allCases)
    func blobsOpenWithoutTheProgram(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(Self.makeTree + "\ncp -a \"$W/tree\" \"$M/\"")
        try vault.unmount()
        try Scratch.write(try vault.recoveryKey() + "\n", to: vault.folder + "/key")
        try vault.shell(
          """
          # Inode for inode, so that a photo with two names counts once on either side.
          list() { find "$1" -type f -name "$2" -printf '%i %p\\0' | sort -zu -k1,1n | cut -z -d' ' -f2-; }
          list "$W/tree" '*' | while IFS= read -rd '' file; do sha256sum <"$file"; done | sort >"$W/expected"
          test "$(wc -l <"$W/expected")" -ge 10
          list "$V" '*.securedData' | while IFS= read -rd '' blob; do
            python3 "$T/../../../scripts/share/read-vault.py" "$W/../key" "$blob" "$W/opened"
            sha256sum <"$W/opened"; rm "$W/opened"
          done | sort | diff "$W/expected" -
          """)
      }
    }

    @Test(
      "a whole vault is restored without the program, names included", arguments: Names.allCases)
    func vaultRestoredWithoutTheProgram(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        // Owners, extended attributes and fifos are beyond it.
        try vault.shell(
          Self.makeTree + """

            rm "$W/tree/fifo"
            chown -hR 0:0 "$W/tree"
            setfattr -x user.comment "$W/tree/photo.jpg"; setfattr -x user.album "$W/tree/2021"
            printf long >"$W/tree/$(printf 'x%.0s' $(seq 255))"
            mkdir "$W/tree/$(printf 'y%.0s' $(seq 255))"
            cp -a "$W/tree" "$M/"
            """)
        try vault.unmount()
        try Scratch.write(try vault.recoveryKey() + "\n", to: vault.folder + "/key")
        try vault.shell(
          """
          python3 "$T/../../../scripts/share/read-vault.py" "$W/../key" "$V" "$W/out"
          python3 "$T/manifest.py" "$W/tree" >"$W/expected"
          python3 "$T/manifest.py" "$W/out/tree" | diff "$W/expected" -
          """, limit: 120)
      }
    }

    @Test("what is on the disk is what the format document says", arguments: Names.allCases)
    func formatDocument(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        // Chunks of one leaf, of two and of four; one leaf has no index.
        try vault.shell(
          """
          for size in 60000 400000 12300000 30000000; do head -c $size /dev/urandom >"$M/$size"; done
          mkdir "$M/album"; long=$(printf 'n%.0s' {1..250}); echo long >"$M/part"; mv "$M/part" "$M/album/$long"
          setfattr -n user.comment -v sunset "$M/400000"; setfattr -n user.album -v '' "$M/album"
          """)
        try vault.unmount()
        try Scratch.write(try vault.recoveryKey() + "\n", to: vault.folder + "/key")
        try vault.shell(
          """
          python3 "$T/format.py" "$T/../../../Sources/FORMAT.md" "$W/../key" "$V" \
            "$W/../home/accounts/alice.json" "$W/../password" >"$W/said"
          printf 'user.album \nuser.comment 73756e736574\n3 indexes, levels [0, 1, 2]; 5 seals\n' | diff - "$W/said"
          """)
      }
    }

    @Test("the reader of the format writes nothing of what was altered", arguments: Names.allCases)
    func alteredVaultWithoutTheProgram(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell("printf one >\"$M/a\"; printf two >\"$M/b\"")
        try vault.unmount()
        try Scratch.write(try vault.recoveryKey() + "\n", to: vault.folder + "/key")
        try vault.shell(
          """
          read_vault() { python3 "$T/../../../scripts/share/read-vault.py" "$@" 2>"$W/said"; }
          fails() { local status=0; "$@" || status=$?; test $status = 1; }
          blob=$(ls "$V"/*.securedData | head -n 1)
          printf altered | dd of="$blob" bs=1 seek=40 conv=notrunc status=none
          fails read_vault "$W/../key" "$V" "$W/out"
          grep -q altered "$W/said"; test "$(ls "$W/out" | wc -l)" = 1
          fails read_vault "$W/../key" "$blob" "$W/one"
          test ! -e "$W/one"
          echo wrong >"$W/wrong"
          fails read_vault "$W/wrong" "$V" "$W/none"
          grep -q 'another key' "$W/said"; test ! -e "$W/none"
          """)
      }
    }

    @Test("what the program decrypts by itself is the photo")
    func programDecryptsASingleBlob() throws {
      try MountedVault.withMounted(names: .plain) { vault in
        try vault.shell("cp \"$PHOTOS/photo.heic\" \"$M/\"")
        try vault.unmount()
        try Scratch.write(try vault.recoveryKey() + "\n", to: vault.folder + "/key")
        _ = try Command.run(
          [
            Checkout.program, "decrypt", "--password-file", vault.folder + "/key",
            "-o", vault.work + "/photo.heic", vault.backing + "/photo.heic.securedData",
          ], expecting: 0)
        try vault.shell("cmp \"$PHOTOS/photo.heic\" \"$W/photo.heic\"")
      }
    }

    @Test(
      "a changed mode, owner, time or xattr is there after a remount", arguments: Names.allCases)
    func changedMetadata(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(
          """
          cp "$PHOTOS/photo.jpg" "$M/"
          mkdir "$M/album"
          chmod 0640 "$M/photo.jpg"
          chmod 2750 "$M/album"
          chown 1001:1002 "$M/photo.jpg" "$M/album"
          setfattr -n user.rating -v 5 "$M/photo.jpg"
          setfattr -n user.gone -v 1 "$M/photo.jpg"
          setfattr -x user.gone "$M/photo.jpg"
          setfattr -n user.binary -v 0x00ff0a "$M/album"
          touch -d '2020-02-29 23:59:59.987654321' "$M/photo.jpg" "$M/album"
          python3 "$T/manifest.py" "$M" >"$W/expected"
          grep -q 987654321 "$W/expected"
          """)
        try vault.remount()
        try vault.shell(
          """
          python3 "$T/manifest.py" "$M" | diff "$W/expected" -
          getfattr --only-values -n user.rating "$M/photo.jpg" | grep -qx 5
          cd "$M"; getfattr photo.jpg | (! grep -E 'gone|chunks|photovault')
          """)
      }
    }

    /// Makes $W/tree of real photos with everything that a copy can lose.
    private static let makeTree = """
      mkdir -p "$W/tree/2021/Été am See" "$W/tree/empty folder" "$W/tree/locked"
      cp "$PHOTOS"/* "$W/tree/"
      cp "$PHOTOS/photo.jpg" "$W/tree/2021/Été am See/IMG 0001 \\"quoted\\" 'x' \\\\.JPG"
      cp "$PHOTOS/photo.heic" "$W/tree/2021/-dash.heic"
      head -c 1000000 /dev/urandom >"$W/tree/2021/random"
      for size in 1 15 16 17 65536; do head -c $size /dev/urandom >"$W/tree/2021/size $size"; done
      : >"$W/tree/2021/empty"
      : >"$W/tree/$(printf 'line\\nbreak')"
      : >"$W/tree/photo.jpg.securedData"
      mkdir "$W/tree/folder.securedData"
      ln "$W/tree/photo.jpg" "$W/tree/2021/hard link.jpg"
      ln -s ../photo.jpg "$W/tree/2021/link.jpg"
      ln -s /nowhere/at/all "$W/tree/dangling"
      ln -s 2021 "$W/tree/folder link"
      mkfifo "$W/tree/fifo"
      setfattr -n user.comment -v 'a note' "$W/tree/photo.jpg"
      setfattr -n user.album -v 'a day' "$W/tree/2021"
      chmod 0600 "$W/tree/photo.png"; chmod 0444 "$W/tree/photo.tiff"; chmod 0755 "$W/tree/film.mp4"
      chmod 0711 "$W/tree/2021"; chmod 0500 "$W/tree/locked"
      chown -h 1000:1000 "$W/tree/photo.heic" "$W/tree/2021" "$W/tree/dangling"
      find "$W/tree" -depth -exec touch -h -d '2001-02-03 04:05:06.123456789' {} +
      touch -d '1969-12-31 23:59:59.5' "$W/tree/photo.png"
      touch -d '2040-01-01 00:00:00.000000001' "$W/tree/film.mp4"
      """
  }
}
