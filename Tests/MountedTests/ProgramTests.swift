import Testing

extension MountedTests {
  /// Programs that ask a lot of a file system.
  @Suite struct ProgramTests {
    @Test(
      "a git repository lives on the mount: commit, branch, pack, fsck", arguments: Names.allCases)
    func gitRepository(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(Self.makeRepository)
        try vault.shell(
          """
          cd "$M"
          git clone -q "$W/repository" clone
          cd clone
          git switch -qc branch; echo more >>a1; git commit -qam more
          git switch -q -; git merge -q branch
          git fsck --strict
          git gc -q --aggressive --prune=now
          git fsck --strict
          test -z "$(git status --porcelain)"
          """, limit: 180)
        try vault.remount()
        try vault.shell(
          "cd \"$M/clone\"; git fsck --strict; test -z \"$(git status --porcelain)\"; git log --oneline"
        )
      }
    }

    @Test("a local git clone on the mount shares its objects by hard links")
    func gitLocalClone() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(Self.makeRepository)
        try vault.shell(
          """
          cd "$M"
          git clone -q --no-local "$W/repository" first
          git clone -q --local first second
          git -C second fsck --strict
          pack=$(cd first/.git/objects/pack; ls *.pack)
          test "$(stat -c %i first/.git/objects/pack/$pack)" = "$(stat -c %i second/.git/objects/pack/$pack)"
          test "$(stat -c %h second/.git/objects/pack/$pack)" = 2
          rm -rf first
          git -C second fsck --strict
          test "$(stat -c %h second/.git/objects/pack/$pack)" = 1
          """, limit: 180)
        try vault.remount()
        try vault.shell("git -C \"$M/second\" fsck --strict")
      }
    }

    @Test("four processes share an SQLite database with a write-ahead log")
    func sqlite() throws {
      try MountedVault.withMounted { vault in
        try vault.shell("python3 \"$T/sqlite_writers.py\" \"$M/photos.db\"", limit: 180)
        try vault.shell("test \"$(sqlite3 \"$M/photos.db\" 'PRAGMA integrity_check')\" = ok")
        try vault.remount()
        try vault.shell(
          """
          test "$(sqlite3 "$M/photos.db" 'PRAGMA integrity_check')" = ok
          test "$(sqlite3 "$M/photos.db" 'SELECT count(*), count(DISTINCT writer) FROM photo')" = '400|4'
          """)
      }
    }

    @Test(
      "rsync -aHAX copies in and out, and finds nothing to do the second time",
      arguments: Names.allCases)
    func rsync(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(
          """
          mkdir -p "$W/source/album"
          cp "$PHOTOS"/* "$W/source/"
          cp "$PHOTOS/photo.jpg" "$W/source/album/$(printf 'x%.0s' $(seq 1 200)).jpg"
          ln "$W/source/photo.png" "$W/source/album/linked.png"
          ln -s ../photo.jpg "$W/source/album/symlink"
          setfattr -n user.note -v hello "$W/source/photo.heic"
          chown 1000:1000 "$W/source/photo.tiff"
          touch -d '2011-11-11 11:11:11.111111111' "$W/source/film.mp4" "$W/source/album"
          rsync -aHAX -@-1 "$W/source/" "$M/copy/"
          test -z "$(rsync -aHAX -@-1 --itemize-changes "$W/source/" "$M/copy/")"
          python3 "$T/manifest.py" "$W/source" >"$W/expected"
          python3 "$T/manifest.py" "$M/copy" | diff "$W/expected" -
          """)
        try vault.remount()
        try vault.shell(
          """
          test -z "$(rsync -aHAX -@-1 --itemize-changes --checksum --delete "$W/source/" "$M/copy/")"
          rsync -aHAX -@-1 "$M/copy/" "$W/out/"
          test -z "$(rsync -aHAX -@-1 --itemize-changes "$M/copy/" "$W/out/")"
          python3 "$T/manifest.py" "$W/out" | diff "$W/expected" -
          # A small change travels as a small change, into the file itself too.
          printf more >>"$W/source/photo.png"
          rsync -aHAX -@-1 --inplace --no-whole-file "$W/source/" "$M/copy/"
          cmp "$W/source/photo.png" "$M/copy/album/linked.png"
          """)
      }
    }

    @Test("tar unpacks a tree of many small files and packs it again")
    func tar() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          mkdir -p "$W/tree"
          cd "$W/tree"
          for folder in $(seq 1 20); do
            mkdir $folder
            for file in $(seq 1 25); do echo "$folder $file" >$folder/$file; done
          done
          cp "$PHOTOS"/* 1/
          ln 1/photo.jpg 2/linked.jpg; ln -s ../1/photo.jpg 3/symlink; chmod 0600 4/*
          tar -C "$W" --format=pax --xattrs -cf "$W/tree.tar" tree
          tar -C "$M" --xattrs -xf "$W/tree.tar"
          tar -C "$M" --compare -f "$W/tree.tar"
          """, limit: 120)
        try vault.remount()
        try vault.shell(
          """
          tar -C "$M" --compare -f "$W/tree.tar"
          tar -C "$M" --format=pax --sort=name -cf - tree | tar -C "$W/tree/.." --compare -f -
          """, limit: 120)
      }
    }

    @Test("zip packs in the folder, adds, and unzip tests and unpacks")
    func zip() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS"/* .
          touch -d '2020-01-01 00:00:00' *
          zip -qX photos.zip photo.jpg photo.png
          zip -qX photos.zip film.mp4
          zip -qdX photos.zip photo.png
          unzip -tq photos.zip
          unzip -q photos.zip -d out
          """)
      }
    }

    @Test("shared and private mappings write what they should")
    func mappedWrites() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/photo.jpg" .
          python3 "$T/mapped_writes.py"
          """)
      }
    }

    @Test("shells redirect, append and duplicate descriptors onto a photo")
    func redirections() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          for name in a b c d e f g h; do cp "$PHOTOS/photo.jpg" $name; done
          printf new >a
          : >b
          exec 3>c; printf 1 >&3; (printf 2 >&3); printf 3 >&3; cat c; exec 3>&-
          printf tail >>d; printf tail2 >>d
          { printf one; cat "$PHOTOS/photo.png"; } >e
          exec 4<>f; printf X >&4; head -c 10 <&4 | od -c; exec 4>&-
          set -C; (! printf no >g) 2>/dev/null; printf yes >|g; set +C
          cat "$PHOTOS/photo.png" | tee h >i
          exec 5>j; exec 6>&5; exec 5>&-; printf later >&6; exec 6>&-
          """)
      }
    }

    @Test("dd, truncate and fallocate change parts of a photo in place")
    func partialChanges() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          for name in a b c d e f g h i; do cp "$PHOTOS/photo.jpg" $name; done
          size=$(stat -c %s a)
          printf 0123456789abcdef | dd of=a bs=1 seek=1000 conv=notrunc status=none
          dd if=/dev/zero of=b bs=4096 count=3 seek=5 conv=notrunc status=none
          dd if="$PHOTOS/photo.png" of=c bs=65536 status=none
          dd if="$PHOTOS/photo.png" of=d bs=1000 oflag=append conv=notrunc status=none
          truncate -s 0 e; truncate -s 12345 f; truncate -s +100000 g; truncate -s -1 h
          fallocate -l $((size + 50000)) i
          truncate -s 5000000 sparse; printf end >>sparse
          fallocate -p -o 4096 -l 8192 a
          dd if=a of=a.copy bs=1 skip=990 count=40 status=none
          stat -c '%n %s' *
          """)
      }
    }

    @Test("names may be 255 bytes of anything but slash and NUL", arguments: Names.allCases)
    func anyNames(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.expectLikeAnOrdinaryFolder("python3 \"$T/any_names.py\"")
      }
    }

    @Test("four programs copy 200 photos each at the same time", arguments: Names.allCases)
    func concurrentCopies(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.shell(
          """
          mkdir "$W/source"
          for number in $(seq 1 200); do
            head -c $((RANDOM * 7)) /dev/urandom >"$W/source/IMG_$number.JPG"
          done
          for copy in 1 2 3 4; do cp -a "$W/source" "$M/copy$copy" & jobs="${jobs-} $!"; done
          for job in $jobs; do wait $job; done
          for copy in 1 2 3 4; do diff -r "$W/source" "$M/copy$copy"; done
          """, limit: 180)
        try vault.remount()
        try vault.shell("for copy in 1 2 3 4; do diff -r \"$W/source\" \"$M/copy$copy\"; done")
      }
    }

    @Test("a photo that is open stays readable and writable after its name is gone or taken over")
    func openFilesWithoutNames() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/photo.jpg" a; cp "$PHOTOS/photo.png" b
          exec 3<>a 4<b
          rm a; mv b c; printf new >c.new; mv c.new c
          head -c 100 <&3 | sha256sum; printf more >&3
          stat -L -c '%h %s' /proc/self/fd/3
          cat <&4 | sha256sum
          exec 3>&- 4>&-
          ls -A
          """)
      }
    }

    @Test("df and du tell what is so")
    func space() throws {
      try MountedVault.withMounted { vault in
        try vault.shell(
          """
          head -c 10000000 /dev/urandom >"$M/ten"
          sync -f "$M/ten"
          test "$(du --apparent-size -B1 "$M/ten" | cut -f1)" = 10000000
          blocks=$(du -B1 "$M/ten" | cut -f1); test $blocks -ge 10000000 -a $blocks -lt 11000000
          test "$(df --output=size "$M")" = "$(df --output=size "$V")"
          free=$(df -B1 --output=avail "$M" | tail -n1); below=$(df -B1 --output=avail "$V" | tail -n1)
          test $((free - below)) -lt 200000000 -a $((below - free)) -lt 200000000
          test "$(stat -f -c %l "$M")" = 255
          """)
      }
    }

    private static let makeRepository = """
      git init -qb main "$W/repository"
      cd "$W/repository"
      for number in $(seq 1 40); do seq $number 300 >a$number; git add a$number; git commit -qm "$number"; done
      cp "$PHOTOS/photo.jpg" .; git add .; git commit -qm photo
      git gc -q
      """
  }
}
