import Glibc
import Testing

extension MountedTests {
  /// The folder locks itself: with the screen, before sleep, at the end of the session.
  @Suite struct SessionLockTests {
    private static let savers = [
      "org.freedesktop.ScreenSaver", "org.gnome.ScreenSaver", "org.cinnamon.ScreenSaver",
      "org.mate.ScreenSaver", "org.xfce.ScreenSaver",
    ]

    @Test("each of logind's ways to say it locks the folder")
    func logind() throws {
      try DesktopSession.with(DesktopSession.usual) { desktop, vault in
        for (command, reason, undo) in [
          ("locked-hint c2 true", "screen locked", "locked-hint c2 false"),
          ("lock-session c2", "screen locked", "locked-hint c2 false"),
          ("shutdown true", "shutting down", "shutdown false"),
          ("remove-session c2", "session ended", "open-session c2"),
          ("close-session c2", "session ended", "open-session c2"),
        ] {
          try vault.mountWatched()
          try desktop.tell(command)
          try vault.expectLocked(reason, command)
          try desktop.tell(undo)
        }
      }
    }

    @Test("the machine sleeps only once the folder is locked, with what was written")
    func sleep() throws {
      try DesktopSession.with(DesktopSession.usual) { desktop, vault in
        try vault.mountWatched()
        #expect(desktop.events.hasPrefix("inhibited sleep photovault "))
        #expect(desktop.events.hasSuffix(" delay\n"))
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        try desktop.tell("sleep false")
        vault.expectStaysMounted("waking up")
        try desktop.tell("sleep true")
        try vault.expectLocked("going to sleep", "sleep")
        #expect(Wait.until(seconds: 5) { desktop.events.hasSuffix("released while unmounted\n") })
        try desktop.tell("sleep false")
        try vault.mountWatched()
        #expect(desktop.events.hasSuffix(" delay\n"), "taken again")
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
        try vault.unmount()
      }
    }

    @Test("--on-suspend ignore: no inhibitor, and sleep locks nothing; a shutdown does")
    func ignoredSleep() throws {
      try DesktopSession.with(DesktopSession.usual) { desktop, vault in
        try vault.mountWatched(["--on-suspend", "ignore"])
        try desktop.tell("sleep true")
        vault.expectStaysMounted("sleep")
        #expect(desktop.events == "")
        try desktop.tell("shutdown true")
        try vault.expectLocked("shutting down", "shutdown")
      }
    }

    @Test("the mount's own session and the user's display count, others don't")
    func sessions() throws {
      let commands =
        DesktopSession.usual + ["add-session c5", "add-session c7", "add-session c9 0 background"]
      try DesktopSession.with(commands) { desktop, vault in
        vault.variables["XDG_SESSION_ID"] = "c7"
        try vault.mountWatched()
        for command in ["locked-hint c5 true", "lock-session c5", "remove-session c5"] {
          try desktop.tell(command)
        }
        // Logged out of the desktop, but not where the folder was mounted.
        try desktop.tell("remove-session c2")
        vault.expectStaysMounted("somebody else's session")
        try desktop.tell("locked-hint c7 true")
        try vault.expectLocked("screen locked", "its own session")
        try desktop.tell("locked-hint c7 false")

        try vault.mountWatched()
        try desktop.tell("locked-hint c2 true")
        try vault.expectLocked("screen locked", "the user's display")
        try desktop.tell("locked-hint c2 false")

        vault.variables["XDG_SESSION_ID"] = nil
        try desktop.tell("set-own c7")
        try vault.mountWatched()
        try desktop.tell("remove-session c7")
        try vault.expectLocked("session ended", "the session of the process")

        // A job of cron: its session ends at once.
        try desktop.tell("set-own c9")
        try vault.mountWatched()
        try desktop.tell("remove-session c9")
        vault.expectStaysMounted("a session that is no login")
        try desktop.tell("remove-session c2")
        try vault.expectLocked("session ended", "the user's display")
      }
    }

    @Test("each desktop's screen saver locks the folder")
    func screenSavers() throws {
      try DesktopSession.with(["start session"]) { desktop, vault in
        for (name, path) in Self.savers.map({ ($0, "") })
          + [(Self.savers[0], " /ScreenSaver")]
        {
          try desktop.tell("saver \(name) false\(path)")
          try vault.mountWatched(["--on-suspend", "ignore"])
          try desktop.tell("set-active \(name) false\(path)")
          try desktop.tell("set-active \(name) true\(path)")
          try vault.expectLocked("screen locked", name + path)
        }
      }
    }

    @Test("a dark screen is a lock only where the screen saver can't tell them apart, or if asked")
    func blanking() throws {
      let commands = DesktopSession.usual + Self.savers[1...2].map { "saver \($0)" }
      try DesktopSession.with(commands) { desktop, vault in
        try vault.mountWatched()
        try desktop.tell("set-active org.gnome.ScreenSaver true")
        vault.expectStaysMounted("a dark screen")
        try desktop.tell("locked-hint c2 true")
        try vault.expectLocked("screen locked", "the lock behind it")
        try desktop.tell("locked-hint c2 false")

        try vault.mountWatched(["--screen-lock-means", "blank"])
        try desktop.tell("set-active org.gnome.ScreenSaver true")
        try vault.expectLocked("screen locked", "--screen-lock-means blank")

        try vault.mountWatched()
        try desktop.tell("set-active org.cinnamon.ScreenSaver true")
        try vault.expectLocked("screen locked", "another desktop")
      }
    }

    @Test("--on-screen-lock ignore: no lock of the screen locks the folder")
    func ignoredScreen() throws {
      let commands = DesktopSession.usual + Self.savers.map { "saver \($0)" }
      try DesktopSession.with(commands) { desktop, vault in
        try vault.mountWatched(["--on-screen-lock", "ignore", "--screen-lock-means", "blank"])
        for command in ["locked-hint c2 true", "lock-session c2"]
          + Self.savers.map({ "set-active \($0) true" })
        {
          try desktop.tell(command)
        }
        vault.expectStaysMounted("a lock of the screen")
        try desktop.tell("sleep true")
        try vault.expectLocked("going to sleep", "sleep")
      }
    }

    @Test("a program that only pretends to be the screen saver locks nothing")
    func pretender() throws {
      try DesktopSession.with(DesktopSession.usual + ["saver org.mate.ScreenSaver"]) {
        desktop, vault in
        try vault.mountWatched()
        try desktop.tell("pretend-active org.mate.ScreenSaver")
        vault.expectStaysMounted("a pretender")
        try desktop.tell("set-active org.mate.ScreenSaver true")
        try vault.expectLocked("screen locked", "the real one")
      }
    }

    @Test("a screen that is locked when the folder is mounted locks it the next time")
    func lockedAtMount() throws {
      let commands =
        DesktopSession.usual + ["locked-hint c2 true", "saver org.mate.ScreenSaver true"]
      try DesktopSession.with(commands) { desktop, vault in
        try vault.mountWatched()
        vault.expectStaysMounted("a lock from before")
        try desktop.tell("locked-hint c2 false")
        try desktop.tell("locked-hint c2 true")
        try vault.expectLocked("screen locked", "the next lock")
      }
    }

    @Test("a screen saver that starts, or takes over the name, is asked")
    func newOwner() throws {
      try DesktopSession.with(DesktopSession.usual + ["saver org.mate.ScreenSaver"]) {
        desktop, vault in
        try vault.mountWatched()
        try desktop.tell("leave org.mate.ScreenSaver")
        vault.expectStaysMounted("a screen saver that ends")
        try desktop.tell("saver org.mate.ScreenSaver true")
        try vault.expectLocked("screen locked", "one that starts locked")
      }
    }

    @Test("a bus that comes back is watched again, and a lock meanwhile is not missed")
    func restartedBus() throws {
      try DesktopSession.with(DesktopSession.usual + ["saver org.mate.ScreenSaver"]) {
        desktop, vault in
        try vault.mountWatched()
        try desktop.tell("stop session")
        vault.expectStaysMounted("the session bus is gone")
        try desktop.tell("start session")
        try desktop.tell("saver org.mate.ScreenSaver true")
        try vault.expectLocked("screen locked", "a lock while the session bus was gone")

        try vault.mountWatched()
        try desktop.tell("stop system")
        vault.expectStaysMounted("the system bus is gone")
        #expect(vault.log.contains("the system bus can't be reached"))
        try desktop.tell("start system")
        for command in DesktopSession.usual[2...] { try desktop.tell(command) }
        #expect(Wait.until(seconds: 20) { vault.log.contains("system bus can be reached now") })
        try desktop.tell("sleep true")
        try vault.expectLocked("going to sleep", "sleep after the system bus was gone")
        #expect(Wait.until(seconds: 5) { desktop.events.hasSuffix("released while unmounted\n") })
      }
    }

    @Test("without a bus the folder mounts all the same, and one warning says what is missing")
    func noBus() throws {
      try MountedVault.withUnmounted { vault in
        vault.variables = ["DBUS_SYSTEM_BUS_ADDRESS": "unix:path=\(vault.folder)/none"]
        let said = try vault.photovault(
          ["mount", MountedVault.user, vault.mountPoint], expecting: 0
        ).errors
        #expect(said.split(separator: "\n").count == 1)
        #expect(
          said.contains(
            "\(vault.mountPoint) will not lock with the screen or before the machine sleeps: "))
        try vault.photovault(["unmount", MountedVault.user], password: false, expecting: 0)
        // Nothing is missing for who wants nothing.
        let quiet = try vault.photovault(
          [
            "mount", MountedVault.user, vault.mountPoint, "--on-screen-lock", "ignore",
            "--on-suspend", "ignore",
          ], expecting: 0
        ).errors
        #expect(quiet == "")
        try vault.photovault(["unmount", MountedVault.user], password: false, expecting: 0)
      }
    }

    @Test("without libsystemd the folder mounts all the same")
    func noLibrary() throws {
      try DesktopSession.with(DesktopSession.usual) { _, vault in
        vault.variables["PV"] = Checkout.program
        // The mount is in a namespace of its own, too: all of it happens there.
        try vault.shell(
          """
          cat >"$W/script" <<'END'
          set -euo pipefail
          : >"$W/empty"
          for library in $(ldconfig -p | sed -n 's/.*libsystemd\\.so\\.0.* => //p'); do
            mount --bind "$W/empty" "$(readlink -f "$library")"
          done
          pv() { "$PV" "$@" --home "$W/../home"; }
          pv mount alice "$M" --password-file "$W/../password" 2>"$W/said"
          cp "$PHOTOS/photo.jpg" "$M/"
          cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          pv unmount alice
          END
          unshare -m bash "$W/script"
          test "$(wc -l <"$W/said")" = 1
          grep -F 'will not lock with the screen or before the machine sleeps: libsystemd is not' "$W/said"
          """)
      }
    }

    @Test("buses that accept and never answer hold up neither mount, use nor unmount")
    func frozenBuses() throws {
      try DesktopSession.with(DesktopSession.usual + ["freeze system", "freeze session"]) {
        desktop, vault in
        try vault.mountWatched(saying: "is ready at")
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let start = Time.now
        try vault.unmount()
        #expect(Time.now - start < 3)

        try vault.mountWatched(saying: "will not lock with the screen")
        #expect(vault.log.contains("the system bus does not answer"))
        try desktop.tell("thaw system")
        try desktop.tell("thaw session")
        #expect(Wait.until(seconds: 30) { vault.log.contains("system bus can be reached now") })
        try desktop.tell("locked-hint c2 true")
        try vault.expectLocked("screen locked", "a bus that answers late")
      }
    }

    @Test("the desktop is told that the folder locked, and why")
    func notices() throws {
      try DesktopSession.with(DesktopSession.usual + ["notifications"]) { desktop, vault in
        try vault.mountWatched()
        try desktop.tell("lock-session c2")
        try vault.expectLocked("screen locked", "lock-session")
        expectNotice(desktop, #""Photos of alice locked" "screen locked""#)
        try vault.mountWatched(["--idle", "1s"])
        try vault.expectEnd()
        expectNotice(desktop, #""Photos of alice locked" "not in use""#)
      }
    }

    @Test(
      "the desktop is told who keeps the folder open",
      arguments: [("body", "a&b.jpg"), ("body,body-markup", "a&amp;b.jpg")])
    func waitingNotice(capabilities: String, name: String) throws {
      try DesktopSession.with(DesktopSession.usual + ["notifications \(capabilities)"]) {
        desktop, vault in
        try vault.mountWatched(["--idle", "1s"])
        try vault.shell(
          """
          cp "$PHOTOS/photo.jpg" "$M/a&b.jpg"
          exec 3<"$M/a&b.jpg"
          exec -a holder sleep 4
          """)
        expectNotice(
          desktop, #""Photos of alice are not locked yet" "waiting for sleep (holds \#(name))""#)
        try vault.unmount()
      }
    }

    @Test("what could not be saved at a lock is said, and shows in the exit code")
    func unsavedNotice() throws {
      let disk = try Scratch.makeFolder()
      defer { Scratch.remove(disk) }
      try Command.shell("mount -t tmpfs -o size=4m,mode=0755 disk \(disk)")
      defer { _ = try? Command.run(["umount", "-l", disk]) }
      try DesktopSession.with(DesktopSession.usual + ["notifications"], backing: disk + "/vault") {
        desktop, vault in
        try vault.mountWatched()
        try vault.shell("head -c 1000000 /dev/urandom >\"$W/old\"; cp \"$W/old\" \"$M/photo\"")
        let editor = try Command.spawn(
          [
            "python3", "-c",
            """
            import os, sys, time
            file = os.open(sys.argv[1], os.O_RDWR)
            os.pwrite(file, b"changed", 500000)
            print("ready", flush=True)
            time.sleep(60)
            """, vault.mountPoint + "/photo",
          ], output: vault.work + "/out", errors: "/dev/null")
        defer {
          editor.signal(SIGKILL)
          _ = editor.wait()
        }
        #expect(Wait.until(seconds: 10) { Scratch.read(vault.work + "/out") == "ready\n" })
        try vault.shell("(! head -c 5000000 /dev/zero >\"$V/../filler\")")
        try desktop.tell("lock-session c2")
        try vault.expectEnd(status: 1)
        expectNotice(desktop, "the last changes to these could not be saved: photo")
        try vault.shell("rm \"$V/../filler\"")
        try vault.mount()
        try vault.shell("cmp \"$W/old\" \"$M/photo\"")
        try vault.unmount()
      }
    }

    private func expectNotice(_ desktop: DesktopSession, _ words: String) {
      func calls() -> String { desktop.calls("org.freedesktop.Notifications") }
      #expect(Wait.until(seconds: 5) { calls().contains(words) }, "\(calls())")
    }

    @Test("a service for notices that hangs does not keep the process")
    func frozenNotices() throws {
      try DesktopSession.with(DesktopSession.usual) { desktop, vault in
        try vault.mountWatched()
        try desktop.tell("freeze session")
        try desktop.tell("locked-hint c2 true")
        try vault.expectLocked("screen locked", "a session bus that hangs")
      }
    }
  }
}
