import Glibc
import Testing

extension MountedTests {
  /// `photovault check` of vaults that a mount has filled.
  @Suite struct CheckedVaultTests {
    @Test("damage, check, repair, check: the mount shows the rest", arguments: Names.allCases)
    func fullCycle(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(
          """
          mkdir -p "$M/album/inner"
          head -c 1400000 /dev/urandom >"$W/target.bin"
          head -c 1500000 /dev/urandom >"$W/cut.bin"
          cp "$W"/*.bin "$M/album/"
          cp "$PHOTOS"/* "$M/"; cp "$PHOTOS/photo.jpg" "$M/album/inner/\(Self.longName)"
          setfattr -n user.title -v 'A day' "$M/photo.jpg"
          ln -s album/inner "$M/link"; mkfifo "$M/fifo"
          """)
        try vault.unmount()
        let clean = try check(vault, expecting: 0)
        #expect(clean.hasSuffix("3 folders: no damage\n"), "\(clean)")
        try vault.shell(
          Self.blobOf + """
            python3 - "$(blob_of 1400000)" <<'END'
            import os, sys
            file = os.open(sys.argv[1], os.O_RDWR)
            os.pwrite(file, bytes([os.pread(file, 1, 700000)[0] ^ 1]), 700000)
            END
            truncate -s -16 "$(blob_of 1500000)"
            setfattr -x user.photovault.chunks "$(blob_of "$(stat -c %s "$PHOTOS/photo.png")")"
            echo half >"$V/.photovault-abcdef.tmp"; echo junk >"$V/desktop.ini"
            """)
        let found = try check(vault, expecting: 15)
        for name in ["album/target.bin", "album/cut.bin"] {
          #expect(found.contains("damaged: \(name) ("), "\(found)")
        }
        #expect(found.contains("left over: .photovault-abcdef.tmp"), "\(found)")
        #expect(found.contains("foreign: desktop.ini"), "\(found)")
        #expect(found.contains("1 chunk index missing"), "\(found)")
        #expect(found.hasSuffix(": 2 damaged\n"), "\(found)")
        let repaired = try check(vault, ["--repair"], expecting: 15)
        #expect(repaired.contains("; moved to .photovault-damaged/1\n"), "\(repaired)")
        let after = try check(vault, expecting: 0)
        #expect(after.contains("2 files set aside"), "\(after)")
        #expect(!after.contains("chunk index"), "\(after)")
        try vault.mount()
        try vault.shell(
          """
          for photo in "$PHOTOS"/*; do cmp "$photo" "$M/${photo##*/}"; done
          cmp "$PHOTOS/photo.jpg" "$M/link/\(Self.longName)"
          test "$(ls -A "$M/album")" = inner
          test "$(getfattr --only-values -n user.title "$M/photo.jpg")" = 'A day'
          expected=$(ls -A "$PHOTOS" | cat - <(printf '%s\\n' album fifo link) | sort)
          test "$(ls -A "$M" | sort)" = "$expected"
          mkdir "$M/.photovault-damaged"; echo x >"$M/.photovault-damaged/x"
          """)
        try vault.remount()
        try vault.shell("test \"$(cat \"$M/.photovault-damaged/x\")\" = x")
        try vault.unmount()
        _ = try check(vault, expecting: 0)
        try vault.shell("test -e \"$V/.photovault-damaged/1/note.txt\"")
      }
    }

    @Test("a check beside a mount that is written to finds nothing", arguments: Names.allCases)
    func besideAMount(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell("cp \"$PHOTOS\"/* \"$M/\"")
        let script = """
          for round in $(seq 10000); do
            test -e "$W/stop" && break
            mkdir -p "$M/d"
            cp "$PHOTOS/photo.png" "$M/d/film"; cp "$PHOTOS/photo.jpg" "$M/d/film"
            cp "$PHOTOS/photo.jpg" "$M/d/\(Self.longName)"
            mv "$M/d/\(Self.longName)" "$M/d/other-\(Self.longName)"
            setfattr -n user.title -v "$round" "$M/photo.jpg"
            ln -sf "$round" "$M/link"
            rm -r "$M/d"
          done
          """
        let writer = try Command.spawn(
          ["timeout", "120", "bash", "-euc", script],
          environment: [
            "M": vault.mountPoint, "W": vault.work, "PHOTOS": try Photos.folder.get(),
          ], output: vault.folder + "/writer.out", errors: vault.folder + "/writer.err")
        var checks = 0
        var failure: (any Error)?
        do {
          for _ in 0..<8 {
            let said = try check(vault, expecting: 0)
            #expect(said.hasSuffix("no damage\n"), "\(said)")
            #expect(!said.contains("left over"), "\(said)")
            checks += 1
          }
        } catch { failure = error }
        try Scratch.write("", to: vault.work + "/stop")
        #expect(writer.wait() == 0, "\(Scratch.read(vault.folder + "/writer.err"))")
        if let failure { throw failure }
        #expect(checks == 8)
        let refused = try vault.photovault(
          ["check", MountedVault.user, "--repair"], expecting: 16)
        #expect(refused.errors.contains("is unlocked already"), "\(refused.errors)")
      }
    }

    @Test("a check that a signal ends leaves everything as it was")
    func interrupted() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("head -c 300000000 /dev/zero >\"$M/film\"; cp \"$PHOTOS\"/* \"$M/\"")
        try vault.unmount()
        try vault.shell(
          """
          list() { find "$V" -printf '%P %s %T@ %C@\\n' | sort; }
          list >"$W/before"
          for delay in 0.4 0.6 0.7 0.8; do
            status=0
            timeout --foreground -s INT "$delay" "$PROGRAM" check \(MountedVault.user) \
              --repair --home "$H" --password-file "$P" || status=$?
            test "$status" = 124 -o "$status" = 0
          done
          list | diff "$W/before" -
          """.replacing("$PROGRAM", with: Checkout.program).replacing("$H", with: vault.home)
            .replacing("$P", with: vault.passwordFile))
        _ = try check(vault, expecting: 0)
      }
    }

    private func check(
      _ vault: MountedVault, _ options: [String] = [], expecting status: Int32
    ) throws -> String {
      try vault.photovault(["check", MountedVault.user] + options, expecting: status).output
    }

    private static let longName = String(repeating: "n", count: 220)

    private static let blobOf = """
      blob_of() {
        local found
        found=$(find "$V" -type f -size $((66 + 16 * ($1 / 16 + 1)))c)
        test "$(wc -l <<<"$found")" = 1 -a -n "$found"
        echo "$found"
      }

      """
  }
}
