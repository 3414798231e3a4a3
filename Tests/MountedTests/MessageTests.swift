import Testing

extension MountedTests {
  /// What the program says when something is in the way, word for word: what happened, and what to do. FOLDER
  /// stands for the test's own.
  @Suite struct MessageTests {
    struct Case: Sendable, CustomTestStringConvertible {
      let testDescription: String
      /// In a mount namespace of its own, before `command`.
      var setUp = ""
      var command = "\"$PV\" mount alice \"$M\" --password-file \"$F/password\""
      let code: Int32
      let says: String

      init(
        _ description: String, _ setUp: String, _ command: String? = nil, _ code: Int32,
        _ says: String
      ) {
        testDescription = description
        self.setUp = setUp
        if let command { self.command = command }
        self.code = code
        self.says = says
      }
    }

    static let cases: [Case] = [
      Case(
        "wrong password", "", "\"$PV\" mount alice \"$M\" <<<wrong", 12,
        """
        photovault: error: invalid username/password combination
        photovault: hint: try again; with the recovery key, 'photovault recover alice --vault FOLDER/vault' sets a new password

        """),
      Case(
        "empty line on standard input", "", "\"$PV\" mount alice \"$M\" <<<''", 64,
        """
        photovault: error: the password is empty
        photovault: hint: the first line of standard input is; to use a password that the keyring remembers, add '</dev/null'

        """),
      Case(
        "empty password file", ": >\"$W/empty\"",
        "\"$PV\" mount alice \"$M\" --password-file \"$W/empty\"", 64,
        """
        photovault: error: the password is empty
        photovault: hint: an empty one protects nothing

        """),
      Case(
        "password file of another user",
        "chown -R 65534:65534 \"$F\"; chown 0 \"$F/password\"",
        "setpriv --reuid=65534 --regid=65534 --clear-groups \"$PV\" mount alice \"$M\" "
          + "--password-file \"$F/password\"", 1,
        """
        photovault: error: cannot read the password from FOLDER/password: permission denied
        photovault: hint: check the owner and the mode

        """),
      Case(
        "no account", "", "\"$PV\" mount bob \"$M\" </dev/null", 11,
        """
        photovault: error: no account 'bob'
        photovault: hint: 'photovault accounts' lists them, 'photovault create bob' makes one

        """),
      Case(
        "lost account item",
        "\"$PV\" create bob </dev/stdin <<<x; rm \"$F/home/accounts/bob.json\"",
        "\"$PV\" mount bob \"$M\" </dev/null", 11,
        """
        photovault: error: no account 'bob', though its photos are there: FOLDER/home/photos/bob
        photovault: hint: put back a backup of FOLDER/home/accounts/bob.json; or with the recovery key: 'photovault recover bob --vault FOLDER/home/photos/bob'

        """),
      Case(
        "vault moved", "mv \"$V\" \"$W/elsewhere\"", nil, 10,
        """
        photovault: error: not a vault: FOLDER/vault: there is no such directory
        photovault: hint: is the disk there that holds it? if it was moved: 'photovault recover alice --vault DIR' with the key that 'photovault recovery-key alice' prints

        """),
      Case(
        "vault of a newer version",
        "sed -i 's/\"format\":1/\"format\":2/' \"$V/vault.json\"", nil, 10,
        """
        photovault: error: the vault FOLDER/vault has the unknown format 2
        photovault: hint: a newer photovault made it: use that one; the photos are as they were

        """),
      Case(
        "read-only disk", "mount --bind \"$V\" \"$V\"; mount -o remount,bind,ro \"$V\"", nil, 1,
        """
        photovault: error: the vault FOLDER/vault: read-only file system
        photovault: hint: 'photovault mount --read-only' shows the photos all the same

        """),
      Case(
        "mount point not empty", "touch \"$M/file\"", nil, 13,
        """
        photovault: error: cannot mount at FOLDER/mnt: it is not empty
        photovault: hint: choose another directory, or give -o nonempty to cover what is in it

        """),
      Case(
        "mount point is a file", "rmdir \"$M\"; touch \"$M\"", nil, 13,
        """
        photovault: error: cannot mount at FOLDER/mnt: it is not a directory
        photovault: hint: choose another one, or a new name

        """),
      Case(
        "mount point nowhere", "",
        "\"$PV\" mount alice \"$M/a/b\" --password-file \"$F/password\"", 13,
        """
        photovault: error: cannot mount at FOLDER/mnt/a/b: FOLDER/mnt/a does not exist
        photovault: hint: make it first, or check the path

        """),
      Case(
        "mount point in the vault", "",
        "\"$PV\" mount alice \"$V/mnt\" --password-file \"$F/password\"", 13,
        """
        photovault: error: cannot mount at FOLDER/vault/mnt: it and FOLDER/vault are within one another
        photovault: hint: choose another directory: the mount would hide the vault, or be stored in it

        """),
      Case(
        "no /dev/fuse", "mount -t tmpfs none /dev; mknod -m 666 /dev/null c 1 3", nil, 1,
        """
        photovault: error: cannot mount at FOLDER/mnt: device not found, try 'modprobe fuse' first
        photovault: hint: this machine or container offers no FUSE: see 'photovault doctor'

        """),
      Case(
        "no fusermount3",
        "chown -R 65534:65534 \"$F\"; mkdir \"$W/bin\"; mount --bind \"$W/bin\" /usr/local/bin; "
          + "cp -a /usr/bin/setpriv \"$W/bin/\"; mount -t tmpfs none /usr/bin",
        "PATH=/usr/local/bin setpriv --reuid=65534 --regid=65534 --clear-groups \"$PV\" mount alice "
          + "\"$M\" --password-file \"$F/password\"", 1,
        """
        photovault: error: cannot mount at FOLDER/mnt: failed to exec fusermount3: No such file or directory
        photovault: hint: install the package fuse3

        """),
      Case(
        "a disk without room",
        "mount -t tmpfs -o size=16k none \"$W\"; dd if=/dev/zero of=\"$W/full\" status=none || true",
        "\"$PV\" create bob --vault \"$W/vault\" --password-file \"$F/password\"", 1,
        """
        photovault: error: the vault FOLDER/work/vault: no space left on device
        photovault: hint: nothing was lost; make room and try again

        """),
      Case(
        "too long a grace", "",
        "\"$PV\" mount alice \"$M\" --lock-grace 9999h --password-file \"$F/password\"", 64,
        """
        photovault: error: --lock-grace is at most 60s
        photovault: hint: programs could write to a locked folder for so long; before sleep it is 3s at most, as the system grants 5s

        """),
      Case(
        "for another user, by one who isn't root", "",
        "setpriv --reuid=65534 --regid=65534 --clear-groups \"$PV\" mount alice /mnt -o setuid=root",
        64,
        """
        photovault: error: only root can mount for another user
        photovault: hint: leave setuid out

        """),
      Case(
        "for nobody", "", "\"$PV\" mount alice /mnt -o setuid=no-such-user", 64,
        """
        photovault: error: no user 'no-such-user' on this machine
        photovault: hint: setuid is a login name

        """),
    ]

    @Test("errors say what happened and what to do", arguments: cases)
    func message(_ test: Case) throws {
      try MountedVault.withUnmounted { vault in
        try Scratch.write(
          """
          set -euo pipefail
          export PV="\(Checkout.program)" F="\(vault.folder)"
          export PHOTOVAULT_HOME="$F/home"
          chmod 0755 "$F"
          \(test.setUp)
          code=0
          \(test.command) >"$F/out" 2>"$F/err" || code=$?
          echo $code >"$F/code"
          """, to: vault.folder + "/script")
        try vault.shell("unshare --mount bash \"$W/../script\"")
        #expect(Scratch.read(vault.folder + "/out") == "")
        #expect(
          Scratch.read(vault.folder + "/err").replacing(vault.folder, with: "FOLDER") == test.says)
        #expect(Scratch.read(vault.folder + "/code") == "\(test.code)\n")
        #expect(!vault.isMounted)
      }
    }

    @Test("a damaged photo is an I/O error to the program that reads it, and a line in the log")
    func damagedPhoto() throws {
      try MountedVault.withMounted(names: .plain) { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$PHOTOS/photo.png\" \"$M/\"")
        try vault.remount()
        try vault.clearLog()
        try vault.shell(
          """
          printf x | dd of="$V/photo.jpg.securedData" bs=1 seek=5000 conv=notrunc status=none
          (! cat "$M/photo.jpg" 2>"$W/said" >"$W/got")
          grep -x "cat: $M/photo.jpg: Input/output error" "$W/said"
          cmp "$PHOTOS/photo.png" "$M/photo.png"
          """)
        #expect(vault.log.contains("photo.jpg"), "\(vault.log)")
      }
    }
  }
}
