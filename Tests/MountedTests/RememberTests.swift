import Glibc
import Testing

extension MountedTests {
  /// Passwords that the desktop's keyring remembers for `mount`.
  @Suite struct RememberTests {
    /// There is no system bus here, of which a warning would tell.
    private static let unwatched = "on-screen-lock=ignore,on-suspend=ignore"

    private func withAccount(keyring: Bool = true, _ body: (Desktop) throws -> Void) throws {
      try Desktop.with(keyring: keyring) { desktop in
        try desktop.unlocking("create", "alice", expecting: 0)
        try body(desktop)
      }
    }

    private func remember(_ desktop: Desktop, _ option: String = "--remember") throws {
      let mounted = try desktop.unlocking(
        "mount", "alice", desktop.mountPoint, option, "-o", Self.unwatched, expecting: 0)
      #expect(mounted.errors == "")
      try desktop.photovault("unmount", "alice", expecting: 0)
    }

    /// With nothing on standard input.
    private func mountUnasked(_ desktop: Desktop, expecting status: Int32) throws -> Outcome {
      let outcome = try desktop.photovault(
        "mount", "alice", desktop.mountPoint, "-o", Self.unwatched, expecting: status)
      if status == 0 { try desktop.photovault("unmount", "alice", expecting: 0) }
      return outcome
    }

    @Test(
      "a password that is remembered is asked for no more",
      arguments: ["--remember", "-oremember"])
    func remembers(option: String) throws {
      try withAccount { desktop in
        _ = try mountUnasked(desktop, expecting: 64)
        try remember(desktop, option)
        #expect(try mountUnasked(desktop, expecting: 0).errors == "")
        let onTerminal = try desktop.onTerminal("[]", "mount", "alice", desktop.mountPoint)
        #expect(onTerminal.status == 0 && !onTerminal.output.contains("Password"))
        try desktop.photovault("unmount", "alice", expecting: 0)
        try desktop.shell(#"! grep -rF "\#(Desktop.password)" "$A" "$D/data""#)
      }
    }

    @Test("a wrong password is not remembered, and a given one goes before a remembered one")
    func givenPasswords() throws {
      try withAccount { desktop in
        let wrong = desktop.folder + "/wrong"
        try desktop.photovault(
          "mount", "alice", desktop.mountPoint, "--remember", "--password-file", wrong,
          expecting: 12)
        #expect(try desktop.keyringItems() == "")
        try remember(desktop)
        for input in ["wrong\n", "wrong"] {
          try desktop.photovault(
            "mount", "alice", desktop.mountPoint, input: input, expecting: 12)
        }
        try desktop.photovault("mount", "alice", desktop.mountPoint, input: "\n", expecting: 64)
        try desktop.photovault(
          "mount", "alice", desktop.mountPoint, "--password-file", wrong, expecting: 12)
        try desktop.photovault(
          "mount", "alice", desktop.mountPoint, "--remember", "--forget", expecting: 64)
        _ = try mountUnasked(desktop, expecting: 0)
      }
    }

    @Test("--forget takes it out of the keyring", arguments: ["--forget", "-oforget"])
    func forgets(option: String) throws {
      try withAccount { desktop in
        try remember(desktop)
        #expect(try desktop.keyringItems().contains("photovault password of alice"))
        // Before anything else: whatever becomes of the mount.
        try desktop.photovault(
          "mount", "alice", desktop.mountPoint, option, input: "wrong", expecting: 12)
        #expect(try desktop.keyringItems() == "")
        try desktop.shell(#"test ! -e "$A/alice.remembered""#)
        _ = try mountUnasked(desktop, expecting: 64)
        try desktop.unlocking("mount", "alice", desktop.mountPoint, option, expecting: 0)
        try desktop.photovault("unmount", "alice", expecting: 0)
      }
    }

    @Test("passwd and recover replace it, remove takes it away")
    func newPasswords() throws {
      try withAccount { desktop in
        try remember(desktop)
        try Scratch.write(try desktop.recoveryKey(), to: desktop.folder + "/key")
        try desktop.shell(#"printf 'pw-2\n' >"$D/2"; printf 'pw-3\n' >"$D/3""#)
        try desktop.unlocking(
          "passwd", "alice", "--new-password-file", desktop.folder + "/2", expecting: 0)
        _ = try mountUnasked(desktop, expecting: 0)
        try desktop.shell(
          #"""
          "$PV" recover alice --vault "$PHOTOVAULT_HOME/photos/alice" --recovery-key-file "$D/key" \
            --new-password-file "$D/3"
          """#)
        _ = try mountUnasked(desktop, expecting: 0)
        #expect(try desktop.keyringItems().split(separator: "secret = ").count == 2)
        try desktop.photovault("remove", "alice", "--yes", expecting: 0)
        #expect(try desktop.keyringItems() == "")
        try desktop.shell(#"test -z "$(ls "$A")""#)
      }
    }

    @Test("one that is no longer right is said to be so, and the right one is asked for")
    func outdatedPassword() throws {
      try withAccount { desktop in
        try remember(desktop)
        try desktop.shell(#"printf 'pw-2\n' >"$D/2""#)
        try desktop.lockKeyring()
        let changed = try desktop.unlocking(
          "passwd", "alice", "--new-password-file", desktop.folder + "/2", expecting: 0)
        #expect(changed.errors.contains("warning: the keyring still holds the former password"))
        try desktop.unlockKeyring()
        let refused = try mountUnasked(desktop, expecting: 12)
        #expect(refused.errors.contains("the remembered password"))
        let asked = try desktop.onTerminal(
          #"[["Password for 'alice': ", "pw-2\r"]]"#, "mount", "alice", desktop.mountPoint,
          "--remember")
        #expect(asked.status == 0, "\(asked.output)\(asked.errors)")
        #expect(asked.output.contains("the remembered password"))
        try desktop.photovault("unmount", "alice", expecting: 0)
        _ = try mountUnasked(desktop, expecting: 0)
      }
    }

    @Test("a keyring that is locked or gone is told, and the password is asked for")
    func unavailable() throws {
      try withAccount { desktop in
        try remember(desktop)
        try desktop.lockKeyring()
        let refused = try mountUnasked(desktop, expecting: 14)
        #expect(refused.errors.contains("the keyring is locked"))
        let kept = try desktop.photovault(
          "mount", "alice", desktop.mountPoint, "--forget", input: Desktop.password,
          expecting: 14)
        #expect(kept.errors.contains("the keyring is locked"))
        desktop.endKeyring()
        let asked = try desktop.onTerminal(
          #"[["Password for 'alice': ", "\#(Desktop.password)\r"]]"#, "mount", "alice",
          desktop.mountPoint)
        #expect(asked.status == 0, "\(asked.output)\(asked.errors)")
        #expect(asked.output.contains("no program on the session bus offers it"))
        try desktop.photovault("unmount", "alice", expecting: 0)
        let removed = try desktop.photovault("remove", "alice", "--yes", expecting: 0)
        #expect(removed.errors.contains("may still hold the password of 'alice'"))
      }
    }

    @Test("a mount that asked the keyring itself outlives the bus, and ends in order")
    func outlivesTheBus() throws {
      try withAccount { desktop in
        try remember(desktop)
        let mounted = try Command.spawn(
          [Checkout.program, "mount", "alice", desktop.mountPoint, "--foreground"],
          environment: desktop.environment, output: desktop.folder + "/out",
          errors: desktop.folder + "/err")
        let isUp = Wait.until(seconds: 20) {
          Scratch.read(desktop.folder + "/err").contains("is ready")
        }
        #expect(isUp)
        try desktop.shell(#"echo photo >"$M/photo.jpg""#)
        desktop.endKeyring()
        desktop.endBus()
        try desktop.shell(#"sleep 1; grep -qx photo "$M/photo.jpg"; echo more >"$M/more.jpg""#)
        mounted.signal(SIGTERM)
        #expect(mounted.wait(seconds: 20) == 0)
        #expect(MountTable.type(at: desktop.mountPoint) == nil)
        try desktop.unlocking("mount", "alice", desktop.mountPoint, expecting: 0)
        try desktop.shell(#"grep -qx more "$M/more.jpg"; "$PV" unmount alice"#)
      }
    }

    @Test("where no keyring is, --remember says so and mounts")
    func noKeyring() throws {
      try withAccount(keyring: false) { desktop in
        let mounted = try desktop.unlocking(
          "mount", "alice", desktop.mountPoint, "--remember", expecting: 0)
        #expect(mounted.errors.contains("warning: the password is not remembered: "))
        try desktop.photovault("unmount", "alice", expecting: 0)
        _ = try mountUnasked(desktop, expecting: 64)
        try desktop.shell(#"test "$(ls "$A")" = alice.json"#)
      }
    }

    @Test("a password of any bytes, for an account in the keyring as well")
    func anyBytes() throws {
      try Desktop.with { desktop in
        try desktop.shell(#"printf '\x00\x01\xff\xfe\x0a\xc3\x0a' >"$D/password""#)
        try desktop.unlocking("create", "alice", "--store", "secret-service", expecting: 0)
        try remember(desktop)
        _ = try mountUnasked(desktop, expecting: 0)
        try desktop.lockKeyring()
        _ = try mountUnasked(desktop, expecting: 14)
        try desktop.unlockKeyring()
        try desktop.photovault("remove", "alice", "--yes", "--delete-photos", expecting: 0)
        #expect(try desktop.keyringItems() == "")
      }
    }
  }
}
