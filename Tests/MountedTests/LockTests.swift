import Glibc
import Testing

extension MountedTests {
  /// Locking is real: nobody sees anything afterwards, nothing that was written is lost.
  @Suite struct LockTests {
    @Test(
      "descriptors, mappings and working directories that programs hold give errors after a lock")
    func heldFiles() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          mkdir "$M/sub"; cp "$PHOTOS/photo.jpg" "$M/"; cp "$PHOTOS/photo.jpg" "$M/sub/"
          cp "$PHOTOS/photo.jpg" "$M/mapped.jpg"
          python3 "$T/holder.py" "$M" "\(Checkout.program)" lock --home "$W/../home"
          """)
        try vault.expectEnd()
        try vault.mount()
        try vault.shell(
          """
          cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          test "$(head -c 6 "$M/mapped.jpg")" = MAPPED
          cmp <(tail -c +7 "$PHOTOS/photo.jpg") <(tail -c +7 "$M/mapped.jpg")
          """)
      }
    }

    @Test("a program that finishes writing within the grace has its file under its own name")
    func writersMayFinish() throws {
      try MountedVault.withMounted { vault in
        let writer = try Writer(vault, "film.mp4", pause: 1)
        try vault.photovault(["lock", MountedVault.user], password: false, expecting: 0)
        try vault.expectEnd()
        #expect(writer.end() == 0)
        try vault.mount()
        try vault.shell(
          """
          test "$(ls "$M")" = film.mp4
          cmp <(head -c 3000000 /dev/zero; printf end) "$M/film.mp4"
          """)
      }
    }

    @Test("while writers may finish, nothing is opened any more")
    func noNewOpens() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let writer = try Writer(vault, "film.mp4", pause: 2)
        let lock = try Command.spawn(
          [Checkout.program, "lock", "--home", vault.home],
          environment: ["XDG_RUNTIME_DIR": vault.folder],
          output: "/dev/null", errors: vault.work + "/lock.err")
        #expect(Wait.until(seconds: 5) { vault.log.contains("locking") })
        try vault.shell(
          """
          python3 - "$M" <<'END'
          import errno, os, sys
          for what in (lambda: os.open(sys.argv[1] + "/photo.jpg", os.O_RDONLY),
                       lambda: os.open(sys.argv[1] + "/new", os.O_CREAT | os.O_WRONLY),
                       lambda: os.listdir(sys.argv[1])):
              try:
                  what()
                  raise SystemExit("opened")
              except OSError as error:
                  assert error.errno == errno.ENOKEY, error
          END
          """)
        #expect(lock.wait() == 0)
        try vault.expectEnd()
        #expect(writer.end() != nil)
      }
    }

    @Test(
      "a file still growing is kept beside its previous version, under a name of its own",
      arguments: ["lock", "SIGTERM"])
    func interrupted(by trigger: String) throws {
      try MountedVault.withUnmounted(names: .plain) { vault in
        try vault.mount(options: ["--lock-grace", "1s"])
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let new = try Writer(vault, "film.mp4", pause: 30)
        let old = try Writer(vault, "photo.jpg", pause: 30)
        if trigger == "lock" {
          try vault.photovault(["lock", MountedVault.user], password: false, expecting: 0)
        } else {
          try #require(vault.daemon).signal(SIGTERM)
        }
        try vault.expectEnd()
        #expect(new.end() == nil && old.end() == nil)
        #expect(vault.log.contains("film.mp4") && vault.log.contains("interrupted"))
        try vault.mount()
        try vault.shell(
          """
          cd "$M"; ls
          cmp "$PHOTOS/photo.jpg" photo.jpg
          date='[(]interrupted [0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}\\.[0-9]{2}\\.[0-9]{2}[)]'
          test "$(ls | grep -cE "^(film $date.mp4|photo $date.jpg|photo.jpg)$")" = 3
          test "$(ls | wc -l)" = 3
          for part in *interrupted*; do cmp <(head -c 3000000 /dev/zero) "$part"; done
          """)
      }
    }

    @Test("a lock with 10,000 files known and 100 MB half written is done within 5 s")
    func manyFiles() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          mkdir "$M"/{0..9}
          python3 - "$M" <<'END'
          import os, sys
          for number in range(10_000):
              with open(f"{sys.argv[1]}/{number % 10}/IMG_{number}.jpg", "wb") as file:
                  file.write(b"photo")
          END
          ls -lR "$M" | wc -l
          """)
        let writer = try Writer(vault, "film.mp4", bytes: 100_000_000, pause: 30)
        let begin = Clock.seconds
        try vault.photovault(["lock", MountedVault.user], password: false, expecting: 0)
        #expect(Clock.seconds - begin < 5)
        try vault.expectEnd()
        #expect(writer.end() == nil)
        try vault.mount()
        try vault.shell("test \"$(cat \"$M\"/film*interrupted* | wc -c)\" = 100000000")
      }
    }

    @Test("dd in progress ends with an error, and what it wrote is kept aside")
    func dd() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          cp "$PHOTOS/photo.jpg" "$M/"
          dd if=/dev/zero of="$M/film.mp4" bs=64K 2>"$W/dd1" & new=$!
          dd if=/dev/zero of="$M/photo.jpg" bs=64K 2>"$W/dd2" & old=$!
          sleep 0.5
          "\(Checkout.program)" lock --home "$W/../home"
          (! wait $new); (! wait $old)
          grep -q 'error writing' "$W/dd1"; grep -q 'error writing' "$W/dd2"
          """)
        try vault.expectEnd()
        try vault.mount()
        try vault.shell(
          """
          cd "$M"; ls; test "$(ls | wc -l)" = 3; test ! -e film.mp4
          cmp "$PHOTOS/photo.jpg" photo.jpg
          for part in *interrupted*; do
            test -s "$part"; cmp <(head -c "$(stat -c %s "$part")" /dev/zero) "$part"
          done
          """)
      }
    }

    @Test("locks at random moments while photos are saved: whole versions, none lost, no half one")
    func randomMoments() throws {
      try MountedVault.withUnmounted { vault in
        for round in 1...Self.rounds {
          try vault.mount(options: ["--lock-grace", round % 2 == 0 ? "0" : "1s"])
          let writer = try Command.spawn(
            [
              "timeout", "60", "python3", Checkout.workloads + "/versions.py", "write",
              vault.mountPoint, vault.work + "/closed", "\(round)",
            ], output: vault.work + "/out", errors: vault.work + "/err")
          #expect(Wait.until(seconds: 30) { access(vault.work + "/closed", F_OK) == 0 })
          usleep(UInt32.random(in: 0...400_000))
          try vault.photovault(["lock"], password: false, expecting: 0)
          #expect(writer.wait() == 0, "\(Scratch.read(vault.work + "/err"))")
          try vault.expectEnd()
          try vault.mount()
          try vault.shell(
            """
            python3 "$T/versions.py" check "$M" "$W/closed"
            rm -f "$W/closed" "$M"/*interrupted*
            """, limit: 120)
          try vault.unmount()
        }
        try vault.photovault(["check", MountedVault.user], expecting: 0)
      }
    }

    private static let rounds = Int(Environment["PHOTOVAULT_TEST_LOCKS"] ?? "") ?? 50

    @Test(
      "hooks of lockers that tell nobody lock the folder: i3lock, xautolock, xss-lock, xscreensaver"
    )
    func lockers() throws {
      try MountedVault.withUnmounted { vault in
        for (locker, script) in [
          ("i3lock", "sh -c '$LOCK & exec timeout 5 i3lock -n'"),
          (
            "xautolock",
            """
            xautolock -time 60 -locker "sh -c '$LOCK & exec timeout 5 i3lock -n'" & pid=$!
            again xautolock -locknow 2>/dev/null; kill $pid
            """
          ),
          (
            "xss-lock",
            """
            xss-lock -- sh -c "$LOCK & exec timeout 5 i3lock -n" 2>/dev/null & pid=$!
            sleep 3; xset s activate; again true; kill $pid 2>/dev/null || true
            """
          ),
          (
            // It locks for no root.
            "xscreensaver",
            """
            cp "$XAUTHORITY" "$W/auth"; mkdir "$W/nobody"; chown 65534 "$W/auth" "$W/nobody"
            as="setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=$W/nobody XAUTHORITY=$W/auth"
            $as xscreensaver -no-splash 2>/dev/null & saver=$!
            until $as xscreensaver-command -version 2>/dev/null; do sleep 0.2; done
            $as xscreensaver-command -watch | while read -r event _; do
              if [ "$event" = LOCK ]; then $LOCK; fi
            done & watch=$!
            again $as xscreensaver-command -lock
            kill $saver $watch
            """
          ),
        ] {
          try vault.mount()
          try vault.shell(
            """
            chmod 0755 "$W/.."
            export LOCK="\(Checkout.program) lock --home $W/../home"
            cat >"$W/script" <<'END'
            # Until it is locked: under load that takes its time, or the locker isn't listening yet.
            again() {
              for _ in $(seq 40); do
                mountpoint -q "$M" || return 0
                "$@" || true
                sleep 0.5
              done
            }
            \(script)
            END
            timeout 60 xvfb-run -a bash "$W/script" >/dev/null 2>"$W/errors" || true
            """, limit: 90)
          #expect(!vault.isMounted, "\(locker): \(Scratch.read(vault.work + "/errors"))")
          try vault.expectEnd()
        }
      }
    }

    @Test("a mount that comes up while everything is locked locks itself")
    func lockDuringMount() throws {
      try MountedVault.withUnmounted { vault in
        for (lock, delay) in [
          (["lock"], 0.0), (["lock"], 0.3), (["lock", MountedVault.user], 0.2),
        ] {
          let mounting = try Command.spawn(
            [Checkout.program, "mount", MountedVault.user, vault.mountPoint, "--idle", "0"]
              + ["--home", vault.home, "--password-file", vault.passwordFile],
            environment: ["HOME": vault.folder, "XDG_RUNTIME_DIR": vault.folder],
            output: "/dev/null", errors: vault.work + "/mount.err")
          usleep(UInt32(delay * 1e6) + 100_000)
          try vault.photovault(lock, password: false, expecting: 0)
          // It may have been ready before: then the lock found it.
          _ = mounting.wait()
          #expect(!vault.isMounted)
          #expect(MountTable.daemons(of: vault.folder) == [])
        }
        // And a lock from before hinders nothing.
        try vault.mount()
        try vault.unmount()
      }
    }

    @Test("lock finds mounts that were made with another environment")
    func otherEnvironment() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          "unset XDG_RUNTIME_DIR; \"\(Checkout.program)\" lock --home \"$W/../home\"")
        try vault.expectEnd()
      }
    }

    @Test("a full home disk keeps nothing from being mounted, locked and unmounted")
    func fullHomeDisk() throws {
      try MountedVault.withUnmounted { vault in
        let disk = vault.folder + "/state"
        try Command.shell("mkdir '\(disk)'; mount -t tmpfs -o size=64k tmpfs '\(disk)'")
        defer { _ = try? Command.run(["umount", "-l", disk]) }
        try Command.shell("cat /dev/zero >'\(disk)/filler' 2>/dev/null || true")
        let variables =
          "export XDG_STATE_HOME=\"$W/../state\"; P=\"\(Checkout.program)\"; H=\"$W/../home\""
        try vault.shell(
          """
          \(variables)
          "$P" mount alice "$M" --idle 0 --home "$H" --password-file "$W/../password"
          # What could not be noted is said, but the folder is locked.
          "$P" lock --home "$H" || test $? = 1
          """)
        #expect(!vault.isMounted)
        #expect(Wait.until(seconds: 5) { MountTable.daemons(of: vault.folder) == [] })
      }
    }

    @Test("large files that were edited and are still open are saved, however long it takes")
    func manyEditedFiles() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("for n in 1 2 3 4; do head -c 40M /dev/urandom >\"$M/$n\"; done")
        let editor = try Command.spawn(
          ["python3", Checkout.workloads + "/editor.py", vault.mountPoint, "1", "2", "3", "4"],
          output: vault.work + "/editor", errors: "/dev/null")
        defer {
          editor.signal(SIGKILL)
          _ = editor.wait()
        }
        #expect(Wait.until(seconds: 60) { Scratch.read(vault.work + "/editor") == "edited\n" })
        try vault.photovault(["lock"], password: false, expecting: 0)
        try vault.expectEnd()
        try vault.mount()
        try vault.shell(
          "for n in 1 2 3 4; do cmp <(head -c 40M /dev/zero | tr '\\0' E) \"$M/$n\"; done")
      }
    }

    @Test("two locks and a forced unmount at once end in order, and all say so")
    func locksAtOnce() throws {
      try MountedVault.withUnmounted { vault in
        for _ in 1...5 {
          try vault.mount()
          try vault.shell(
            """
            (dd if=/dev/zero of="$M/new" bs=64K count=200 2>/dev/null || true) & dd=$!
            H="$W/../home"; sleep 0.1
            "\(Checkout.program)" lock --home "$H" & a=$!
            "\(Checkout.program)" lock alice --home "$H" & b=$!
            wait $a; wait $b; wait $dd
            "\(Checkout.program)" lock alice --home "$H"
            (! "\(Checkout.program)" lock nobody --home "$H")
            """)
          try vault.expectEnd()
        }
      }
    }

    @Test("a process that doesn't answer any more is ended: the folder is locked all the same")
    func stuckProcess() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let daemon = try #require(vault.daemon)
        daemon.signal(SIGSTOP)
        let status = try vault.photovault(["status"], password: false, expecting: 0)
        #expect(status.output.contains("does not answer"))
        let begin = Clock.seconds
        let outcome = try vault.photovault(["lock"], password: false, expecting: 1)
        #expect(Clock.seconds - begin < 10)
        #expect(outcome.errors.contains("the folder is locked"))
        try vault.expectEnd(status: 128 + SIGKILL)
        try vault.mount()
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
      }
    }

    @Test("a disk that hangs doesn't keep the folder unlocked, and lock says what is not done")
    func hangingDisk() throws {
      try withDisk { disk, vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let reader = try Command.spawn(
          ["python3", Checkout.workloads + "/reader.py", vault.mountPoint + "/photo.jpg"],
          output: vault.work + "/reader", errors: "/dev/null")
        #expect(Wait.until(seconds: 5) { Scratch.read(vault.work + "/reader") == "reads\n" })
        let writer = try Writer(vault, "film.mp4", pause: 30)
        try Command.shell("fsfreeze -f '\(disk)'")
        // Whatever fails: else the process could not even be killed.
        defer { _ = try? Command.shell("fsfreeze -u '\(disk)' 2>/dev/null || true", limit: 20) }
        let begin = Clock.seconds
        let outcome = try vault.photovault(["lock"], password: false, expecting: 1)
        #expect(Clock.seconds - begin < 30)
        #expect(outcome.errors.contains("locked, but"), "\(outcome.errors)")
        #expect(!vault.isMounted)
        // A cached page, a descriptor: nothing, though the process can't even die.
        #expect(reader.wait(seconds: 5) == 0)
        try Command.shell("fsfreeze -u '\(disk)'")
        try vault.expectEnd(status: 1)
        _ = writer.end()
        try vault.mount()
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
      }
    }

    @Test("programs that wait for a disk that hangs keep nobody else from looking at photos")
    func hangingWriters() throws {
      try withDisk { disk, vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"; mkdir \"$M\"/writer{1..12}")
        try Command.shell("fsfreeze -f '\(disk)'")
        defer { _ = try? Command.shell("fsfreeze -u '\(disk)' 2>/dev/null || true", limit: 20) }
        let photo = try Photos.folder.get() + "/photo.jpg"
        let writers = try (1...12).map { number in
          try Command.spawn(
            ["cp", photo, "\(vault.mountPoint)/writer\(number)/photo.jpg"],
            output: "/dev/null", errors: "/dev/null")
        }
        usleep(1_000_000)
        try vault.shell(
          """
          timeout 5 ls -l "$M" >/dev/null
          timeout 5 cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          """)
        try Command.shell("fsfreeze -u '\(disk)'")
        for writer in writers { #expect(writer.wait(seconds: 30) == 0) }
        try vault.shell(
          "for copy in \"$M\"/writer*/*; do cmp \"$PHOTOS/photo.jpg\" \"$copy\"; done")
        try vault.unmount()
      }
    }

    /// A mounted vault on a small disk of its own, which may be frozen.
    private func withDisk(_ body: (String, MountedVault) throws -> Void) throws {
      let folder = try Scratch.makeFolder()
      let disk = folder + "/disk"
      defer {
        _ = try? Command.shell(
          "fsfreeze -u '\(disk)' 2>/dev/null || true; umount -l '\(disk)'", limit: 20)
        Scratch.remove(folder)
      }
      try Command.shell(
        """
        truncate -s 64M '\(folder)/image'; mkdir '\(disk)'
        mkfs.ext4 -q '\(folder)/image'; mount -o loop '\(folder)/image' '\(disk)'
        """)
      try MountedVault.withMounted(backing: disk + "/vault") { vault in try body(disk, vault) }
    }
  }
}

/// A program that writes `bytes` zeros into a file of a mount and keeps it open for `pause` seconds.
private final class Writer {
  private let process: ChildProcess

  init(_ vault: MountedVault, _ name: String, bytes: Int = 3_000_000, pause: Int) throws {
    let ready = vault.work + "/ready-" + name
    process = try Command.spawn(
      [
        "python3", Checkout.workloads + "/writer.py", vault.mountPoint + "/" + name, "\(bytes)",
        "\(pause)",
      ], output: ready, errors: "/dev/null")
    #expect(Wait.until(seconds: 20) { Scratch.read(ready) == "ready\n" })
  }

  /// nil for one that had not ended by itself.
  func end() -> Int32? {
    if let status = process.wait(seconds: 3) { return status }
    process.signal(SIGKILL)
    _ = process.wait()
    return nil
  }
}
