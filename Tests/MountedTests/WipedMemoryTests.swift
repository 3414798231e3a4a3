import Glibc
import Testing

extension MountedTests {
  /// What is left in the memory of processes, seen by root with ptrace(2).
  @Suite struct WipedMemoryTests {
    @Test(
      "while mounted no password is in memory, and the recovery key only where no dump or swap gets it; after the end no key is",
      arguments: ["lock alice", "unmount alice", "unmount --force alice"])
    func theMountsProcess(end: String) throws {
      try MountedVault.withUnmounted { vault in
        let setup = try writeSetup(vault)
        try vault.photovault(
          ["mount", MountedVault.user, vault.mountPoint, "--idle", "0"], expecting: 0)
        try vault.shell(Self.work)
        for process in MountTable.daemons(of: vault.folder) {
          let seen = try memory(vault, [setup, "now", "\(process)"])
          #expect(!seen.contains { $0.hasPrefix("password") || $0.hasPrefix("scrypt") }, "\(seen)")
          for finding in seen where finding.hasPrefix("recovery-key") {
            let flags = finding.split(separator: " ")[2].split(separator: "+")
            #expect(Set(flags).isSuperset(of: ["lo", "wf", "dd"]), "\(finding)")
          }
        }
        let daemon = try #require(
          try MountTable.daemons(of: vault.folder).first { process in
            try vault.shell("tr '\\0' ' ' </proc/\(process)/cmdline").contains("mount-daemon")
          })
        // The search finds keys where they are.
        let before = try memory(vault, [setup, "now", "\(daemon)"]).map { $0.prefix { $0 != " " } }
        #expect(Set(before).isSuperset(of: ["recovery-key", "encryption", "hmac", "names-0"]))

        // A program holds a file, and has changed it.
        let left = try vault.shell(
          """
          exec 3<>"$M/edited"; printf new >&3
          python3 "$T/memory.py" \(setup) at-end \(daemon) "$W/ready" 3>&- >"$W/left" 2>&1 &
          for _ in $(seq 600); do [ ! -e "$W/ready" ] || break; sleep 0.05; done
          \(end.hasPrefix("unmount a") ? "exec 3>&-" : "")
          timeout 60 "\(Checkout.program)" \(end) --home "$W/../home" || test $? = 1
          wait $!
          cat "$W/left"
          """, limit: 120)
        expectNothing(left)
      }
    }

    @Test("a mount in the foreground, which asks for the password itself, wipes it and the keys")
    func theForegroundsProcess() throws {
      try MountedVault.withMounted { vault in
        let setup = try writeSetup(vault)
        try vault.shell(Self.work)
        let daemon = try #require(vault.daemon).id
        let seen = try memory(vault, [setup, "now", "\(daemon)"])
        #expect(!seen.contains { $0.hasPrefix("password") || $0.hasPrefix("scrypt") }, "\(seen)")
        let left = try vault.shell(
          """
          python3 "$T/memory.py" \(setup) at-end \(daemon) "$W/ready" >"$W/left" 2>&1 &
          for _ in $(seq 600); do [ ! -e "$W/ready" ] || break; sleep 0.05; done
          kill -TERM \(daemon)
          wait $!
          cat "$W/left"
          """, limit: 120)
        expectNothing(left)
        try vault.expectEnd()
      }
    }

    @Test("commands leave neither passwords nor keys in memory when they end")
    func commands() throws {
      try MountedVault.withUnmounted { vault in
        let setup = try writeSetup(vault)
        try vault.shell(
          """
          mkdir "$W/in"; cp "$PHOTOS"/* "$W/in/"
          printf '\(Self.newPassword)\\n' >"$W/../new-password"
          "\(Checkout.program)" recovery-key alice --home "$W/../home" \
            --password-file "$W/../password" >"$W/../key" 2>/dev/null
          """)
        let password = ["--password-file", vault.passwordFile]
        let new = ["--password-file", vault.folder + "/new-password"]
        let mount = ["mount", "alice", vault.mountPoint, "--idle", "0"]
        let recover = [
          "recover", "alice", "--vault", vault.backing, "--recovery-key-file",
          vault.folder + "/key", "--new-password-file", vault.passwordFile,
        ]
        for command in [
          ["import", "alice", vault.work + "/in"] + password,
          ["check", "alice"] + password,
          ["check", "--repair", "alice"] + password,
          ["export", "alice", vault.work + "/out"] + password,
          ["recovery-key", "alice"] + password,
          mount + password, ["unmount", "alice"],
          ["passwd", "alice", "--new-password-file", vault.folder + "/new-password"] + password,
          ["recovery-key", "alice"] + new,
          ["check", "alice"] + new,
          recover,
          ["accounts"],
        ] {
          expectNothing(try run(vault, setup, command), "\(command)")
        }
        // An account that is just made.
        try vault.shell(
          """
          "\(Checkout.program)" remove --yes alice --home "$W/../home"
          mv "$V" "$W/old"
          """)
        expectNothing(
          try run(vault, setup, ["create", "alice", "--vault", vault.backing] + password), "create")
      }
    }

    @Test("no symbol is bound late, which would save registers with pieces of keys on the stack")
    func symbolsAreBoundAtTheStart() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell("readelf -d \"\(Checkout.program)\" | grep 'FLAGS_1.* NOW'")
      }
    }

    private static let newPassword = "pw-93be-Correct Horse Staple"

    /// Some of everything that needs keys.
    private static let work = """
      mkdir "$M/album"; cp "$PHOTOS"/* "$M/"; cp "$PHOTOS"/* "$M/album/"
      head -c 3000000 /dev/urandom >"$M/film"; cat "$M"/* >/dev/null 2>&1 || true
      printf x >"$M/$(printf 'n%.0s' $(seq 240))"; ln -s film "$M/link"; ls -lR "$M" >/dev/null
      setfattr -n user.title -v 'A day' "$M/film"; getfattr -d "$M/film" >/dev/null
      cp "$M/film" "$M/edited"
      printf x | dd of="$M/film" bs=1 seek=1000 conv=notrunc status=none
      dd if="$M/film" of=/dev/null bs=4096 skip=300 count=1 status=none
      """

    private func writeSetup(_ vault: MountedVault) throws -> String {
      let path = vault.folder + "/setup.json"
      try Scratch.write(
        """
        {"account": "\(vault.home)/accounts/alice.json", "vault": "\(vault.backing)/vault.json",
         "password": "\(MountedVault.password)", "newPassword": "\(Self.newPassword)",
         "recoveryKeyCommand":
           ["\(Checkout.program)", "recovery-key", "alice", "--home", "\(vault.home)"]}
        """, to: path)
      return path
    }

    private func memory(_ vault: MountedVault, _ arguments: [String]) throws -> [Substring] {
      try vault.shell(
        "python3 \"$T/memory.py\" \(arguments.joined(separator: " "))", limit: 120
      ).split(separator: "\n")
    }

    /// What is left at the end of a command that must succeed.
    private func run(
      _ vault: MountedVault, _ setup: String, _ command: [String]
    ) throws -> String {
      let words = command.map { "'\($0)'" }.joined(separator: " ")
      return try vault.shell(
        """
        python3 "$T/memory.py" \(setup) run "$W/status" \
          "\(Checkout.program)" \(words) --home "$W/../home" 2>"$W/errors" | tee "$W/said" | \
          grep -E '^(looked [0-9]|[a-z-]+[0-9a-z-]*'"'"'? [0-9a-f]+ [a-z+-]+ )' || true
        grep -qx 0 "$W/status" || { cat "$W/said" "$W/errors" >&2; exit 1; }
        """, limit: 120)
    }

    private func expectNothing(
      _ found: String, _ what: String = "", sourceLocation: SourceLocation = #_sourceLocation
    ) {
      let lines = found.split(separator: "\n")
      #expect(lines.count == 1, "\(what): \(found)", sourceLocation: sourceLocation)
      #expect(
        lines.last?.hasPrefix("looked ") == true, "\(what): \(found)",
        sourceLocation: sourceLocation)
    }
  }
}
