import Testing

extension MountedTests {
  /// Someone with access to the vault's directory, but without the key.
  @Suite struct TamperTests {
    @Test(
      "each way to damage a blob gives EIO and a log line with the photo's name; its neighbours work",
      arguments: Names.allCases)
    func damagedBlobs(names: Names) throws {
      try withPhotos(names: names) { vault in
        try vault.shell(
          """
          mkdir "$W/good" "$M/album"
          for number in $(seq \(Self.damages.count)); do
            head -c $((1400000 + 4096 * number)) /dev/urandom >"$W/good/target$number.bin"
          done
          cp "$W/good"/* "$M/album/"
          """)
        try vault.unmount()
        let damages = zip(1..., Self.damages).map { number, damage in
          "B=$(blob_of \(1_400_000 + 4096 * number))\n\(damage)\n"
        }
        try vault.shell(Self.prepare + damages.joined())
        try vault.mount()
        try vault.shell(
          """
          test "$(ls -l "$M/album" | grep -c target)" = \(Self.damages.count)
          for good in "$W/good"/*; do
            (! cat "$M/album/${good##*/}" >"$W/read" 2>"$W/errors")
            grep -q 'Input/output error' "$W/errors"
            # What was read before the error is the photo's own beginning.
            cmp -n "$(stat -c %s "$W/read")" "$W/read" "$good"
          done
          for photo in "$PHOTOS"/*; do cmp "$photo" "$M/${photo##*/}"; done
          """)
        for number in 1...Self.damages.count {
          #expect(vault.log.contains("target\(number).bin"), "\(Self.damages[number - 1])")
        }
        // They can be replaced by good copies, or removed.
        try vault.shell("cp \"$W/good\"/* \"$M/album/\"; diff -r \"$W/good\" \"$M/album\"")
        try vault.remount()
        try vault.shell("diff -r \"$W/good\" \"$M/album\"; rm -r \"$M/album\"")
      }
    }

    private static let damages = [
      "flip $B 0", "flip $B 1", "flip $B 5", "flip $B 20", "flip $B 34", "flip $B 700000",
      "flip $B -40", "flip $B -1", "truncate -s -16 $B", "truncate -s -1 $B", "truncate -s 81 $B",
      "truncate -s 0 $B", "printf 0123456789abcdef >>$B", "printf x >>$B", "cat $FOREIGN >$B",
      "cp $PHOTOS/photo.jpg $B", "dd if=/dev/zero of=$B bs=4096 count=1 seek=40 conv=notrunc",
    ]

    @Test("bytes that change on the disk after they were verified are not handed out")
    func changedAfterVerification() throws {
      try withPhotos(names: .plain) { vault in
        try vault.remount()
        try vault.shell(
          Self.prepare + """
            B=$(blob_of 1400000)
            python3 - "$M/target.bin" "$B" "$W/target.bin" <<'END'
            import os, sys
            mounted, blob, original = sys.argv[1:]
            expected = open(original, "rb").read()
            file = os.open(mounted, os.O_RDONLY)
            assert os.pread(file, 65536, 0) == expected[:65536]
            raw = os.open(blob, os.O_RDWR)
            status = os.fstat(raw)
            size = status.st_size
            # The last 64 KiB, then all but what was read already.
            for start in (size - 65536, 200_000):
                old = os.pread(raw, 65536, start)
                os.pwrite(raw, bytes(byte ^ 1 for byte in old), start)
                os.utime(raw, ns=(status.st_atime_ns, status.st_mtime_ns))
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                failed = 0
                for offset in range(0, len(expected), 65536):
                    try:
                        assert os.pread(file, 65536, offset) == expected[offset:offset + 65536], offset
                    except OSError:
                        failed += 1
                assert failed > 0
            END
            """)
        #expect(vault.log.contains("target.bin"), "\(vault.log)")
      }
    }

    @Test(
      "files in the vault's directory that are no blobs are neither shown nor touched",
      arguments: Names.allCases)
    func foreignFiles(names: Names) throws {
      try withPhotos(names: names) { vault in
        try vault.unmount()
        try vault.shell("echo junk >\"$V/desktop.ini\"; echo junk >\"$V/Thumbs.db\"")
        try vault.mount()
        try vault.shell(
          """
          test "$(ls -A "$M" | sort)" = "$(cd "$PHOTOS"; ls | cat - <(echo target.bin) | sort)"
          """)
        try vault.unmount()
        try vault.shell("grep -qx junk \"$V/desktop.ini\"; grep -qx junk \"$V/Thumbs.db\"")
      }
    }

    @Test(
      "a version that was written into the file of another is read whole, and listings read no photo",
      arguments: [(10, 12), (12, 10), (400_000, 400_013)])
    func writtenOver(old: Int, new: Int) throws {
      try MountedVault.withMounted { vault in
        // Both are stored in as many bytes.
        try vault.shell(
          """
          stored() { find "$V" -name '*.securedData' -size $((66 + 16 * (\(old) / 16 + 1)))c "$@"; }
          head -c \(new) /dev/urandom >"$W/new"
          head -c \(old) /dev/urandom >"$M/photo"; photo=$(stored)
          cp "$W/new" "$M/other"; other=$(stored ! -path "$photo")
          cat "$other" >"$photo"
          echo "$photo" >"$W/stored"
          """)
        try vault.remount()
        try vault.shell("test $(stat -c %s \"$M/photo\") = \(new); cmp \"$W/new\" \"$M/photo\"")
        // Again, and with the time of the version that was there.
        try vault.shell(
          """
          photo=$(cat "$W/stored"); cp "$photo" "$W/blob"
          head -c \(old) /dev/urandom >"$M/photo"; touch -r "$photo" "$W/time"
          cat "$W/blob" >"$photo"; touch -r "$W/time" "$photo"
          """)
        try vault.remount()
        try vault.shell(
          """
          test $(stat -c %s "$M/photo") = \(old)
          cp "$M/photo" "$W/out"; cmp "$W/new" "$W/out"
          test $(stat -c %s "$M/photo") = \(new)
          """)
        // The size is listed though the end, where the padding tells it, is gone.
        try vault.shell(
          """
          cp "$W/new" "$M/photo"; photo=$(cat "$W/stored"); touch -r "$photo" "$W/time"
          head -c 48 /dev/urandom | dd of="$photo" bs=1 seek=$(($(stat -c %s "$photo") - 48)) \
            conv=notrunc status=none
          touch -r "$W/time" "$photo"
          """)
        try vault.remount()
        try vault.shell(
          "test $(stat -c %s \"$M/photo\") = \(new); (! cmp \"$W/new\" \"$M/photo\" 2>\"$W/said\")")
      }
    }

    @Test("leftovers of a crash are removed at the next mount")
    func leftovers() throws {
      try withPhotos(names: .encrypted) { vault in
        try vault.shell("mkdir \"$M/album\"")
        try vault.unmount()
        try vault.shell(
          """
          for folder in $(find "$V" -type d); do echo x >"$folder/.photovault-Ab12Cd.tmp"; done
          touch -d '-1 hour' $(find "$V" -name '.photovault-*')
          """)
        try vault.mount()
        try vault.shell("test -z \"$(ls -A \"$M/album\")\"")
        try vault.unmount()
      }
    }

    private func withPhotos(names: Names, _ body: (MountedVault) throws -> Void) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(
          """
          head -c 1400000 /dev/urandom >"$W/target.bin"
          cp "$PHOTOS"/* "$W/target.bin" "$M/"
          """)
        try body(vault)
      }
    }

    /// Makes a blob of another vault; `blob_of SIZE` finds the one blob of that plaintext size, `flip FILE
    /// OFFSET` changes one bit.
    private static let prepare = """
      blob_of() {
        local found
        found=$(find "$V" -type f -size $((66 + 16 * ($1 / 16 + 1)))c)
        test "$(wc -l <<<"$found")" = 1 -a -n "$found"
        echo "$found"
      }
      FOREIGN="$W/foreign"
      python3 - "$W/target.bin" "$FOREIGN" <<'END'
      import hashlib, hmac, os, subprocess, sys
      plaintext = open(sys.argv[1], "rb").read()
      header = bytes([3, 1]) + os.urandom(32)
      keys = [hashlib.pbkdf2_hmac("sha1", b"other", salt, 10000, 32) for salt in (header[2:10], header[10:18])]
      message = header + subprocess.run(
          ["openssl", "enc", "-aes-256-cbc", "-K", keys[0].hex(), "-iv", header[18:34].hex()],
          input=plaintext, stdout=subprocess.PIPE, check=True).stdout
      open(sys.argv[2], "wb").write(message + hmac.new(keys[1], message, "sha256").digest())
      END
      flip() {
        python3 - "$1" "$2" <<'END'
      import os, sys
      file = os.open(sys.argv[1], os.O_RDWR)
      offset = int(sys.argv[2]) % os.fstat(file).st_size
      os.pwrite(file, bytes([os.pread(file, 1, offset)[0] ^ 1]), offset)
      END
      }

      """
  }
}
