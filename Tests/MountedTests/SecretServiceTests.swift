import Glibc
import Testing

extension MountedTests {
  /// Accounts in the desktop's Secret Service: a real gnome-keyring on a bus of the test's own.
  @Suite struct SecretServiceTests {
    private func create(_ desktop: Desktop) throws {
      let made = try desktop.unlocking(
        "create", "alice", "--store", "secret-service", expecting: 0)
      #expect(made.output == "" && made.errors == "")
    }

    /// Exit 14, an error that holds `message`, and a hint that holds `hint`; nothing else.
    private func expectUnavailable(
      _ outcome: Outcome, _ message: String, hint: String = "",
      location: SourceLocation = #_sourceLocation
    ) {
      #expect(outcome.status == 14, "\(outcome.errors)", sourceLocation: location)
      #expect(outcome.output == "", sourceLocation: location)
      let lines = outcome.errors.split(separator: "\n").filter {
        $0.hasPrefix("photovault: error: ") || $0.hasPrefix("photovault: hint: ")
      }
      #expect(lines.count == 2, "\(outcome.errors)", sourceLocation: location)
      #expect(lines.first?.contains(message) == true, "\(outcome.errors)", sourceLocation: location)
      #expect(
        lines.last?.contains(hint) == true || hint.isEmpty, "\(outcome.errors)",
        sourceLocation: location)
    }

    @Test("an account lives in the keyring, and its password is checked against what is there")
    func lifeOfAnAccount() throws {
      try Desktop.with { desktop in
        try create(desktop)
        let key = try desktop.recoveryKey()
        #expect(key.count == 64)
        try desktop.shell(#"test "$(ls "$A")" = alice.secret-service"#)

        // Whoever reads the open keyring still needs the password.
        let items = try desktop.keyringItems()
        #expect(items.contains(#""kdf":{"n":131072,"name":"scrypt""#))
        #expect(!items.contains(key) && !items.contains(Desktop.password))
        #expect(!Scratch.read(desktop.home + "/accounts/alice.secret-service").contains("secret\""))

        let wrong = try desktop.photovault(
          "recovery-key", "alice", "--password-file", desktop.folder + "/wrong", expecting: 12)
        #expect(wrong.errors.contains("invalid username/password combination"))

        try desktop.shell(
          #"""
          printf 'pw-new\n' >"$D/new"
          "$PV" passwd alice --password-file "$D/password" --new-password-file "$D/new"
          """#)
        try desktop.unlocking("recovery-key", "alice", expecting: 12)
        try desktop.shell(#"mv "$D/new" "$D/password""#)
        #expect(try desktop.recoveryKey() == key)
        #expect(try desktop.keyringItems().split(separator: "secret = ").count == 2)

        try desktop.photovault("remove", "alice", "--yes", expecting: 0)
        #expect(try desktop.keyringItems() == "")
        try desktop.unlocking("recovery-key", "alice", expecting: 11)
        #expect(try desktop.photovault("accounts", expecting: 0).output == "")
      }
    }

    @Test("its vault mounts, and a photo comes back")
    func mounts() throws {
      try Desktop.with { desktop in
        try create(desktop)
        try desktop.unlocking("mount", "alice", desktop.mountPoint, expecting: 0)
        try desktop.shell(#"echo photo >"$M/photo.jpg"; "$PV" unmount alice"#)
        try desktop.photovault(
          "mount", "alice", desktop.mountPoint, input: Desktop.password, expecting: 0)
        try desktop.shell(#"grep -qx photo "$M/photo.jpg"; "$PV" unmount alice"#)
        try desktop.photovault(
          "mount", "alice", desktop.mountPoint, input: "wrong", expecting: 12)
      }
    }

    @Test("accounts of both stores are listed together, and a name is in only one of them")
    func bothStores() throws {
      try Desktop.with { desktop in
        try create(desktop)
        try desktop.unlocking("create", "bob", expecting: 0)
        let before = try desktop.keyringItems()
        let names = [("alice", "file"), ("alice", "secret-service"), ("bob", "secret-service")]
        for (user, store) in names {
          let again = try desktop.unlocking("create", user, "--store", store, expecting: 18)
          #expect(again.errors.contains("account exists: \(user)"))
        }
        #expect(try desktop.keyringItems() == before)
        try desktop.shell(
          #"""
          "$PV" accounts | diff - <(printf '%s\n' "alice  $PHOTOVAULT_HOME/photos/alice" \
            "bob    $PHOTOVAULT_HOME/photos/bob")
          "$PV" accounts --json | python3 -c '
          import json, sys
          rows = json.load(sys.stdin)
          assert [(r["account"], r["store"]) for r in rows] == [
            ("alice", "secret-service"), ("bob", "file")]
          ids = [json.load(open(r["vault"]["path"] + "/vault.json"))["id"] for r in rows]
          assert ids == [r["vault"]["id"] for r in rows]
          assert [r["thisDeviceOnly"] for r in rows] == [False, False]'
          """#)
      }
    }

    @Test("accounts of the same name in two homes don't meet in the keyring")
    func twoHomes() throws {
      try Desktop.with { desktop in
        try create(desktop)
        let other = desktop.folder + "/other"
        try desktop.photovault(
          "create", "alice", "--store", "secret-service", "--home", other, input: "pw-other",
          expecting: 0)
        let key = try desktop.recoveryKey()
        try desktop.photovault("remove", "alice", "--home", other, "--yes", expecting: 0)
        #expect(try desktop.recoveryKey() == key)
      }
    }

    @Test("of creates at the same time one makes the account")
    func creating() throws {
      try Desktop.with { desktop in
        let codes = try desktop.shell(
          #"""
          set +x
          for i in 1 2 3; do
            ("$PV" create alice --store secret-service --password-file "$D/password" || echo $?) \
              2>/dev/null &
          done
          wait
          """#)
        #expect(codes.split(separator: "\n").count == 2)
        _ = try desktop.recoveryKey()
        #expect(try desktop.keyringItems().split(separator: "secret = ").count == 2)
      }
    }

    @Test("a locked keyring is said to be locked; what needs none of it goes on")
    func locked() throws {
      try Desktop.with { desktop in
        try create(desktop)
        let key = try desktop.recoveryKey()
        try desktop.unlocking("create", "bob", expecting: 0)
        try desktop.lockKeyring()
        for command in ["recovery-key", "passwd", "mount"] {
          let outcome = try desktop.unlocking(command, "alice")
          expectUnavailable(outcome, "the keyring is locked", hint: "unlock it")
          #expect(outcome.errors.contains("waiting for it to be unlocked"))
        }
        expectUnavailable(
          try desktop.photovault("remove", "alice", "--yes"), "the keyring is locked")
        let create = try desktop.unlocking("create", "carol", "--store", "secret-service")
        expectUnavailable(create, "the keyring is locked", hint: "is kept in a file")
        try desktop.shell(#"test ! -e "$PHOTOVAULT_HOME/photos/carol""#)

        let list = try desktop.photovault("accounts", expecting: 0)
        #expect(list.output.split(separator: "\n").count == 2 && list.errors == "")
        _ = try desktop.recoveryKey("bob")
        try desktop.unlockKeyring()
        #expect(try desktop.recoveryKey() == key)
      }
    }

    @Test("a keyring that asks is unlocked by the answer, and everything goes on")
    func answered() throws {
      try Desktop.with(keyring: false) { desktop in
        try desktop.startAskingKeyring(answering: "yes")
        let note = "photovault: the keyring is locked: waiting for it to be unlocked\n"
        let made = try desktop.unlocking(
          "create", "alice", "--store", "secret-service", expecting: 0)
        #expect(made.errors == note)
        let key = try desktop.recoveryKey()
        for command in ["recovery-key", "passwd"] {
          desktop.lockAskingKeyring()
          let outcome = try desktop.photovault(
            command, "alice", input: "\(Desktop.password)\n\(Desktop.password)\n", expecting: 0)
          #expect(outcome.errors == note)
        }
        #expect(try desktop.recoveryKey() == key)
        desktop.lockAskingKeyring()
        #expect(try desktop.photovault("remove", "alice", "--yes", expecting: 0).errors == note)
        try desktop.unlocking("recovery-key", "alice", expecting: 11)
      }
    }

    @Test("a question that nobody answers can be broken off")
    func interrupted() throws {
      try Desktop.with(keyring: false) { desktop in
        try desktop.startAskingKeyring(answering: "no")
        expectUnavailable(
          try desktop.unlocking("create", "alice", "--store", "secret-service"),
          "the keyring is locked, and nobody unlocked it")
        try desktop.startAskingKeyring(answering: "never")
        try desktop.shell(
          #"""
          "$PV" create alice --store secret-service --password-file "$D/password" 2>"$D/errors" &
          for try in $(seq 100); do grep -q waiting "$D/errors" && break; sleep 0.1; done
          kill -TERM $!
          wait $! && exit 1 || test $? = 143
          test ! -e "$PHOTOVAULT_HOME"
          """#)
      }
    }

    @Test("a keyring that hangs, is not there, or can't be reached: which is told, nothing is lost")
    func unavailable() throws {
      try Desktop.with { desktop in
        try create(desktop)
        let key = try desktop.recoveryKey()
        func expectAll(_ message: String, hint: String) throws {
          expectUnavailable(try desktop.unlocking("recovery-key", "alice"), message, hint: hint)
          expectUnavailable(
            try desktop.unlocking("create", "bob", "--store", "secret-service"), message,
            hint: hint)
          let list = try desktop.photovault("accounts", expecting: 0)
          #expect(list.output.hasPrefix("alice  ") && list.errors == "")
          try desktop.unlocking("recovery-key", "nobody", expecting: 11)
        }
        desktop.hangKeyring()
        try expectAll("it does not answer", hint: "gnome-keyring-daemon")
        desktop.resumeKeyring()
        #expect(try desktop.recoveryKey() == key)

        let address = desktop.busAddress
        desktop.busAddress = nil
        try expectAll("there is no session bus", hint: "desktop session")
        desktop.busAddress = "unix:path=\(desktop.folder)/gone"
        try expectAll("there is no session bus", hint: "desktop session")
        desktop.busAddress = address
        desktop.endKeyring()
        try expectAll("no program on the session bus offers it", hint: "gnome-keyring")
      }
    }

    @Test("without libsecret the program works, and says what to install")
    func withoutLibsecret() throws {
      try Desktop.with { desktop in
        try create(desktop)
        try Scratch.write(
          #"""
          set -euxo pipefail
          : >"$D/empty"
          library=$(ldconfig -p | awk '$1 == "libsecret-1.so.0" { found = $NF } END { print found }')
          mount --bind "$D/empty" "$library"
          "$PV" create bob --password-file "$D/password"
          "$PV" recovery-key bob --password-file "$D/password"
          "$PV" accounts | grep -c photos/ | grep -qx 2
          for line in "recovery-key alice" "create carol --store secret-service"; do
            "$PV" $line --password-file "$D/password" 2>"$D/errors" && exit 1 || test $? = 14
            grep -q 'error: the Secret Service is unavailable: libsecret is not installed' "$D/errors"
            grep -q 'hint: install the package libsecret-1-0' "$D/errors"
          done
          """#, to: desktop.folder + "/script")
        try desktop.shell(#"unshare --mount bash "$D/script""#)
        _ = try desktop.recoveryKey()
      }
    }

    @Test("an item that somebody deleted is made anew from the recovery key, where it was")
    func lostItem() throws {
      try Desktop.with { desktop in
        try create(desktop)
        let key = try desktop.recoveryKey()
        try desktop.shell("secret-tool clear account alice")
        let lost = try desktop.unlocking("recovery-key", "alice", expecting: 11)
        #expect(lost.errors.contains("in the keyring any more"))
        #expect(lost.errors.contains("recover alice --vault \(desktop.home)/photos/alice"))

        try Scratch.write(key, to: desktop.folder + "/key")
        let recover = #"""
          "$PV" recover alice --vault "$PHOTOVAULT_HOME/photos/alice" --recovery-key-file "$D/key" \
            --new-password-file "$D/password"
          """#
        try desktop.shell("\(recover) --store file && exit 1 || test $? = 18")
        try desktop.shell(recover)
        #expect(try desktop.recoveryKey() == key)
        // Once more, now over the one that is there, and at another place.
        try desktop.shell(
          #"""
          mv "$PHOTOVAULT_HOME/photos/alice" "$D/moved"
          "$PV" recover alice --vault "$D/moved" --recovery-key-file "$D/key" \
            --new-password-file "$D/password" --store secret-service
          "$PV" accounts | grep -qx "alice  $D/moved"
          test "$(ls "$A")" = alice.secret-service
          """#)
        #expect(try desktop.recoveryKey() == key)
        #expect(try desktop.keyringItems().split(separator: "secret = ").count == 2)
        // A new account, in the other store.
        try desktop.photovault("remove", "alice", "--yes", expecting: 0)
        try desktop.shell(
          #"""
          "$PV" recover alice --vault "$D/moved" --recovery-key-file "$D/key" \
            --new-password-file "$D/password"
          "$PV" accounts --json | grep -q '"store":"file"'
          """#)
      }
    }

    @Test("an account for this device only is not given to the Secret Service")
    func thisDeviceOnly() throws {
      try Desktop.with { desktop in
        let refused = try desktop.unlocking(
          "create", "alice", "--store", "secret-service", "--this-device-only", expecting: 64)
        #expect(refused.errors.contains("--this-device-only needs --store file"))
        #expect(try desktop.keyringItems() == "")
      }
    }
  }
}
