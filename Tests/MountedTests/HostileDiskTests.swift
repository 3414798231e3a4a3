import Glibc
import Testing

extension MountedTests {
  /// Somebody without the key can write to the disk, and changes it while the program runs.
  @Suite struct HostileDiskTests {
    @Test(
      "fifos, sockets, devices and links in the place of photos, folders and names stop nobody and lead nowhere",
      arguments: Names.allCases)
    func planted(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        let longName = String(repeating: "n", count: 240)
        try vault.shell(
          """
          mkdir "$M/kept" "$M/album"; cp "$PHOTOS"/* "$M/kept/"
          for number in $(seq 5); do
            head -c $((20000 + 1000 * number)) /dev/urandom >"$M/target$number.bin"
            mkdir "$M/album/inner$number"; echo x >"$M/album/inner$number/x"
          done
          echo long >"$M/\(longName)"
          """)
        try vault.unmount()
        try vault.shell(
          """
          "\(Checkout.program)" recovery-key alice --home "$W/../home" \
            --password-file "$W/../password" >"$W/../key" 2>/dev/null
          echo MARKER-OUTSIDE >"$W/outside"; mkdir "$W/elsewhere"; echo MARKER-OUTSIDE >"$W/elsewhere/x"
          plant() { # KIND PATH
            rm -rf "$2"
            case $1 in
              1) mkfifo "$2" ;;
              2) python3 -c 'import os, stat, sys; os.mknod(sys.argv[1], stat.S_IFSOCK | 0o644)' "$2" ;;
              3) mknod "$2" c 1 5 ;;
              4) ln -s "$W/outside" "$2" ;;
              5) ln -s "$W/elsewhere" "$2" ;;
            esac
          }
          for number in $(seq 5); do
            size=$((66 + 16 * ((20000 + 1000 * number) / 16 + 1)))
            plant $number "$(find "$V" -type f -size ${size}c)"
          done
          # The folder with five folders in it, and in each of these what is its own.
          album=$(find "$V" -mindepth 2 -maxdepth 2 -type d -printf '%h\\n' | sort -u)
          number=0
          for inner in "$album"/*/; do
            number=$((number + 1)); inner=${inner%/}
            if [ -e "$inner/directory.id" ]; then plant $number "$inner/directory.id"
            else plant $number "$inner"; fi
          done
          for name in "$V"/*.long.name; do plant 1 "$name"; done
          plant 1 "$V/.photovault-Ab12Cd.tmp"; plant 5 "$V/.photovault-Ab12Ce.tmp"
          plant 5 "$V/.photovault-damaged"; touch -h -d '-1 hour' "$V"/.photovault-*
          """)
        try vault.mount()
        // Every name is looked at and opened as programs would, without waiting for a fifo's other end.
        try vault.shell(
          """
          diff -r "$PHOTOS" "$M/kept"
          (timeout 20 ls -lR "$M" >"$W/listing" 2>&1) || test $? != 124
          timeout 20 python3 - "$M" <<'END'
          import os, sys
          for folder, folders, files in os.walk(sys.argv[1]):
              for name in files:
                  path = os.path.join(folder, name)
                  try:
                      file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
                  except OSError:
                      continue
                  try:
                      assert b"MARKER" not in os.read(file, 100), path
                  except OSError:
                      pass
                  os.close(file)
          END
          """)
        try vault.unmount()
        try vault.shell(
          """
          with() { timeout 30 "\(Checkout.program)" "$@" --home "$W/../home" --password-file "$W/../password"; }
          code=0; with check alice >"$W/checked" 2>&1 || code=$?
          test $code = 15 -o $code = 0
          code=0; with export alice "$W/out" >"$W/exported" 2>&1 || code=$?
          test $code = 15 -o $code = 1
          diff -r "$PHOTOS" "$W/out/kept"
          code=0; timeout 60 python3 "\(Checkout.scripts)/share/read-vault.py" "$W/../key" "$V" \
            "$W/restored" 2>"$W/restoring" || code=$?
          test $code = 1 -o $code = 0
          (! grep Traceback "$W/restoring")
          diff -r "$PHOTOS" "$W/restored/kept"
          (! grep -r --devices=skip MARKER "$W/out" "$W/restored")
          code=0; with check --repair alice >"$W/repaired" 2>&1 || code=$?
          test $code = 15 -o $code = 0
          # Nothing outside was touched.
          grep -qx MARKER-OUTSIDE "$W/outside" "$W/elsewhere/x"
          test "$(ls -A "$W/elsewhere")" = x
          """, limit: 200)
      }
    }

    @Test(
      "vault.json and the vault's directory as something else are refused, by all that reads them")
    func vaultJSON() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          "\(Checkout.program)" recovery-key alice --home "$W/../home" \
            --password-file "$W/../password" >"$W/../key" 2>/dev/null
          cp "$V/vault.json" "$W/vault.json"
          refused() {
            for command in "mount alice $M" "check alice" "export alice $W/out" "import alice $W/vault.json"; do
              code=0
              timeout 20 "\(Checkout.program)" $command --home "$W/../home" \
                --password-file "$W/../password" >"$W/said" 2>&1 || code=$?
              test $code = 10 -o $code = 1 || { echo "$command: $code" >&2; cat "$W/said" >&2; exit 1; }
            done
            code=0; timeout 20 python3 "\(Checkout.scripts)/share/read-vault.py" "$W/../key" "$V" \
              "$W/restored" 2>"$W/restoring" || code=$?
            test $code = 1; (! grep Traceback "$W/restoring")
          }
          for kind in 'mkfifo' 'ln -s /dev/zero' 'truncate -s 1G' 'mkdir'; do
            rm -rf "$V/vault.json"; $kind "$V/vault.json"; refused
          done
          rm -rf "$V/vault.json"; mknod "$V/vault.json" c 1 5; refused
          """, limit: 300)
      }
    }

    @Test("an account item that leads elsewhere opens nothing there")
    func accountItem() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          """
          with() { timeout 60 "\(Checkout.program)" "$@" --home "$W/../home" --password-file "$W/../password"; }
          with create bob --vault "$W/bob"
          items="$W/../home/accounts"; cp "$items/alice.json" "$W/alice.json"
          expect() { # CODE COMMAND...
            local wanted=$1 code=0; shift
            with "$@" >"$W/said" 2>&1 || code=$?
            test $code = $wanted || { echo "$*: $code" >&2; cat "$W/said" >&2; exit 1; }
          }
          edit() { python3 - "$W/alice.json" "$items/alice.json" "$1" <<'END'
          import json, sys
          item = json.load(open(sys.argv[1]))
          exec(sys.argv[3])
          json.dump(item, open(sys.argv[2], "w"))
          END
          }
          # Another account's item under this name.
          cp "$items/bob.json" "$items/alice.json"; expect 14 mount alice "$M"
          edit 'bob = json.load(open(sys.argv[2].replace("alice", "bob"))); bob["account"] = "alice"; item = bob'
          with mount alice "$M" --idle 0; findmnt -n "$M" >/dev/null
          # It opens bob's vault with bob's password, which are the ones that the item names.
          "\(Checkout.program)" unmount "$M" --home "$W/../home"
          # This account's key does not open another vault, whether the id is made to fit or not.
          edit "item['vault']['path'] = '$W/bob'"
          expect 10 mount alice "$M"; expect 10 check alice; expect 10 export alice "$W/out"
          edit "item['vault'] = json.load(open('$items/bob.json'))['vault']"
          expect 10 mount alice "$M"; expect 10 check alice; expect 10 export alice "$W/out"
          # A vault that somebody made: his vault.json, his photos, alice's id.
          edit "item['kdf'].update(n=1 << 30, r=1 << 20, p=1 << 20)"; expect 14 mount alice "$M"
          edit "item['kdf'].update(n=1 << 20, r=8, p=16)"; expect 14 mount alice "$M"
          edit "item['kdf'].update(n=-1)"; expect 14 mount alice "$M"
          edit "item['kdf'].update(n=1e400)"; expect 14 mount alice "$M"
          edit "item['vault']['path'] = '/proc/self/../../dev'"; expect 10 mount alice "$M"
          rm "$items/alice.json"; mkfifo "$items/alice.json"; expect 14 mount alice "$M"
          (! findmnt -n "$M")
          """, limit: 300)
      }
    }

    @Test("links that are put into its way while it runs lead an export nowhere")
    func exportInMotion() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          for folder in a b c; do
            mkdir "$M/$folder"
            for number in $(seq 60); do head -c 3000 /dev/urandom >"$M/$folder/$number"; done
          done
          mkdir "$W/copy" && cp -r "$M"/* "$W/copy/"
          """)
        try vault.unmount()
        try vault.shell(
          Self.swapping + """
            mkdir -p "$W/out"/{a,b,c} "$W/elsewhere"; echo mine >"$W/elsewhere/1"
            for round in 1 2 3; do
              swap "$W/out" "$W/elsewhere" & swapper=$!
              timeout 60 "\(Checkout.program)" export alice "$W/out" --on-conflict replace \
                --home "$W/../home" --password-file "$W/../password" >"$W/said" 2>&1 || test $? = 1
              kill $swapper; wait $swapper || true
              settle "$W/out"
              test "$(ls -A "$W/elsewhere")" = 1; grep -qx mine "$W/elsewhere/1"
            done
            # Left alone it ends.
            timeout 60 "\(Checkout.program)" export alice "$W/out" --on-conflict replace \
              --home "$W/../home" --password-file "$W/../password"
            for folder in a b c; do diff -r "$W/copy/$folder" "$W/out/$folder"; done
            """, limit: 280)
      }
    }

    @Test("links that are put into its way while it runs lead an import, or its deletions, nowhere")
    func importInMotion() throws {
      try MountedVault.withUnmounted { vault in
        try vault.shell(
          Self.swapping + """
            mkdir "$W/elsewhere" "$W/seen"
            for number in $(seq 60); do echo "MARKER-OUTSIDE $number" >"$W/elsewhere/$number"; done
            for round in 1 2 3 4; do
              rm -rf "$W/in"; mkdir -p "$W/in"/{a,b,c}
              for folder in a b c; do
                for number in $(seq 60); do echo "$round $folder $number" >"$W/in/$folder/$number"; done
              done
              swap "$W/in" "$W/elsewhere" & swapper=$!
              timeout 60 "\(Checkout.program)" import alice --move "$W/in" --home "$W/../home" \
                --password-file "$W/../password" >"$W/said" 2>&1 || test $? = 1
              kill $swapper; wait $swapper || true
              test "$(ls "$W/elsewhere" | wc -l)" = 60
              # Nothing is lost: it is in the vault or where it was.
              settle "$W/in"
              "\(Checkout.program)" export alice "$W/seen/$round" --home "$W/../home" \
                --password-file "$W/../password" >"$W/said" 2>&1
              (! grep -r MARKER-OUTSIDE "$W/seen/$round")
              (cat "$W/in"/*/* || true; find "$W/seen/$round" -type f -exec cat {} +) 2>/dev/null |
                sort -u | grep -c "^$round " | grep -qx 180
            done
            """, limit: 280)
      }
    }

    /// `swap FOLDER ELSEWHERE`: folders in it are links to elsewhere, and folders again, all the time;
    /// `settle FOLDER`: all are folders again.
    private static let swapping = """
      swap() {
        rm -rf "$1.links"; mkdir "$1.links"
        for name in a b c; do ln -s "$2" "$1.links/$name"; done
        exec python3 - "$1" <<'END'
      import ctypes, os, signal, sys, time
      signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
      library = ctypes.CDLL(None)
      while True:
          for name in b"abc":
              path = os.fsencode(sys.argv[1])
              for _ in range(2):
                  library.renameat2(-100, path + b"/%c" % name, -100, path + b".links/%c" % name, 2)
                  time.sleep(0.0005)
      END
      }
      settle() {
        for name in a b c; do
          [ -d "$1.links/$name" ] && [ ! -L "$1.links/$name" ] || continue
          rm -f "$1/$name"; mv -T "$1.links/$name" "$1/$name"
        done
      }

      """
  }
}
