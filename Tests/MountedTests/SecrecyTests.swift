import Testing

extension MountedTests {
  /// What others can find while the folder is mounted and after.
  @Suite struct SecrecyTests {
    @Test(
      "no byte of a photo, and with encrypted names no name, is in the vault's directory",
      arguments: Names.allCases)
    func noPlaintext(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(
          """
          yes MARKER-CONTENT | head -c 3000000 >"$M/MARKER-NAME.jpg" || true
          mkdir "$M/MARKER-FOLDER"; ln -s MARKER-TARGET "$M/MARKER-LINK"
          printf 'MARKER-CONTENT in a long name' >"$M/MARKER-$(printf 'x%.0s' $(seq 240))"
          setfattr -n user.MARKER-XATTR -v MARKER-VALUE "$M/MARKER-NAME.jpg" "$M/MARKER-FOLDER"
          # Open and changed in the middle: the scratch copy of an edit.
          exec 3<>"$M/MARKER-NAME.jpg"; printf MARKER-CONTENT >&3
          look() {
            (! grep -raE "$1" "$V" "$W/../home")
            (! find "$V" | grep -E "$1")
            (! getfattr -R -P -h -d -m - "$V" 2>/dev/null | grep -E "$1")
            (! getfattr -R -P -h -d -m - -e text "$V" 2>/dev/null | grep -E "$1")
          }
          look 'MARKER-(CONTENT|XATTR|VALUE)'
          \(names == .encrypted ? "look MARKER" : "find \"$V\" | grep -q MARKER-NAME.jpg.securedData")
          exec 3>&-
          look 'MARKER-(CONTENT|XATTR|VALUE)'
          """)
        try vault.shell("rm -r \"$M/\"*; sync; (! grep -ra MARKER-CONTENT \"$V\")")
      }
    }

    @Test(
      "neither the password nor the recovery key is in the daemon's arguments, environment or log, or on the disk"
    )
    func noSecretInSight() throws {
      try MountedVault.withUnmounted { vault in
        let key = try vault.recoveryKey()
        #expect(key.count == 64)
        try Scratch.write("\(MountedVault.password)\n\(key)\n", to: vault.work + "/secrets")
        try vault.mount()
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        for process in MountTable.daemons(of: vault.folder) {
          try vault.shell(
            """
            for file in cmdline environ; do (! grep -aF -f "$W/secrets" /proc/\(process)/$file); done
            """)
        }
        try vault.unmount()
        try vault.shell(
          """
          (! grep -raF -f "$W/secrets" "$V" "$W/../home")
          (! grep -aF -f "$W/secrets" "$W/../daemon.err" "$W/../daemon.out")
          """)
      }
    }

    @Test("the daemon leaves no core dump, and its memory is closed to other programs of its user")
    func hardenedDaemon() throws {
      try MountedVault.withUnmounted { vault in
        try withOtherUser(vault) { definitions in
          try vault.shell(definitions + "\nphotovault mount alice \"$W/../mnt\" --idle 0")
          let daemons = MountTable.daemons(of: vault.folder)
          #expect(!daemons.isEmpty)
          for process in daemons {
            try vault.shell(
              definitions + """

                cd /proc/\(process)
                grep -qE 'Max core file size +0 +0 ' limits
                test "$(awk '/^Uid/ { print $2 }' status)" = 65534
                # The kernel gives /proc/PID of a process that can't be dumped to root.
                test "$(stat -c %u environ)" = 0
                for intruder in "$user" "setpriv --reuid=65533 --regid=65533 --clear-groups"; do
                  test -z "$($intruder /usr/bin/python3 "$T/intruder.py" \(process))"
                done
                """)
          }
          // The intruder is a capable one.
          try vault.shell(
            definitions + """

              $user sleep 60 & asleep=$!
              trap 'kill $asleep' EXIT
              while [ "$(readlink /proc/$asleep/exe)" != "$(realpath "$(command -v sleep)")" ]; do sleep 0.01; done
              $user /usr/bin/python3 "$T/intruder.py" $asleep >"$W/found"
              for way in environ maps fd; do grep -qx $way "$W/found"; done
              # Where Yama is, only a parent may.
              if [ "$(cat /proc/sys/kernel/yama/ptrace_scope 2>/dev/null || echo 0)" = 0 ]; then
                for way in mem process_vm_readv pidfd_getfd ptrace-seize; do grep -qx $way "$W/found"; done
              fi
              photovault unmount alice
              """)
        }
      }
    }

    @Test("an ordinary user mounts with fusermount3, and root doesn't see the photos")
    func ordinaryUser() throws {
      try MountedVault.withUnmounted { vault in
        try withOtherUser(vault) { definitions in
          try vault.shell(
            definitions + """

              photovault mount alice "$W/../mnt" --idle 0
              $user cp "$PHOTOS/photo.jpg" "$W/../mnt/"
              (! ls "$W/../mnt")
              test "$($user stat -c %u:%g "$W/../mnt/photo.jpg")" = 65534:65534
              photovault unmount alice
              photovault mount alice "$W/../mnt" --idle 0
              $user cmp "$PHOTOS/photo.jpg" "$W/../mnt/photo.jpg"
              photovault unmount alice
              """)
        }
      }
    }

    @Test("accounts and vaults are nobody else's to read")
    func modes() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          umask 000
          "\(Checkout.program)" create bob --home "$W/home" --password-file "$W/../password"
          test "$(find "$W/home" -type d -printf '%m\\n' | sort -u)" = 700
          test "$(find "$W/home" -type f -printf '%m\\n' | sort -u)" = 600
          """)
      }
    }

    @Test("a photo keeps the mode its user gave it")
    func photoModes() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          umask 022; : >a; mkdir b; umask 077; : >c; mkdir d; umask 000; : >e; mkfifo f
          chmod 0640 a; chmod 1777 b; install -m 4755 /dev/null g
          """)
      }
    }

    /// Gives everything to another user than root; in `definitions`, `$user` runs a program as that user, and
    /// `photovault` the program with the vault's home and password.
    private func withOtherUser(
      _ vault: MountedVault, _ body: (_ definitions: String) throws -> Void
    ) throws {
      // Debian lets every user open /dev/fuse; a container may not.
      try vault.shell("chmod 0666 /dev/fuse; chown -R 65534:65534 \"$W/..\"")
      try body(
        """
        export HOME="$W"
        user="setpriv --reuid=65534 --regid=65534 --clear-groups"
        photovault() { (
          cd "$W"
          local password=(--password-file "$W/../password")
          [ $1 = mount ] || password=()
          $user "\(Checkout.program)" "$@" --home "$W/../home" "${password[@]}"
        ); }
        """)
    }
  }
}
