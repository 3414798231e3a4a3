import Testing

extension MountedTests {
  /// What modes allow and forbid an ordinary user. A plain directory says what is right.
  @Suite struct PermissionTests {
    private let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"

    @Test("modes allow and forbid their owner what they do on a plain directory")
    func modesOfOwnFiles() throws {
      try asNobody { vault in
        try vault.shell("grep \"$M \" /proc/mounts | grep -v default_permissions")
        try compareModes(vault)
      }
    }

    @Test("the same where others get in: the kernel checks them")
    func modesInASharedMount() throws {
      try MountedVault.withUnmounted { vault in
        try vault.mount(options: ["-o", "allow_other"])
        try vault.shell("chmod 0755 \"$W/..\"; chmod 0777 \"$M\" \"$W\"")
        try vault.shell("grep \"$M .*default_permissions\" /proc/mounts")
        try compareModes(vault)
        try vault.unmount()
      }
    }

    private func compareModes(_ vault: MountedVault) throws {
      let lines = try vault.shell(
        """
        for place in "$W" "$M"; do
          \(nobody) /usr/bin/python3 - "$place" <"$T/permissions.py" >"$W.$(basename "$place")" 2>&1
        done
        diff "$W.work" "$W.mnt" >&2; grep -c . "$W.work"
        """)
      #expect(lines == "464\n")
    }

    @Test("photos that not even their owner may read are kept whole, and where they belong")
    func unreadablePhotos() throws {
      try asNobody { vault in
        try vault.shell("\(nobody) /usr/bin/python3 - \"$M\" <\"$T/unreadable.py\"")
        try vault.shell(
          """
          \(nobody) "\(Checkout.program)" unmount "$M" --home "$W/../home"
          \(nobody) "\(Checkout.program)" check alice --home "$W/../home" \
            --password-file "$W/../password"
          """)
      }
    }

    @Test("root is limited by nothing but that nobody may run a file")
    func root() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          cd "$M"; printf '#!/bin/sh\\n' >script; chmod 000 script; mkdir closed; chmod 000 closed
          test -r script && test -w script && test ! -x script && ! ./script
          echo >>script; echo photo >closed/photo; chmod 001 script; test -x script
          """)
      }
    }

    private func asNobody(
      _ body: (MountedVault) throws -> Void
    ) throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          chmod 0666 /dev/fuse; chown -R 65534:65534 "$W/.."
          \(nobody) "\(Checkout.program)" mount alice "$M" --idle 0 --home "$W/../home" \
            --password-file "$W/../password"
          """)
        try body(vault)
        try vault.shell(
          """
          ! mountpoint -q "$M" || \(nobody) "\(Checkout.program)" unmount "$M" --home "$W/../home"
          """)
      }
    }
  }
}
