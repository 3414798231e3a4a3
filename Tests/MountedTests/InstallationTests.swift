import Testing

extension MountedTests {
  /// What scripts/install puts in place, and mount(8) with it.
  @Suite struct InstallationTests {
    @Test("mount -t fuse.photovault, an fstab line and umount work by the installed helper")
    func mountHelper() throws {
      try MountedVault.withUnmounted { vault in
        try install(in: vault)
        try inPrivateNamespace(
          vault,
          """
          cp -a /usr/sbin "$W/sbin"
          ln -s "$W/usr/bin/photovault" "$W/sbin/mount.fuse.photovault"
          mount --bind "$W/sbin" /usr/sbin
          options="idle=0,home=$W/../home,password-file=$W/../password"
          mount -t fuse.photovault -o "$options" alice "$M"
          grep -q " $M fuse.photovault " /proc/mounts
          cp "$PHOTOS/photo.jpg" "$M/"
          umount "$M"
          echo "alice $M fuse.photovault noauto,ro,$options 0 0" >"$W/fstab"
          settle
          mount --fstab "$W/fstab" "$M"
          cmp "$PHOTOS/photo.jpg" "$M/photo.jpg"
          (! touch "$M/new")
          umount "$M"
          settle
          """)
      }
    }

    @Test(
      "without a helper mount -t fuse.photovault works by fuse3's own")
    func mountThroughFuse3() throws {
      try MountedVault.withUnmounted { vault in
        try install(in: vault)
        try inPrivateNamespace(
          vault,
          """
          mount --bind "$W/usr/bin" /usr/local/bin
          options="idle=0,home=$W/../home,password-file=$W/../password"
          mount -t fuse.photovault -o "$options" alice "$M"
          cp "$PHOTOS/photo.jpg" "$M/"
          umount "$M"
          settle
          """)
      }
    }

    @Test("uninstall removes what install put there, and nothing else")
    func uninstall() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("mkdir -p \"$W/usr/bin\"; echo other >\"$W/usr/bin/other\"")
        try install(in: vault)
        try vault.shell(
          """
          cd "$W/usr"
          test "$(bin/photovault --version)" = "$("\(Checkout.program)" --version)"
          test "$(readlink sbin/mount.fuse.photovault)" = "$W/usr/bin/photovault"
          man --warnings --local-file share/man/man1/photovault.1 >"$W/manual"
          grep -q 'recovery key' "$W/manual"
          "\(Checkout.scripts)/install" --prefix "$W/usr" --uninstall
          test "$(find . -not -type d)" = ./bin/other
          """)
      }
    }

    @Test("the login unit and the menu entry are valid, and lead to what was installed")
    func desktopFiles() throws {
      try MountedVault.withUnmounted { vault in
        let place = vault.work + "/a place & more"
        try vault.shell(
          """
          "\(Checkout.scripts)/install" --binary "\(Checkout.program)" --prefix "\(place)"
          cd "\(place)"
          (! grep -r @PREFIX@ share libexec)
          desktop-file-validate share/applications/photovault.desktop
          grep -qxF "Exec=\\"$PWD/libexec/photovault-desktop\\" mount" share/applications/*.desktop
          test -x libexec/photovault-desktop
          cp share/systemd/user/photovault@.service "$W/photovault@alice.service"
          systemd-analyze --user --man=no verify "$W/photovault@alice.service" 2>"$W/complaints"
          (! grep photovault "$W/complaints")
          """)
      }
    }

    @Test("the menu entry's program asks in a window, again after a wrong password, and locks")
    func window() throws {
      try MountedVault.withUnmounted { vault in
        try install(in: vault)
        try Scratch.write(
          """
          set -euxo pipefail
          export PHOTOVAULT_HOME="$W/../home"
          answer() {
            local window
            window=$(timeout 30 xdotool search --sync --onlyvisible --name "$1" | head -n 1)
            sleep 0.5
            xdotool windowfocus --sync "$window"
            [ -z "$2" ] || xdotool type "$2"
            xdotool key "$3"
            while [ "$(xdotool getwindowname "$window")" = "$1" ]; do sleep 0.1; done
          }
          "$W/usr/libexec/photovault-desktop" mount & desktop=$!
          answer 'Photos of alice' 'wrong' Return
          answer 'photovault' '' Return
          answer 'Photos of alice' '\(MountedVault.password)' Return
          wait $desktop
          grep -q " $HOME/Pictures/alice fuse.photovault " /proc/mounts
          "$W/usr/libexec/photovault-desktop" lock
          (! grep " $HOME/Pictures/alice " /proc/mounts)
          "$W/usr/libexec/photovault-desktop" mount & desktop=$!
          answer 'Photos of alice' '' Escape
          (! wait $desktop)
          """, to: vault.work + "/script")
        try vault.shell("timeout 90 xvfb-run -a bash \"$W/script\"", limit: 120)
      }
    }

    @Test("the completions name every command of the help")
    func completions() throws {
      let help = try Command.run([Checkout.program, "--help"], expecting: 0).output
      try Command.shell(
        """
        . "$SCRIPTS/share/photovault.bash"
        COMP_WORDS=(photovault ''); COMP_CWORD=1; COMPREPLY=()
        _photovault
        offered=" ${COMPREPLY[*]} "
        for word in $(grep -oE '^  [a-z][a-z-]+' <<<"$HELP"); do
          [[ $offered == *" $word "* ]]
          grep -q -- "$word" "$SCRIPTS/share/_photovault"
          grep -q -- "$word" "$SCRIPTS/share/photovault.fish"
          grep -q -- "$(sed 's/-/\\\\\\\\-/g' <<<"$word")" "$SCRIPTS/share/photovault.1"
        done
        """, environment: ["SCRIPTS": Checkout.scripts, "HELP": help])
    }

    private func install(in vault: MountedVault) throws {
      try vault.shell(
        """
        "\(Checkout.scripts)/install" --binary "\(Checkout.program)" --prefix "$W/usr"
        """)
    }

    /// Runs a script whose mounts nobody else sees; `settle` waits until the daemon is gone. Other tests'
    /// mounts are not kept alive in there.
    private func inPrivateNamespace(_ vault: MountedVault, _ script: String) throws {
      try Scratch.write(
        """
        set -euxo pipefail
        settle() {
          for try in $(seq 100); do pgrep -f "$M" >&2 || return 0; sleep 0.1; done
          false
        }
        awk '$3 == "fuse.photovault" { print $2 }' /proc/mounts |
          while read -r other; do umount -l "$other"; done

        """ + script, to: vault.work + "/script")
      try vault.shell("unshare --mount bash \"$W/script\"", limit: 120)
    }
  }
}
