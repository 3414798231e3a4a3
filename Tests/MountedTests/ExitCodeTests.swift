import Glibc
import Testing

extension MountedTests {
  /// The exit codes that mounting and unmounting can have, each with a message that says what to do.
  @Suite struct ExitCodeTests {
    @Test("a wrong password ends with 12 and the tutorial app's own words")
    func wrongPassword() throws {
      try MountedVault.withUnmounted { vault in
        try Scratch.write("wrong\n", to: vault.passwordFile)
        let outcome = try mount(vault, expecting: 12)
        #expect(outcome.errors.contains("invalid username/password combination"))
        #expect(!outcome.errors.contains("wrong"))
      }
    }

    @Test("an unknown name ends with 11, and makes no account")
    func unknownAccount() throws {
      try MountedVault.withUnmounted { vault in
        let outcome = try vault.photovault(["mount", "bob", vault.mountPoint], expecting: 11)
        expectMessage(outcome, naming: "bob")
        #expect(try !vault.photovault(["accounts"], password: false).output.contains("bob"))
      }
    }

    @Test("a vault that is gone ends with 10")
    func missingVault() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("mv \"$V\" \"$V.elsewhere\"")
        expectMessage(try mount(vault, expecting: 10), naming: vault.backing)
      }
    }

    @Test("a vault whose vault.json is gone, or is no JSON, ends with 10")
    func vaultWithoutItsSuperblock() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("echo '{' >\"$V/vault.json\"")
        expectMessage(try mount(vault, expecting: 10), naming: nil)
        try vault.shell("rm \"$V/vault.json\"")
        expectMessage(try mount(vault, expecting: 10), naming: vault.backing)
      }
    }

    @Test("an altered vault.json is refused")
    func alteredSuperblock() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          #"sed -i 's/"encrypted"/"plain"/' "$V/vault.json"; grep -q plain "$V/vault.json""#)
        expectMessage(try mount(vault, expecting: nil), naming: nil)
        #expect(!vault.isMounted)
      }
    }

    @Test("a mount point that is not empty, or no folder, ends with 13 and is left as it was")
    func unusableMountPoint() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("chmod 0750 \"$M\"; echo mine >\"$M/file\"")
        expectMessage(try mount(vault, expecting: 13), naming: vault.mountPoint)
        try vault.shell("grep -qx mine \"$M/file\"; test \"$(stat -c %a \"$M\")\" = 750")
        expectMessage(
          try vault.photovault(
            ["mount", MountedVault.user, vault.mountPoint + "/file"], expecting: 13),
          naming: vault.mountPoint + "/file")
      }
    }

    @Test(
      "a mount point that is not empty is used with -o nonempty, and its files are back after the unmount"
    )
    func nonEmptyMountPoint() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("echo mine >\"$M/file\"")
        try vault.mount(options: ["-o", "nonempty"])
        try vault.shell("test -z \"$(ls -A \"$M\")\"")
        try vault.unmount()
        try vault.shell("grep -qx mine \"$M/file\"")
      }
    }

    @Test("mounting a second time ends with 16, at the same place and elsewhere")
    func alreadyMounted() throws {
      try MountedVault.withMounted { vault in
        expectMessage(try mount(vault, expecting: 16), naming: MountedVault.user)
        try vault.shell("mkdir \"$W/other\"")
        let elsewhere = ["mount", MountedVault.user, vault.work + "/other"]
        expectMessage(try vault.photovault(elsewhere, expecting: 16), naming: MountedVault.user)
        try vault.shell("touch \"$M/still there\"")
      }
    }

    @Test(
      "unmounting while a program holds a file ends with 17 and names the program; --force cuts it off"
    )
    func busy() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("cp \"$PHOTOS/photo.jpg\" \"$M/\"")
        let holder = try Command.spawn(
          ["tail", "-f", vault.mountPoint + "/photo.jpg"], output: "/dev/null", errors: "/dev/null")
        defer {
          holder.signal(SIGKILL)
          _ = holder.wait()
        }
        let held = try Wait.until(seconds: 10) {
          try vault.shell("readlink /proc/\(holder.id)/fd/* || true").contains("/photo.jpg")
        }
        #expect(held)
        let outcome = try vault.photovault(
          ["unmount", vault.mountPoint], password: false, expecting: 17)
        expectMessage(outcome, naming: "tail")
        #expect(outcome.errors.contains("\(holder.id)"))
        // The daemon itself is nobody to wait for.
        #expect(!outcome.errors.contains("\(try #require(vault.daemon).id)"))
        try vault.shell("cmp \"$PHOTOS/photo.jpg\" \"$M/photo.jpg\"")
        try vault.photovault(
          ["unmount", "--force", vault.mountPoint], password: false, expecting: 0)
        try vault.expectEnd()
      }
    }

    @Test("creating an account that exists ends with 18 and changes nothing")
    func existingAccount() throws {
      try MountedVault.withUnmounted { vault in
        let before = try vault.shell(
          "cd \"$W/..\"; find home vault -type f | sort | xargs -d '\\n' sha256sum")
        let outcome = try vault.photovault(["create", MountedVault.user], expecting: 18)
        #expect(outcome.errors.contains("account exists"))
        let after = try vault.shell(
          "cd \"$W/..\"; find home vault -type f | sort | xargs -d '\\n' sha256sum")
        #expect(before == after)
      }
    }

    @Test(
      "usage errors end with 64",
      arguments: [
        ["mount"], ["mount", "alice", "/mnt", "extra"], ["mount", "alice", "--no-such-option"],
        ["mount", "alice", "--idle", "soon"], ["no-such-command"], ["unmount"],
        ["unmount", "--idle", "5m", "x"],
      ])
    func usage(arguments: [String]) throws {
      let folder = try Scratch.makeFolder()
      defer { Scratch.remove(folder) }
      expectMessage(
        try Command.run(
          [Checkout.program] + arguments, environment: ["HOME": folder], expecting: 64),
        naming: nil)
    }

    @Test("unmounting what is not mounted is an error that says so")
    func notMounted() throws {
      try MountedVault.withUnmounted { vault in
        let outcome = try vault.photovault(["unmount", vault.mountPoint], password: false)
        #expect(outcome.status != 0)
        expectMessage(outcome, naming: vault.mountPoint)
      }
    }

    /// Mounts in the background; only the outcome is of interest.
    private func mount(_ vault: MountedVault, expecting expected: Int32?) throws -> Outcome {
      try vault.photovault(["mount", MountedVault.user, vault.mountPoint], expecting: expected)
    }

    /// Errors, then hints, on standard error; nothing on standard output.
    private func expectMessage(
      _ outcome: Outcome, naming name: String?, sourceLocation: SourceLocation = #_sourceLocation
    ) {
      let errors = outcome.errors
      #expect(outcome.status != 0, sourceLocation: sourceLocation)
      #expect(outcome.output == "", sourceLocation: sourceLocation)
      #expect(errors.hasPrefix("photovault: error: "), "\(errors)", sourceLocation: sourceLocation)
      if let name { #expect(errors.contains(name), "\(errors)", sourceLocation: sourceLocation) }
      #expect(!errors.contains(MountedVault.password), sourceLocation: sourceLocation)
    }
  }
}
