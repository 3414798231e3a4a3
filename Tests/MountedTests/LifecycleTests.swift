import Glibc
import Testing

extension MountedTests {
  /// From mount to unmount: what begins, what ends, and what is left.
  @Suite struct LifecycleTests {
    @Test("mount returns when the folder is ready, and unmount when everything is gone")
    func background() throws {
      try MountedVault.withUnmounted { vault in
        try vault.photovault(
          ["mount", MountedVault.user, vault.mountPoint, "--idle", "0"], expecting: 0)
        #expect(MountTable.type(at: vault.mountPoint) == "fuse.photovault")
        #expect(!MountTable.daemons(of: vault.folder).isEmpty)
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        try vault.photovault(["unmount", vault.mountPoint], password: false, expecting: 0)
        #expect(!vault.isMounted)
        #expect(MountTable.daemons(of: vault.folder) == [])
      }
    }

    @Test(
      "a first session with the password on standard input: mount --create, save, unmount, mount")
    func createOnStandardInput() throws {
      let folder = try Scratch.makeFolder()
      defer { Scratch.remove(folder) }
      try Command.shell(
        """
        cd "$FOLDER"
        printf 'secret\\n' | "$PHOTOVAULT" mount --create alice photos
        cp "$PHOTOS/photo.jpg" photos/
        "$PHOTOVAULT" unmount alice
        test ! -e photos/photo.jpg
        printf 'secret\\n' | "$PHOTOVAULT" mount alice photos
        cmp "$PHOTOS/photo.jpg" photos/photo.jpg
        "$PHOTOVAULT" unmount photos
        code=0; printf 'Secret\\n' | "$PHOTOVAULT" mount alice photos || code=$?
        test $code = 12
        """,
        environment: [
          "FOLDER": folder, "HOME": folder, "PHOTOVAULT": Checkout.program,
          "PHOTOS": try Photos.folder.get(), "XDG_RUNTIME_DIR": folder,
        ])
    }

    @Test(
      "SIGTERM, SIGINT, umount and fusermount3 -u end the daemon in order, with what was written",
      arguments: [
        "kill -TERM $DAEMON", "kill -INT $DAEMON", "umount \"$M\"", "fusermount3 -u \"$M\"",
      ])
    func orderlyEnds(how: String) throws {
      try MountedVault.withMounted { vault in
        let daemon = try #require(vault.daemon).id
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        // Right after other calls the kernel may still hold the root for a moment.
        try vault.shell(
          """
          DAEMON=\(daemon)
          for try in 1 2 3 4 5; do { \(how); } && exit; sleep 0.2; done; false
          """)
        try vault.expectEnd()
        try vault.mount()
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
      }
    }

    @Test("kill -9 leaves no stale mount behind")
    func killedDaemon() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        try vault.crash()
        #expect(Wait.until(seconds: 5) { !vault.isMounted })
        try vault.mount()
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
      }
    }

    @Test("kill -9 of a daemon in the background leaves no stale mount behind")
    func killedBackgroundDaemon() throws {
      try MountedVault.withUnmounted { vault in
        try vault.photovault(["mount", MountedVault.user, vault.mountPoint], expecting: 0)
        let holders = try vault.shell(
          """
          for process in \(MountTable.daemons(of: vault.folder).map(String.init).joined(separator: " ")); do
            if readlink /proc/$process/fd/* | grep -qx /dev/fuse; then echo $process; fi
          done
          """)
        for pid in holders.split(separator: "\n").compactMap({ pid_t($0) }) { kill(pid, SIGKILL) }
        #expect(Wait.until(seconds: 5) { !vault.isMounted })
        #expect(Wait.until(seconds: 5) { MountTable.daemons(of: vault.folder) == [] })
      }
    }

    @Test("a stale mount that nothing could clear away is cleared by the next mount")
    func staleMount() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        // Whoever could clean up stops first.
        try vault.shell(
          """
          all=$(pgrep -f "$M" | grep -vx -e $$ -e $PPID)
          kill -STOP $all
          kill -KILL $all
          """)
        _ = vault.daemon?.wait()
        try vault.shell(
          "code=0; timeout 10 ls \"$M\" 2>\"$W/errors\" || code=$?; grep 'endpoint is not connected' \"$W/errors\""
        )
        try vault.mount()
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
      }
    }

    @Test("unmount ends the folder also where a container has a copy of the mount")
    func copiedMount() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let container = try Command.spawn(
          ["unshare", "--mount", "sleep", "60"], output: "/dev/null", errors: "/dev/null")
        defer {
          container.signal(SIGKILL)
          _ = container.wait()
        }
        let inside = "nsenter --target \(container.id) --mount"
        try vault.shell(
          """
          for try in $(seq 100); do
            [ "$(readlink /proc/\(container.id)/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ] || break
            sleep 0.05
          done
          \(inside) cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          """)
        try vault.unmount()
        try vault.shell("! \(inside) cat \"$M/photo.jpg\"")
      }
    }

    @Test("a mount point that mount made is gone after the unmount")
    func madeMountPoint() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("rmdir \"$M\"")
        try vault.mount()
        try vault.unmount()
        try vault.shell("test ! -e \"$M\"")
      }
    }

    @Test("a mount point that was there can't be written to while the vault is locked")
    func mountPointMode() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("chmod 0755 \"$M\"")
        for _ in 1...2 {
          try vault.mount()
          try vault.unmount()
          #expect(try vault.shell("stat -c %a \"$M\"") == "500\n")
        }
      }
    }

    @Test("--keep-mount-point-mode leaves the mount point's mode alone")
    func keptMountPointMode() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("chmod 0750 \"$M\"")
        try vault.mount(options: ["--keep-mount-point-mode"])
        try vault.unmount()
        #expect(try vault.shell("stat -c %a \"$M\"") == "750\n")
      }
    }

    @Test("without a mount point the folder is Pictures/USER")
    func defaultMountPoint() throws {
      try MountedVault.withUnmounted { vault in
        try vault.photovault(["mount", MountedVault.user], expecting: 0)
        let place = vault.folder + "/Pictures/" + MountedVault.user
        #expect(MountTable.type(at: place) == "fuse.photovault")
        try vault.photovault(["unmount", MountedVault.user], password: false, expecting: 0)
        #expect(MountTable.type(at: place) == nil)
        try vault.shell("test ! -e \(place)")
      }
    }

    @Test("unmount takes the user's name, or --all")
    func unmountByName() throws {
      try MountedVault.withMounted { vault in
        try vault.photovault(["unmount", MountedVault.user], password: false, expecting: 0)
        try vault.expectEnd()
        try vault.mount()
        try vault.photovault(["unmount", "--all"], password: false, expecting: 0)
        try vault.expectEnd()
      }
    }

    @Test("status says what is mounted, for people and for programs")
    func status() throws {
      try MountedVault.withMounted { vault in
        let text = try vault.photovault(["status"], password: false, expecting: 0).output
        #expect(text.contains(MountedVault.user))
        #expect(text.contains(vault.mountPoint))
        try Scratch.write(
          try vault.photovault(["status", "--json"], password: false, expecting: 0).output,
          to: vault.work + "/status.json")
        try vault.shell(
          """
          python3 - "$W/status.json" "$M" <<'END'
          import json, sys
          status = json.load(open(sys.argv[1]))
          mounts = status if isinstance(status, list) else status["mounts"]
          assert len(mounts) == 1, mounts
          assert mounts[0]["holders"] == [], mounts
          assert sys.argv[2] in mounts[0].values() and "alice" in mounts[0].values(), mounts
          END
          """)
        try vault.unmount()
        let after = try vault.photovault(["status", "--json"], password: false, expecting: 0).output
        #expect(!after.contains(vault.mountPoint))
      }
    }

    @Test(
      "an unused folder locks itself; looking at names and free space is no use, an open file is")
    func idle() throws {
      try MountedVault.withUnmounted { vault in
        try vault.mount(options: ["--idle", "3s"])
        try vault.shell(
          """
          cp "$PHOTOS/photo.jpg" "$M/"
          exec 3<"$M/photo.jpg"
          sleep 7
          head -c 10 <&3 | wc -c | grep -qx 10
          """)
        #expect(vault.isMounted)
        // What a file manager in the background does.
        _ = try Command.run(
          ["bash", "-c", "while df $M && ls -l $M && stat $M/photo.jpg && sleep 0.3; do :; done"],
          environment: ["M": vault.mountPoint], limit: 20)
        #expect(!vault.isMounted)
        try vault.expectEnd()
        try vault.mount()
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
      }
    }

    @Test("a read-only mount reads everything and changes nothing")
    func readOnly() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        try vault.unmount()
        let listing = #"find "$V" -printf '%p %s %i %C@\n' | sort"#
        let before = try vault.shell(listing)
        try vault.mount(options: ["--read-only"])
        try vault.shell(
          """
          cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          for change in 'touch new' 'rm photo.jpg' 'mv photo.jpg x' 'mkdir x' 'chmod 600 photo.jpg' \
            'setfattr -n user.a photo.jpg' 'truncate -s 0 photo.jpg' 'ln photo.jpg x'; do
            (cd "$M"; ! $change 2>"$W/errors")
            grep -q 'Read-only file system' "$W/errors"
          done
          """)
        try vault.unmount()
        #expect(try vault.shell(listing) == before)
      }
    }

    @Test("set-id bits of a file go when somebody who isn't root changes it, and stay for root")
    func setIDBits() throws {
      try MountedVault.withMounted { vault in
        try vault.unmount()
        try vault.mount(options: ["-o", "allow_other"])
        try vault.shell(
          """
          chmod 0777 "$M"; cd "$M"
          somebody="setpriv --reuid=65534 --regid=65534 --clear-groups"
          for change in 'echo more >>a' 'echo new >a' 'truncate -s 100000 a' 'fallocate -l 200000 a' \\
            'dd if=/dev/zero of=a bs=300k count=3 conv=notrunc status=none'; do
            cp "$PHOTOS/photo.jpg" a; chown 65534:65534 a
            chmod 6755 a; bash -c "$change"; test "$(stat -c %a a)" = 6755
            $somebody bash -c "$change"; test "$(stat -c %a a)" = 755
          done
          chmod 6755 a; chown 65533:65533 a; test "$(stat -c %a a)" = 755
          """)
      }
    }

    @Test("no other user sees the folder, unless allow_other says so")
    func otherUsers() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          "cp \"$PHOTOS/photo.jpg\" \"$M/\"; chmod 0755 \"$M\"; chmod 0644 \"$M/photo.jpg\"")
        let other = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        try vault.shell("(! \(other) ls \"$M\"); (! \(other) cat \"$M/photo.jpg\")")
        try vault.unmount()
        try vault.mount(options: ["-o", "allow_other"])
        try vault.shell(
          "\(other) cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"; (! \(other) touch \"$M/new\")")
      }
    }
  }
}
