import Glibc
import Testing

extension MountedTests {
  /// Thumbnails and the list of recent files, after every end of a mount.
  @Suite struct DesktopTraceTests {
    @Test("tumbler's thumbnails of the photos are gone after the unmount, those of others are not")
    func realThumbnailer() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          mkdir "$M/a folder"
          cp "$PHOTOS/photo.jpg" "$M/a folder/photo (1) ü.jpg"; cp "$PHOTOS/photo.jpg" "$M/gone.jpg"
          cp "$PHOTOS/photo.jpg" "$W/other.jpg"
          timeout 50 dbus-run-session -- bash -euxo pipefail -c '
            call() { gdbus call --session --dest org.freedesktop.thumbnails.Thumbnailer1 \
              --object-path /org/freedesktop/thumbnails/Thumbnailer1 \
              --method org.freedesktop.thumbnails.Thumbnailer1.Queue "$@" default 0; }
            for flavor in normal large; do
              call "[\\"file://$M/a%20folder/photo%20(1)%20%C3%BC.jpg\\", \\"file://$M/gone.jpg\\",
                \\"file://$W/other.jpg\\"]" \
                "[\\"image/jpeg\\", \\"image/jpeg\\", \\"image/jpeg\\"]" $flavor
            done
            for try in $(seq 200); do
              [ "$(find "$HOME/.cache/thumbnails" -name "*.png" | wc -l)" -lt 6 ] || exit 0
              sleep 0.2
            done
            exit 1' 2>"$W/bus"
          rm "$M/gone.jpg"
          """)
        try vault.unmount()
        try vault.shell(
          """
          test "$(find "$HOME/.cache/thumbnails" -name '*.png' | wc -l)" = 2
          grep -aL "file://$W/other.jpg" "$HOME"/.cache/thumbnails/*/*.png | (! grep .)
          """)
      }
    }

    @Test(
      "each end of a mount removes its traces",
      arguments: [
        "\"$PV\" lock", "\"$PV\" unmount alice", "umount \"$M\"", "kill -TERM $DAEMON",
        "kill -KILL $DAEMON",
      ])
    func everyEnd(how: String) throws {
      try MountedVault.withMounted { vault in
        let daemon = try #require(vault.daemon).id
        try leaveTraces(vault)
        try vault.shell(
          """
          PV="\(Checkout.program)" DAEMON=\(daemon); export PHOTOVAULT_HOME="$W/../home"
          for try in 1 2 3 4 5; do { \(how); } && exit; sleep 0.2; done; false
          """)
        if how.hasPrefix("kill -KILL") {
          #expect(try #require(vault.daemon).wait() == 128 + SIGKILL)
        } else {
          #expect(try #require(vault.daemon).wait(seconds: 20) == 0)
        }
        #expect(try Wait.until(seconds: 10) { try !hasTraces(vault) })
        try expectOthersStay(vault)
        try vault.mount()
      }
    }

    @Test("what nobody was left to remove goes with the next mount of any vault, or with lock")
    func remains() throws {
      for next in ["lock", "mount alice \"$W/other place\" --password-file \"$W/../password\""] {
        try MountedVault.withUnmounted { vault in
          try vault.mount()
          try leaveTraces(vault)
          // As a power cut: the mount's process and its watcher are gone at once, and the runtime directory.
          try vault.shell(
            """
            all=$(pgrep -f "$M" | grep -vx -e $$ -e $PPID)
            kill -STOP $all
            kill -KILL $all
            for try in $(seq 50); do umount "$M" && break; sleep 0.1; done
            rm -r "$XDG_RUNTIME_DIR/photovault"
            """)
          _ = vault.daemon?.wait()
          #expect(try hasTraces(vault))
          try vault.shell(
            """
            "\(Checkout.program)" doctor | grep -q 'thumbnails of photos of 1 ended mount'
            "\(Checkout.program)" \(next) --home "$W/../home"
            "\(Checkout.program)" unmount --all
            """)
          #expect(try !hasTraces(vault))
          try expectOthersStay(vault)
        }
      }
    }

    @Test("lock says in its exit code what it could not remove, and tries again")
    func leftovers() throws {
      try MountedVault.withMounted { vault in
        try leaveTraces(vault)
        try vault.shell(
          "sed -i '$d' \"$XDG_DATA_HOME/recently-used.xbel\"; echo '<bookmark' >>\"$XDG_DATA_HOME/recently-used.xbel\""
        )
        let locked = try vault.photovault(["lock"], password: false, expecting: 1)
        #expect(locked.errors.contains("error: locked, but traces of the photos are left: "))
        #expect(locked.errors.contains("recently-used.xbel: it is damaged"))
        #expect(!locked.errors.contains("photo.jpg"))
        #expect(!vault.isMounted)
        try vault.expectEnd()
        try vault.shell("(! find \"$HOME/.cache\" -name ours.png | grep .)")
        try vault.photovault(["lock"], password: false, expecting: 1)
        try vault.shell("rm \"$XDG_DATA_HOME/recently-used.xbel\"")
        try vault.photovault(["lock"], password: false, expecting: 0)
        try vault.shell("(! find \"$HOME/.local/state/photovault/traces\" -type f | grep .)")
      }
    }

    @Test("--keep-thumbnails keeps all of it")
    func kept() throws {
      try MountedVault.withUnmounted { vault in
        try vault.mount(options: ["--keep-thumbnails"])
        try leaveTraces(vault)
        try vault.unmount()
        #expect(try hasTraces(vault))
        try vault.photovault(["lock"], password: false, expecting: 0)
        #expect(try hasTraces(vault))
      }
    }

    @Test("photos that a link in place of the home directory leads to are found, too")
    func linkedHome() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          mkdir -p "$W/real/cache" "$W/real/.cache"; ln -s real "$W/home"
          export HOME="$W/home"
          run() { "\(Checkout.program)" "$@" --home "$W/../home"; }
          run mount alice "$HOME/Private" --password-file "$W/../password"
          python3 "$T/thumbnail.py" "file://$HOME/Private/a.jpg" "$HOME/.cache/thumbnails/normal/a.png"
          python3 "$T/thumbnail.py" "file://$W/real/Private/a.jpg" "$HOME/.cache/thumbnails/normal/b.png"
          run unmount alice
          (! find "$W/real/.cache" -name '*.png' | grep .)
          """)
      }
    }

    @Test("--exclude-from-backup: tar and restic leave the folder out, indexers are told")
    func excludedFromBackup() throws {
      try MountedVault.withUnmounted { vault in
        try vault.mount(options: ["--exclude-from-backup"])
        try vault.shell(
          """
          cp "$PHOTOS/photo.jpg" "$M/"; mkdir "$M/folder"; cp "$PHOTOS/photo.png" "$M/folder/"
          test -e "$M/.nomedia" && test -e "$M/.trackerignore"
          tar -C "$M/.." --exclude-caches -cf "$W/backup.tar" mnt
          tar -tf "$W/backup.tar" | grep -q CACHEDIR.TAG
          (! tar -tf "$W/backup.tar" | grep 'photo\\.')
          export RESTIC_PASSWORD=x RESTIC_CACHE_DIR="$W/cache"
          restic -q -r "$W/restic" init
          restic -q -r "$W/restic" backup --exclude-caches "$M"
          restic -q -r "$W/restic" ls latest | grep -q CACHEDIR.TAG
          (! restic -q -r "$W/restic" ls latest | grep 'photo\\.')
          """)
        try vault.unmount()
        // They are in the vault now; a file of that name that is something else is not touched.
        try vault.mount()
        try vault.shell("rm \"$M/.nomedia\"; echo mine >\"$M/CACHEDIR.TAG\"")
        try vault.unmount()
        try vault.mount(options: ["--exclude-from-backup"])
        try vault.shell("test -e \"$M/.nomedia\"; test \"$(cat \"$M/CACHEDIR.TAG\")\" = mine")
        #expect(vault.log.contains("CACHEDIR.TAG is not what backup programs look for"))
        try vault.unmount()
        try vault.shell("rm -r \"$W/cache\"")
      }
    }

    // MARK: -

    /// A thumbnail and an entry of a photo of the mount, and of one elsewhere.
    private func leaveTraces(_ vault: MountedVault) throws {
      try vault.shell(
        """
        cp "$PHOTOS/photo.jpg" "$M/"
        cache=$HOME/.cache/thumbnails
        python3 "$T/thumbnail.py" "file://$M/photo.jpg" "$cache/large/ours.png"
        python3 "$T/thumbnail.py" "file://$W/photo.jpg" "$cache/large/other.png"
        mkdir -p "$XDG_DATA_HOME"
        cat >"$XDG_DATA_HOME/recently-used.xbel" <<END
        <?xml version="1.0" encoding="UTF-8"?>
        <xbel version="1.0">
          <bookmark href="file://$M/photo.jpg" added="2026-01-01T00:00:00Z">
            <title>x</title>
          </bookmark>
          <bookmark href="file://$W/photo.jpg" added="2026-01-01T00:00:00Z">
          </bookmark>
        </xbel>
        END
        """)
      #expect(try hasTraces(vault))
    }

    private func hasTraces(_ vault: MountedVault) throws -> Bool {
      try vault.shell(
        """
        find "$HOME/.cache/thumbnails" -name ours.png
        grep "file://$M/photo.jpg" "$XDG_DATA_HOME/recently-used.xbel" || true
        """) != ""
    }

    private func expectOthersStay(_ vault: MountedVault) throws {
      try vault.shell(
        """
        test -e "$HOME/.cache/thumbnails/large/other.png"
        test "$(cat "$XDG_DATA_HOME/recently-used.xbel")" = "$(cat <<END
        <?xml version="1.0" encoding="UTF-8"?>
        <xbel version="1.0">
          <bookmark href="file://$W/photo.jpg" added="2026-01-01T00:00:00Z">
          </bookmark>
        </xbel>
        END
        )"
        """)
    }
  }
}
