import Glibc
import Testing

extension MountedTests {
  /// `doctor` on this machine, and on ones that lack something: in namespaces of their own.
  @Suite struct DoctorTests {
    @Test("where mounts work it says so, in both forms, and changes nothing")
    func healthy() throws {
      try MountedVault.withUnmounted { vault in
        let said = try doctor(vault, "")
        #expect(said.contains("ok       fuse-device: /dev/fuse can be opened\n"))
        #expect(said.contains("ok       vault: the vault of 'alice' is in \(vault.backing)"))
        #expect(said.contains("ok       accounts: "))
        #expect(!said.contains("\nproblem"))
        try vault.shell(
          """
          find "$HOME" -printf '%p %C@\\n' | grep -v /work | sort >"$W/before"
          "\(Checkout.program)" doctor --json --home "$W/../home" >"$W/report.json"
          find "$HOME" -printf '%p %C@\\n' | grep -v /work | sort | diff "$W/before" -
          python3 - "$W/report.json" <<'END'
          import json, sys
          report = json.load(open(sys.argv[1]))
          assert report['canMount'] is True
          checks = {check['check']: check for check in report['checks']}
          for name in ('fuse-device fusermount3 allow-other memory-lock swap core-dumps libsystemd '
                       'system-bus session-bus secret-service clock accounts vault space '
                       'thumbnails').split():
              check = checks.pop(name)
              assert check['status'] in ('ok', 'warning'), check
              assert ('advice' in check) == (check['status'] != 'ok'), check
          assert not checks, checks
          END
          """)
      }
    }

    @Test("a problem is one that keeps mounts from working: exit code 1, and mount fails")
    func noDevice() throws {
      try MountedVault.withUnmounted { vault in
        for (hide, message) in [
          ("mount -t tmpfs none /dev", "/dev/fuse can't be opened: No such file or directory"),
          ("mount --bind \"$W/file\" /dev/fuse", "/dev/fuse is not a device"),
        ] {
          let said = try doctor(vault, ": >\"$W/file\"\n\(hide)", code: 1, mountFails: true)
          #expect(said.contains("problem  fuse-device: \(message)\n         what to do: "))
        }
      }
    }

    @Test("another user needs the device, fusermount3 with its bit, and to be allowed to use it")
    func ordinaryUser() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("chown -R 65534:65534 \"$W/..\"")
        let user = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        let device =
          "mount -t tmpfs none /dev; mknod -m 666 /dev/fuse c 10 229; mknod -m 666 /dev/null c 1 3"
        let helper = "cp /usr/bin/fusermount3 \"$W/fusermount3\""
        let over = "mount --bind \"$W/fusermount3\" /usr/bin/fusermount3"
        for (setUp, prefix, message) in [
          (device, user, "ok       fusermount3: /usr/bin/fusermount3 can mount for this user"),
          (
            "\(device); chmod 600 /dev/fuse", user,
            "problem  fuse-device: /dev/fuse can't be opened: Permission denied"
          ),
          (
            "\(device); \(helper); chmod 755 \"$W/fusermount3\"; \(over)", user,
            "problem  fusermount3: /usr/bin/fusermount3 does not run as root"
          ),
          (
            "\(device); mount --bind /usr /usr; mount -o remount,bind,nosuid /usr", user,
            "problem  fusermount3: /usr/bin/fusermount3 is on a disk mounted with nosuid"
          ),
          (
            "\(device); ulimit -l 64", user,
            "warning  memory-lock: only 64 KiB of memory can be kept out of swap"
          ),
          (
            device, user + " --no-new-privs",
            "problem  fusermount3: this process may not gain privileges"
          ),
        ] {
          let fails = message.hasPrefix("problem")
          let said = try doctor(vault, setUp, code: fails ? 1 : 0, prefix: prefix)
          #expect(said.contains(message))
        }
      }
    }

    @Test("what weakens a promise is a warning, with what to do")
    func warnings() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("chmod 755 \"$V\"; mkdir -p \"$W/run\"")
        let table = "Filename Type Size Used Priority\\n"
        let said = try doctor(
          vault,
          """
          chmod 755 "$W/../home/accounts"
          printf '\(table)/dev/null partition 1 0 -2\\n' >"$W/swaps"; mount --bind "$W/swaps" /proc/swaps
          export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$W/none DBUS_SESSION_BUS_ADDRESS=unix:abstract=none
          ulimit -c unlimited
          """)
        for message in [
          "swap: swap space is not encrypted: /dev/null", "core-dumps: a program that crashes",
          "system-bus: the system bus does not answer", "session-bus: no session bus answers",
          "accounts: others may look into", "vault: others may look into the vault of 'alice'",
        ] { #expect(said.contains("warning  \(message)"), "\(message)") }
        #expect(
          said.split(separator: "\n").filter { $0.hasPrefix("         what to do: ") }.count >= 6)
        let quiet = try doctor(
          vault,
          """
          printf '\(table)' >"$W/swaps"; mount --bind "$W/swaps" /proc/swaps
          ulimit -c 0
          """)
        #expect(quiet.contains("ok       swap: no swap space is in use"))
        #expect(quiet.contains("ok       core-dumps: "))
      }
    }

    @Test("doctor says what on the buses can tell of a locked screen")
    func buses() throws {
      try MountedVault.withUnmounted { vault in
        let buses = """
          daemon() { dbus-daemon --session --fork --print-pid --address="$1" >>"$W/pids"; }
          daemon "unix:path=$W/a%20bus"; daemon "unix:abstract=$W/b"
          trap 'kill $(cat "$W/pids"); rm "$W/pids"' EXIT
          export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$W/a%20bus"
          export DBUS_SESSION_BUS_ADDRESS="unix:abstract=$W/b"

          """
        let empty = try doctor(vault, buses)
        #expect(empty.contains("warning  system-bus: logind is not on the system bus"))
        #expect(empty.contains("warning  session-bus: no screen saver is on the session bus"))
        let full = try doctor(
          vault,
          buses + """
            own() { DBUS_SESSION_BUS_ADDRESS=$1 /usr/bin/python3 "$T/own_names.py" "${@:2}" >"$W/ready.$#" & echo $! >>"$W/pids"
              until [ -s "$W/ready.$#" ]; do sleep 0.05; done; }
            own "$DBUS_SYSTEM_BUS_ADDRESS" org.freedesktop.login1
            own "$DBUS_SESSION_BUS_ADDRESS" org.gnome.ScreenSaver org.freedesktop.secrets
            """)
        #expect(full.contains("ok       system-bus: logind tells"))
        #expect(
          full.contains("ok       session-bus: tells of a locked screen: org.gnome.ScreenSaver"))
        #expect(full.contains("ok       secret-service: the desktop's keyring is there"))
      }
    }

    @Test("vaults: missing, full, read-only, on a disk without extended attributes")
    func disks() throws {
      try MountedVault.withUnmounted { vault in
        for (setUp, message) in [
          (
            "mv \"$V\" \"$V.away\"; trap 'mv \"$V.away\" \"$V\"' EXIT",
            "warning  vault: the vault of 'alice' can't be opened: \(vault.backing): No such file or directory"
          ),
          (
            "mount -t ramfs none \"$V\"; chmod 700 \"$V\"",
            "warning  vault: the vault of 'alice' is on a disk (ramfs) without extended attributes"
          ),
          (
            "mount -t tmpfs -o size=2m,mode=700 none \"$V\"",
            "warning  space: only 2 MiB are free on the disk of \(vault.backing)"
          ),
          (
            "mount -t tmpfs -o ro,mode=700 none \"$V\"",
            "warning  space: the disk of \(vault.backing) is read-only"
          ),
        ] {
          let said = try doctor(vault, setUp)
          #expect(said.contains(message), "\(said)")
        }
        let none = try doctor(
          vault, "chmod 500 \"$W\"", code: 1,
          prefix: "setpriv --reuid=65534 --regid=65534 --clear-groups", home: "$W/home")
        #expect(none.contains("problem  accounts: \(vault.work)/home/accounts can't be made"))
      }
    }

    // MARK: -

    /// What it prints after `setUp`, in a mount namespace of its own. `mountFails`: so does `mount` then.
    private func doctor(
      _ vault: MountedVault, _ setUp: String, code: Int = 0, prefix: String = "",
      mountFails: Bool = false, home: String = "$W/../home"
    ) throws -> String {
      try Scratch.write(
        """
        set -euxo pipefail
        \(setUp)
        code=0; \(prefix) "\(Checkout.program)" doctor --home "\(home)" || code=$?
        test $code = \(code)
        """
          + (mountFails
            ? """

            (! \(prefix) "\(Checkout.program)" mount alice "$M" --home "\(home)" --password-file "$W/../password")
            """ : ""),
        to: vault.folder + "/script")
      return try vault.shell("unshare --mount bash \"$W/../script\"", limit: 60)
    }
  }
}
