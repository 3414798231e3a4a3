import Glibc
import Testing

extension MountedTests {
  /// `import` and `export` beside mounts, other encrypted folders, full disks and kill -9.
  @Suite struct ImportTests {
    @Test("what was imported is what a mount shows", arguments: Names.allCases)
    func throughAMount(names: Names) throws {
      try MountedVault.withUnmounted(names: names) { vault in
        try vault.shell(
          """
          mkdir -p "$W/in/album/inner"
          cp -a "$PHOTOS"/* "$W/in/"; cp -a "$PHOTOS"/photo.* "$W/in/album/inner/"
          head -c 3000000 /dev/urandom >"$W/in/\(Self.longName)"
          ln -s album "$W/in/link"
          setfattr -n user.title -v 'A day' "$W/in/photo.jpg"
          """)
        let said = try vault.photovault(
          ["import", MountedVault.user, vault.work + "/in/"], expecting: 0)
        #expect(said.output.contains("imported into 'alice': 10 files"), "\(said.output)")
        try vault.mount()
        try vault.shell(
          """
          diff -r --no-dereference "$W/in" "$M"
          test "$(getfattr --only-values -n user.title "$M/photo.jpg")" = 'A day'
          list() { (cd "$1" && find . -mindepth 1 -printf '%P %y %m %T@ %l\\n' | sort); }
          diff <(list "$W/in") <(list "$M")
          """)
        let refused = try vault.photovault(
          ["import", MountedVault.user, vault.work + "/in"], expecting: 16)
        #expect(refused.errors.contains("copy into the folder instead"), "\(refused.errors)")
        // An export works beside it.
        try vault.shell(
          "cp -a \"$PHOTOS/photo.jpg\" \"$M/album/new.jpg\"; sync \"$M/album/new.jpg\"")
        try vault.photovault(
          ["export", MountedVault.user, vault.work + "/out"], expecting: 0)
        try vault.shell("diff -r --no-dereference \"$M\" \"$W/out\"")
      }
    }

    @Test("photos come over from gocryptfs and EncFS", arguments: ["gocryptfs", "encfs"])
    func migration(program: String) throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          mkdir "$W/cipher" "$W/plain"; echo secret >"$W/old-password"
          case \(program) in
            gocryptfs)
              gocryptfs -q -init -scryptn 10 -passfile "$W/old-password" "$W/cipher"
              gocryptfs -q -passfile "$W/old-password" "$W/cipher" "$W/plain" ;;
            encfs)
              encfs --standard --extpass="cat '$W/old-password'" "$W/cipher" "$W/plain" ;;
          esac
          """)
        defer { _ = try? Command.run(["fusermount3", "-u", "-z", vault.work + "/plain"]) }
        try vault.shell(
          """
          mkdir -p "$W/plain/2021/summer"
          cp -a "$PHOTOS"/* "$W/plain/"; cp -a "$PHOTOS"/photo.* "$W/plain/2021/summer/"
          head -c 5000000 /dev/urandom >"$W/plain/film.mov"; ln -s 2021 "$W/plain/link"
          cp -a "$W/plain" "$W/copy"
          """)
        let said = try vault.photovault(
          ["import", MountedVault.user, vault.work + "/plain/"], expecting: 0)
        #expect(said.output.contains("10 files"), "\(said.output)")
        let again = try vault.photovault(
          ["import", MountedVault.user, "--move", vault.work + "/plain/"], expecting: 0)
        #expect(again.output.contains(" there already"), "\(again.output)")
        try vault.shell("test -z \"$(ls -A \"$W/plain\")\"; fusermount3 -u \"$W/plain\"")
        try vault.mount()
        try vault.shell(
          """
          diff -r --no-dereference "$W/copy" "$M"
          list() { (cd "$1" && find . -type f -printf '%P %m %T@\\n' | sort); }
          diff <(list "$W/copy") <(list "$M")
          """)
        try vault.unmount()
      }
    }

    @Test(
      "kill -9 at any system call of a move: each photo is in the vault or still where it was",
      arguments: ["linkat", "unlinkat", "fsync", "fdatasync", "pwrite64", "openat"])
    func killedAnywhere(call: String) throws {
      try killed(at: call, [1, 2, 5, 11, 24, 60, 150], ["--move"])
    }

    @Test("kill -9 at any system call of an import leaves a vault in order")
    func killedWithoutMove() throws {
      for call in ["linkat", "fsync"] { try killed(at: call, [2, 9, 30], []) }
    }

    private func killed(at call: String, _ points: [Int], _ options: [String]) throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(Self.fill)
        for point in points {
          // With strace the n-th call of each thread ends the program.
          _ = try Command.run(
            [
              "strace", "-f", "-o", "/dev/null", "-e", "trace=\(call)", "-e",
              "inject=\(call):signal=KILL:when=\(point)", Checkout.program, "import",
              MountedVault.user, vault.work + "/in", "--home", vault.home, "--password-file",
              vault.passwordFile,
            ] + options, limit: 120)
          try expectNothingLost(vault)
        }
        // One that reached its end has moved the last.
        try vault.photovault(
          ["import", MountedVault.user, vault.work + "/in"] + options,
          expecting: access(vault.work + "/in", F_OK) == 0 ? 0 : 1)
        try expectNothingLost(vault)
        try vault.shell(
          options.isEmpty
            ? "diff -r \"$W/all/in\" \"$W/in\"" : "test ! -e \"$W/in\"")
        try vault.photovault(["export", MountedVault.user, vault.work + "/end"], expecting: 0)
        try vault.shell("diff -r \"$W/all/in\" \"$W/end/in\"")
      }
    }

    @Test("kill -9 at random moments of a move loses no photo", arguments: Names.allCases)
    func killedAtRandom(names: Names) throws {
      for _ in 1...Self.rounds {
        try MountedVault.withUnmounted(names: names) { vault in
          try vault.shell(Self.fill)
          let started = try Command.spawn(
            [
              Checkout.program, "import", MountedVault.user, vault.work + "/in", "--move", "--home",
              vault.home, "--password-file", vault.passwordFile,
            ], output: vault.work + "/out.log", errors: vault.work + "/err.log")
          // The password takes half a second; the first photo that goes tells when it is at work.
          _ = Wait.until(seconds: 30) { access(vault.work + "/in/first/1.jpg", F_OK) != 0 }
          usleep(UInt32.random(in: 0...300_000))
          started.signal(SIGKILL)
          _ = started.wait()
          try expectNothingLost(vault)
          try vault.photovault(
            ["import", MountedVault.user, vault.work + "/in", "--move"],
            expecting: access(vault.work + "/in", F_OK) == 0 ? 0 : 1)
          try expectNothingLost(vault)
        }
      }
    }

    @Test("SIGTERM finishes what is under way, and the next run does the rest")
    func terminated() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          mkdir "$W/in"
          for n in $(seq 12); do head -c 30000000 /dev/urandom >"$W/in/$n.mp4"; done
          """)
        let started = try Command.spawn(
          [
            Checkout.program, "import", MountedVault.user, vault.work + "/in/", "--home",
            vault.home, "--password-file", vault.passwordFile,
          ], output: vault.work + "/out.log", errors: vault.work + "/err.log")
        _ = try Wait.until(seconds: 30) {
          try Int(vault.shell("find \"$V\" -name '*.securedData' | wc -l").prefix { $0 != "\n" })
            ?? 0 > 0
        }
        started.signal(SIGTERM)
        let status = started.wait(seconds: 60)
        if status == nil { started.signal(SIGKILL) }
        #expect(status == 128 + SIGTERM || status == 0)
        let said = Scratch.read(vault.work + "/out.log")
        #expect(said.contains("imported into 'alice': "), "\(said)")
        try vault.shell("test -z \"$(find \"$V\" -name '.photovault*')\"")
        try vault.photovault(["check", MountedVault.user], expecting: 0)
        try vault.photovault(["import", MountedVault.user, vault.work + "/in/"], expecting: 0)
        try vault.photovault(["export", MountedVault.user, vault.work + "/out"], expecting: 0)
        try vault.shell("diff -r \"$W/in\" \"$W/out\"")
      }
    }

    @Test("on a full disk an import stops, says so, and nothing is lost", arguments: [false, true])
    func fullDisk(moves: Bool) throws {
      let disk = try Scratch.makeFolder()
      defer { Scratch.remove(disk) }
      try Command.shell("mount -t tmpfs -o size=20m,mode=0755 disk \(disk)")
      defer { _ = try? Command.run(["umount", "-l", disk]) }
      try MountedVault.withUnmounted(backing: disk + "/vault") { vault in
        try vault.shell(
          """
          mkdir "$W/in"
          for n in $(seq 12); do head -c 3000000 /dev/urandom >"$W/in/$n.jpg"; done
          cp -r "$W/in" "$W/all"
          """)
        let arguments =
          ["import", MountedVault.user, vault.work + "/in/"] + (moves ? ["--move"] : [])
        let stopped = try vault.photovault(arguments, expecting: 1)
        #expect(stopped.errors.contains("no space left on device"), "\(stopped.errors)")
        #expect(stopped.errors.contains("what was imported is safe"), "\(stopped.errors)")
        try vault.photovault(["check", MountedVault.user], expecting: 0)
        try vault.photovault(["export", MountedVault.user, vault.work + "/out"], expecting: 0)
        try vault.shell(
          """
          test "$(ls "$W/out" | wc -l)" -gt 1
          for f in "$W/all"/*; do
            name=${f##*/}
            cmp "$f" "$W/out/$name" 2>/dev/null || cmp "$f" "$W/in/$name"
            if [ -e "$W/out/$name" ]; then cmp "$f" "$W/out/$name"; fi
          done
          mount -o remount,size=60m \(disk)
          """)
        try vault.photovault(arguments, expecting: 0)
        try vault.photovault(["export", MountedVault.user, vault.work + "/end"], expecting: 0)
        try vault.shell("diff -r \"$W/all\" \"$W/end\"")
      }
    }

    @Test("an export onto a full disk stops, and goes on with room")
    func exportOntoAFullDisk() throws {
      let disk = try Scratch.makeFolder()
      defer { Scratch.remove(disk) }
      try Command.shell("mount -t tmpfs -o size=20m,mode=0755 disk \(disk)")
      defer { _ = try? Command.run(["umount", "-l", disk]) }
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          mkdir "$W/in"
          for n in $(seq 12); do head -c 3000000 /dev/urandom >"$W/in/$n.jpg"; done
          """)
        try vault.photovault(["import", MountedVault.user, vault.work + "/in/"], expecting: 0)
        let stopped = try vault.photovault(
          ["export", MountedVault.user, disk + "/out"], expecting: 1)
        #expect(stopped.errors.contains("no space left on device"), "\(stopped.errors)")
        try vault.shell(
          """
          for f in \(disk)/out/*; do cmp "$f" "$W/in/${f##*/}"; done
          test -z "$(find \(disk)/out -name '.photovault*')"
          mount -o remount,size=60m \(disk)
          """)
        try vault.photovault(["export", MountedVault.user, disk + "/out"], expecting: 0)
        try vault.shell("diff -r \"$W/in\" \(disk)/out")
      }
    }

    @Test("a source that changes all the time fails, and is there once it rests")
    func changingSource() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("mkdir \"$W/in\"; head -c 90000000 /dev/zero >\"$W/in/film\"")
        let writer = try Command.spawn(
          [
            "timeout", "60", "bash", "-c",
            "while ! test -e '\(vault.work)/stop'; do echo x >>'\(vault.work)/in/film'; done",
          ], output: "/dev/null", errors: "/dev/null")
        let said = try? vault.photovault([
          "import", MountedVault.user, vault.work + "/in/", "--move",
        ])
        try Scratch.write("", to: vault.work + "/stop")
        _ = writer.wait()
        #expect(said?.status == 1)
        #expect(said?.errors.contains("it changed while it was read") == true)
        try vault.shell("test -s \"$W/in/film\"; test -z \"$(find \"$V\" -name '*.securedData')\"")
        try vault.photovault(["import", MountedVault.user, vault.work + "/in/"], expecting: 0)
        try vault.photovault(["export", MountedVault.user, vault.work + "/out"], expecting: 0)
        try vault.shell("diff -r \"$W/in\" \"$W/out\"")
      }
    }

    @Test("memory does not grow with the files")
    func bigFilms() throws {
      let size = (Int(Environment["PHOTOVAULT_TEST_FILM_MIB"] ?? "") ?? 256) << 20
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          mkdir "$W/in"
          for n in 1 2; do
            head -c \(size) /dev/zero | openssl enc -aes-128-ctr -nosalt -K $n -iv 0 2>/dev/null >"$W/in/$n"
          done
          """, limit: 300)
        for verb in [["import", vault.work + "/in/"], ["export", vault.work + "/out"]] {
          // The password's key takes 128 MiB: what counts is the peak after that.
          let said = try vault.shell(
            """
            set +x
            memory() { awk -v key="$1:" '$1 == key { print $2 }' /proc/$pid/status; }
            "\(Checkout.program)" \(verb[0]) \(MountedVault.user) "\(verb[1])" --home "\(vault.home)" \
              --password-file "\(vault.passwordFile)" >"$W/out.log" 2>"$W/err.log" & pid=$!
            while [ "$(memory VmHWM)" -lt 130000 ]; do sleep 0.01; done
            while [ "$(memory VmRSS)" -gt 100000 ]; do sleep 0.01; done
            echo 5 >/proc/$pid/clear_refs
            peak=0
            while now=$(memory VmHWM 2>/dev/null) && [ -n "$now" ]; do peak=$now; sleep 0.05; done
            wait $pid
            echo "$peak"
            """, limit: 300)
          let peak = try #require(Int(said.prefix { $0 != "\n" }))
          #expect(peak > 0 && peak < 64 * 1024, "\(verb[0]): \(peak) KiB")
        }
        try vault.shell("diff -r \"$W/in\" \"$W/out\"", limit: 120)
      }
    }

    // MARK: What was lost

    /// Every photo of `$W/all` must be in the vault, whole, or still be in `$W/in`; the vault is in
    /// order.
    private func expectNothingLost(_ vault: MountedVault) throws {
      try vault.photovault(["check", MountedVault.user], expecting: 0)
      try vault.shell("rm -rf \"$W/back\"")
      try vault.photovault(["export", MountedVault.user, vault.work + "/back"], expecting: 0)
      try vault.shell(
        """
        cd "$W/all"
        find . -type f | while IFS= read -r f; do
          if [ -e "$W/$f" ]; then cmp "$f" "$W/$f"; else cmp "$f" "$W/back/$f"; fi
          # What has its name in the vault is whole.
          if [ -e "$W/back/$f" ]; then cmp "$f" "$W/back/$f"; fi
        done
        """)
    }

    private static let fill = """
      rm -rf "$W/in" "$W/all"
      mkdir -p "$W/all"
      python3 - "$W/in" <<'END'
      import os, random, sys
      random.seed(1)
      for folder in ("first", "second", "third"):
          os.makedirs(f"{sys.argv[1]}/{folder}")
          for n in range(1, 31):
              with open(f"{sys.argv[1]}/{folder}/{n}.jpg", "wb") as file:
                  file.write(random.randbytes(random.choice((10, 5000, 70000, 300000))))
      END
      cp -a "$W/in" "$W/all/in"
      """

    private static let longName = String(repeating: "n", count: 220)
    private static let rounds = (Int(Environment["PHOTOVAULT_TEST_CRASHES"] ?? "") ?? 30) / 5
  }
}
