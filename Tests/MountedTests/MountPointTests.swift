import Glibc
import Testing

extension MountedTests {
  /// Somebody else can write to a directory above the mount point.
  @Suite struct MountPointTests {
    @Test(
      "what is put in the mount point's place while root mounts is not mounted on",
      arguments: ["link", "directory", "parent"])
    func replacedUnderRoot(way: String) throws {
      try MountedVault.withUnmounted { vault in
        try expectRefusal(vault, way, delaying: "mount", as: "")
      }
    }

    @Test(
      "nor while fusermount3 mounts for an ordinary user, whenever it happens",
      arguments: ["link", "directory", "parent"], ["execve", "chdir"])
    func replacedUnderAUser(way: String, call: String) throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("chmod 0666 /dev/fuse; chown -R 65534:65534 \"$W/..\"")
        try expectRefusal(vault, way, delaying: call, as: nobody)
      }
    }

    @Test("another mount of the same user and name that is made meanwhile stays")
    func mountedMeanwhile() throws {
      try MountedVault.withUnmounted { vault in
        try MountedVault.withUnmounted { other in
          for folder in [vault.folder, other.folder] {
            try vault.shell("chmod 0666 /dev/fuse; chown -R 65534:65534 \(folder)")
          }
          try expectRefusal(
            vault, "link", delaying: "chdir", as: nobody,
            meanwhile: """
              \(nobody) \(Checkout.program) mount alice \(other.mountPoint) --idle 0 \
                --home \(other.home) --password-file \(other.passwordFile)
              """)
          try vault.shell(
            """
            \(nobody) mountpoint \(other.mountPoint)
            \(nobody) "\(Checkout.program)" unmount \(other.mountPoint) --home \(other.home)
            """)
        }
      }
    }

    private let nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups"

    private func expectRefusal(
      _ vault: MountedVault, _ way: String, delaying call: String, as user: String,
      meanwhile: String = ""
    ) throws {
      let said = try vault.shell(
        """
        mkdir -p "$W/shared" "$W/other/mnt" "$W/shared/mnt"; chmod 0777 "$W" "$W"/*
        [ -z "\(user)" ] || chown -R 65534:65534 "$W"
        python3 "$T/replaced_mount_point.py" \(way) \(call) "$W/shared/mnt" '\(meanwhile)' \
          \(user) "\(Checkout.program)" mount alice "$W/shared/mnt" --idle 0 --home "$W/../home" \
          --password-file "$W/../password"
        """, limit: 100)
      #expect(said.contains("replaced\n"), "\(said)")
      #expect(said.contains("exit 13\n"), "\(said)")
      #expect(said.contains("cannot mount at "), "\(said)")
      #expect(!said.contains("mounted "), "\(said)")
      #expect(MountTable.daemons(of: vault.folder).isEmpty)
      // What it was led to is as it was.
      try vault.shell("test \"$(stat -c %a \"$W/other/mnt\")\" = 755 && rmdir \"$W/other/mnt\"")
    }

    @Test("a directory of another user is no mount point for an ordinary user")
    func anotherUsers() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          chmod 0666 /dev/fuse; chown -R 65534:65534 "$W/.."
          mkdir "$W/theirs" "$W/sticky"; chown 65533:65533 "$W/theirs"; chmod 0777 "$W/theirs"
          chown 0:0 "$W/sticky"; chmod 1777 "$W/sticky"
          mkdir "$W/sticky/theirs"; chown 65533:65533 "$W/sticky/theirs"
          chmod 0777 "$W/sticky/theirs"
          for place in "$W/theirs" "$W/sticky/theirs"; do
            code=0
            setpriv --reuid=65534 --regid=65534 --clear-groups "\(Checkout.program)" mount alice \
              "$place" --idle 0 --home "$W/../home" --password-file "$W/../password" \
              2>"$W/../said" || code=$?
            test $code = 13
            grep 'it belongs to another user' "$W/../said"
            test "$(stat -c %a "$place")" = 777
          done
          # One's own in a directory for everybody is fine.
          setpriv --reuid=65534 --regid=65534 --clear-groups bash -ec '
            "\(Checkout.program)" mount alice "$W/sticky/mine" --idle 0 --home "$W/../home" \
              --password-file "$W/../password"
            mountpoint "$W/sticky/mine"
            "\(Checkout.program)" unmount alice --home "$W/../home"'
          test ! -e "$W/sticky/mine"
          """)
      }
    }
  }
}
