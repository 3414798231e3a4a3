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

    @Test("a process that doesn't answer any more is ended: the folder is locked all the same")
    func stuckProcess() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let daemon = try #require(vault.daemon)
        daemon.signal(SIGSTOP)
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
      try MountedVault.withMounted(backing: disk + "/vault") { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let reader = try Command.spawn(
          ["python3", Checkout.workloads + "/reader.py", vault.mountPoint + "/photo.jpg"],
          output: vault.work + "/reader", errors: "/dev/null")
        #expect(Wait.until(seconds: 5) { Scratch.read(vault.work + "/reader") == "reads\n" })
        let writer = try Writer(vault, "film.mp4", pause: 30)
        try Command.shell("fsfreeze -f '\(disk)'")
        let begin = Clock.seconds
        let outcome = try vault.photovault(["lock"], password: false, expecting: 1)
        #expect(Clock.seconds - begin < 10)
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
