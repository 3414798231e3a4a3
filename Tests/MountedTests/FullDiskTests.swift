import Testing

extension MountedTests {
  /// A vault on a disk of 20 MB. Needs root, to mount that disk.
  @Suite struct FullDiskTests {
    @Test(
      "a copy that doesn't fit fails with ENOSPC and leaves no trace", arguments: Names.allCases)
    func copyThatDoesNotFit(names: Names) throws {
      try withSmallDisk(names: names) { vault in
        try vault.shell(
          """
          cp "$PHOTOS"/photo.* "$M/"
          (! cp "$W/thirty" "$M/big" 2>"$W/errors")
          grep -q 'No space left on device' "$W/errors"
          for photo in "$PHOTOS"/photo.*; do cmp "$photo" "$M/${photo##*/}"; done
          rm -f "$M/big"
          head -c 5000000 /dev/urandom >"$W/five"
          cp "$W/five" "$M/five"
          """)
        try vault.remount()
        try vault.shell(
          """
          cmp "$W/five" "$M/five"
          for photo in "$PHOTOS"/photo.*; do cmp "$photo" "$M/${photo##*/}"; done
          test "$(ls "$M" | wc -l)" = 5
          """)
      }
    }

    @Test(
      "overwriting a photo on a full disk keeps the old one",
      arguments: [
        "cp \"$W/thirty\" \"$M/photo\"",  // opens with O_TRUNC
        "cat \"$W/thirty\" >\"$M/photo\"",
        "dd if=\"$W/thirty\" of=\"$M/photo\" bs=1M conv=fsync",
        "cp \"$W/thirty\" \"$M/photo.tmp\" && mv \"$M/photo.tmp\" \"$M/photo\"",
        "rsync --whole-file \"$W/thirty\" \"$M/photo\"",
      ])
    func overwritingKeepsTheOld(command: String) throws {
      try withSmallDisk { vault in
        try vault.shell(
          """
          head -c 5000000 /dev/urandom >"$W/old"
          cp "$W/old" "$M/photo"; cp "$W/old" "$M/neighbour"
          code=0; { \(command); } 2>"$W/errors" || code=$?
          test $code != 0
          grep -q 'No space left on device' "$W/errors"
          cmp "$W/old" "$M/photo"
          cmp "$W/old" "$M/neighbour"
          """)
        try vault.remount()
        try vault.shell(
          """
          cmp "$W/old" "$M/photo"; cmp "$W/old" "$M/neighbour"
          rm "$M/neighbour"
          head -c 6000000 /dev/urandom >"$W/new"
          cp "$W/new" "$M/photo"
          cmp "$W/new" "$M/photo"
          """)
      }
    }

    @Test("programs are told at the latest by fsync or close")
    func everyProgramIsTold() throws {
      try withSmallDisk { vault in
        try vault.shell(
          """
          python3 - "$M/photo" <<'END'
          import errno, os, sys
          file = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
          told = None
          try:
              for _ in range(30):
                  os.write(file, os.urandom(1 << 20))
              os.fsync(file)
          except OSError as error:
              told = error.errno
          try:
              os.close(file)
          except OSError as error:
              told = told or error.errno
          assert told == errno.ENOSPC, told
          END
          """)
      }
    }

    @Test("folders, renames and removals still work when not a block is free")
    func noBlockFree() throws {
      try withSmallDisk { vault in
        try vault.shell(
          """
          cp "$PHOTOS/photo.jpg" "$M/"; mkdir "$M/album"
          # Beside the vault, until nothing goes any more.
          dd if=/dev/zero of="$V/../filler" bs=64K 2>/dev/null || true
          dd if=/dev/zero of="$V/../filler" bs=512 oflag=append conv=notrunc 2>/dev/null || true
          cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          mv "$M/photo.jpg" "$M/album/"
          (! cp "$PHOTOS/photo.png" "$M/album/photo.jpg")
          cmp "$PHOTOS/photo.jpg" "$M/album/photo.jpg"
          rm "$V/../filler"
          cp "$PHOTOS/photo.png" "$M/album/photo.jpg"
          cmp "$PHOTOS/photo.png" "$M/album/photo.jpg"
          rm -r "$M/album"
          """)
      }
    }

    private func withSmallDisk(
      names: Names = .encrypted, _ body: (MountedVault) throws -> Void
    ) throws {
      let disk = try Scratch.makeFolder()
      defer { Scratch.remove(disk) }
      try Command.shell("mount -t tmpfs -o size=20m,mode=0755 disk \(disk)")
      defer { _ = try? Command.run(["umount", "-l", disk]) }
      try MountedVault.withMounted(names: names, backing: disk + "/vault") { vault in
        try vault.shell("head -c 30000000 /dev/urandom >\"$W/thirty\"")
        try body(vault)
      }
    }
  }
}
