import Foundation
import Platform
import Testing

@testable import photovault

/// `import` and `export` by the built program, compared by other programs.
@Suite struct ImportCommandTests {
  let program: Program

  init() throws {
    program = try Program()
    try program.makeAccount()
    try program.write(
      "functions",
      """
      set -eu
      import() { "$PV" import alice --password-file password "$@"; }
      export_() { "$PV" export alice --password-file password "$@"; }
      noise() { head -c "$2" /dev/urandom >"$1"; }
      """)
  }

  /// A shell script with the functions above; what it prints.
  @discardableResult
  private func script(_ text: String, status: Int32 = 0) throws -> String {
    let result = try program.shell(". ./functions\n" + text)
    #expect(result.status == status, "\(result.output)\(result.errors)")
    return result.output + result.errors
  }

  @Test func aTreeComesBackAsItWas() throws {
    let said = try script(
      """
      mkdir -p in/album/inner in/empty
      noise in/album/IMG_1.jpg 300001; noise in/album/inner/film.mp4 2500000; : >in/nothing
      noise 'in/name with  spaces
      and lines' 17
      ln -s album/IMG_1.jpg in/link; ln -s /nowhere in/dangling
      setfattr -n user.title -v 'A day' in/album/IMG_1.jpg in/album
      chmod 640 in/album/IMG_1.jpg; chmod 711 in/album
      touch -d '2001-02-03 04:05:06.789' in/album/IMG_1.jpg
      touch -h -d '2002-02-03 04:05:06.5' in/link; touch -d '2003-02-03 04:05:06.5' in/album in/empty
      import in/ >out
      export_ back 2>err
      grep -q 'not encrypted' err
      diff -r --no-dereference in back
      list() { (cd "$1" && find . -mindepth 1 -printf '%P %y %m %T@ %l\\n' | sort); }
      list in >a; list back >b; diff a b
      test "$(stat -c %a back)" = 700
      for f in album album/IMG_1.jpg; do
        test "$(getfattr --only-values -n user.title "back/$f")" = 'A day'
      done
      "$PV" check alice --password-file password | grep 'no damage'
      cat out
      """)
    #expect(
      said.contains("imported into 'alice': 4 files, 2.8 MB, 3 folders, 2 links\n"), "\(said)")
  }

  @Test func namesAreThoseOfCp() throws {
    try script(
      """
      mkdir -p a/b; echo 1 >a/b/x; echo 2 >y
      import a y; import --into deep/er a/b/x; import --into dots a/b/.
      export_ back; cd back; find . -type f | sort >../found
      printf '%s\\n' ./a/b/x ./deep/er/x ./dots/x ./y | diff - ../found
      cd ..; export_ --from a/b one; test -f one/b/x
      export_ --from a/b/ two; test -f two/x
      export_ --from y three; test -f three/y
      """)
  }

  @Test func whatIsThereIsSkippedAndNothingIsReplaced() throws {
    let said = try script(
      """
      mkdir in; noise in/IMG_1.jpg 1000; noise in/same.jpg 1000
      import in/; import in/ >out; grep -q ': 0 files, 0 bytes; 2 there already' out
      cp in/IMG_1.jpg first
      noise in/IMG_1.jpg 1000; cp in/IMG_1.jpg second; import in/ >out
      grep -q '1 file, .*; 1 there already, 1 under another name' out
      import in/ >out; grep -q '0 files, .*; 2 there already' out
      noise in/IMG_1.jpg 1000
      status=0; import --on-conflict skip in/ >out 2>&1 || status=$?; test $status = 1
      grep -q "skipped: in/IMG_1.jpg: another file is there as 'IMG_1.jpg'" out
      export_ back; cmp first back/IMG_1.jpg; cmp second 'back/IMG_1 (2).jpg'
      cmp in/same.jpg back/same.jpg; test "$(ls back | wc -l)" = 3
      import --on-conflict replace in/; rm -r back; export_ back
      cmp in/IMG_1.jpg back/IMG_1.jpg; cmp second 'back/IMG_1 (2).jpg'
      # A folder where a file is, and a file where a folder is.
      mkdir -p odd/IMG_1.jpg; noise odd/IMG_1.jpg/x 10; import odd/
      rm -r back; export_ back; cmp odd/IMG_1.jpg/x 'back/IMG_1.jpg (2)/x'
      import odd/ >out; grep -q '; 1 there already' out
      status=0; import --on-conflict replace odd/ 2>out || status=$?; test $status = 1
      grep -q 'a file has' out
      "$PV" check alice --password-file password | grep 'no damage'
      """)
    #expect(said.contains("no damage"))
  }

  @Test func duplicatesAreNamedOrLeftOut() throws {
    let said = try script(
      """
      mkdir in more; noise in/a.jpg 5000; cp in/a.jpg in/b.jpg; noise in/c.jpg 5000
      import in/ >out; cat out
      cp in/c.jpg more/d.jpg; cp in/c.jpg more/e.jpg; noise more/f.jpg 5000; cp more/f.jpg more/g.jpg
      import --skip-duplicates more/ >out; cat out
      export_ back; ls back | tr '\\n' ' '
      """)
    #expect(
      said.contains("duplicate: a.jpg holds the same as b.jpg\n")
        || said.contains("duplicate: b.jpg holds the same as a.jpg\n"), "\(said)")
    #expect(said.contains("left out: more/d.jpg holds the same as c.jpg\n"), "\(said)")
    #expect(said.contains("left out: more/e.jpg holds the same as c.jpg\n"), "\(said)")
    #expect(said.contains("1 file, 5.0 kB; 3 left out as duplicates"), "\(said)")
    #expect(
      said.contains("a.jpg b.jpg c.jpg f.jpg ") || said.contains("a.jpg b.jpg c.jpg g.jpg "),
      "\(said)")
  }

  @Test func sidecarsStayWithTheirPicture() throws {
    try script(
      """
      mkdir in; for f in IMG_1.jpg IMG_1.xmp IMG_1.jpg.xmp IMG_1.mov IMG_2.jpg IMG_3.xmp; do
        noise in/$f 100; done
      import in/
      mkdir other; for f in IMG_1.jpg IMG_1.xmp IMG_1.jpg.xmp IMG_1.mov IMG_4.jpg; do
        noise other/$f 100; done
      cp in/IMG_1.xmp other/IMG_1.xmp
      import other/; import other/ >out; grep -q '0 files, .*; 5 there already' out
      export_ back
      for f in .jpg .xmp .jpg.xmp .mov; do
        cmp "in/IMG_1$f" "back/IMG_1$f"; cmp "other/IMG_1$f" "back/IMG_1 (2)$f"; done
      cmp other/IMG_4.jpg back/IMG_4.jpg
      test "$(ls back | wc -l)" = 11
      """)
  }

  @Test func datesAreThoseOfExiftool() throws {
    try script(
      """
      mkdir in; cd in
      convert -size 64x64 plasma: a.jpg; convert -size 64x64 plasma: b.jpg
      convert -size 64x64 plasma: c.jpg; convert -size 64x64 plasma: d.tiff
      convert -size 64x64 plasma: e.png; heif-enc -q 50 -o h.heic e.png
      exiftool -q -overwrite_original -DateTimeOriginal='2011:01:02 03:04:05' \
        -CreateDate='2012:01:01 00:00:00' -ModifyDate='2013:01:01 00:00:00' a.jpg h.heic
      exiftool -q -overwrite_original -CreateDate='2014:05:06 00:00:00' \
        -ModifyDate='2013:01:01 00:00:00' b.jpg
      exiftool -q -overwrite_original -ModifyDate='2015:07:01 00:00:00' c.jpg
      cp a.jpg z.jpg; exiftool -q -overwrite_original -n -DateTimeOriginal='0000:00:00 00:00:00' \
        -CreateDate= -ModifyDate= z.jpg
      touch a.xmp a.aae; touch -d '2020-12-31 12:00' e.png d.tiff z.jpg
      cp a.jpg x.securedData
      cd ..
      import --by-date in/ >out; cat out
      grep -q '3 files without a date inside' out
      export_ back; cd back
      for f in a.jpg h.heic b.jpg; do
        folder=$(TZ=UTC exiftool -s3 -d %Y/%m -DateTimeOriginal -CreateDate "../in/$f" | head -n 1)
        cmp "../in/$f" "$folder/$f"
      done
      cmp ../in/c.jpg 2015/07/c.jpg; cmp ../in/e.png 2020/12/e.png; cmp ../in/d.tiff 2020/12/d.tiff
      cmp ../in/z.jpg 2020/12/z.jpg
      test -e 2011/01/a.xmp -a -e 2011/01/a.aae
      cd ..; import --by-date in/ >out; grep -q '0 files, .*; 10 there already' out
      """)
  }

  @Test func extensionsComeFromTheContents() throws {
    try script(
      """
      mkdir in; cd in
      convert -size 8x8 plasma: a.jpg; mv a.jpg image-1
      for t in png gif tiff webp; do convert -size 8x8 plasma: a.$t; mv a.$t image-$t; done
      convert -size 64x64 plasma: a.png; heif-enc -q 50 -o a.heic a.png; mv a.heic image-heic; rm a.png
      ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x64 a.mp4; mv a.mp4 image-mp4
      ffmpeg -v error -f lavfi -i testsrc=duration=1:size=64x64 a.mov; mv a.mov image-mov
      convert -size 8x8 plasma: photo.jpeg; convert -size 8x8 plasma: raw.tiff; mv raw.tiff raw.dng
      echo text >notes; cd ..
      import --name-by-content in/; export_ back; ls back | sort >found
      printf '%s\\n' image-1.jpg image-gif.gif image-heic.heic image-mov.mov image-mp4.mp4 \
        image-png.png image-tiff.tiff image-webp.webp notes photo.jpeg raw.dng | sort | diff - found
      """)
  }

  @Test func encryptedSourcesAreDecryptedOnTheirWay() throws {
    try program.write("blob-password", "\(Program.marker) app")
    try program.write("wrong", "another")
    let made = try script(
      """
      mkdir in plain; convert -size 300x300 plasma: plain/image-1.jpg; noise plain/image-2.jpg 400000
      exiftool -q -overwrite_original -DateTimeOriginal='2011:01:02 03:04:05' plain/image-1.jpg
      for n in 1 2; do "$PV" encrypt plain/image-$n.jpg --password-file blob-password \
        -o in/image-$n.securedData; done
      touch -d '2004-05-06' in/image-2.securedData
      """)
    #expect(made.isEmpty, "\(made)")
    // A message that another implementation made.
    let other = try program.python(
      "rncryptor.py", "make", program.path("in/image-3.securedData"), "\(Program.marker) app",
      inputFile: program.path("plain/image-1.jpg"))
    #expect(other.status == 0, "\(other.errors)")
    let said = try script(
      """
      status=0; import --blob-password-file wrong in/ >out 2>&1 || status=$?; test $status = 1
      grep -q 'failed: in/image-1.securedData: wrong blob password' out
      import --blob-password-file blob-password --name-by-content in/ --move
      test ! -e in/image-1.securedData -a -d in
      export_ back
      cmp plain/image-1.jpg back/image-1.jpg; cmp plain/image-2.jpg back/image-2
      cmp plain/image-1.jpg back/image-3.jpg; test "$(ls back | wc -l)" = 3
      mkdir again; "$PV" encrypt plain/image-1.jpg --password-file blob-password \
        -o again/image-1.securedData
      import --blob-password-file blob-password --name-by-content again >out
      import --blob-password-file blob-password --by-date --into dated again/
      export_ --from dated dated; cmp plain/image-1.jpg dated/dated/2011/01/image-1
      # Without the password they are files like others.
      import again/ ; export_ --from image-1.securedData raw; cmp again/* raw/*
      """)
    #expect(!said.contains("damage"), "\(said)")
  }

  @Test func aMoveDeletesWhatIsSafeAndNothingElse() throws {
    let said = try script(
      """
      mkdir -p in/album/inner in/empty in/busy; noise in/album/inner/a.jpg 1000; noise in/b.jpg 200000
      noise in/there.jpg 100; import in/there.jpg
      noise in/clash.jpg 100; noise clash.jpg 100; import clash.jpg
      mkfifo in/busy/fifo; cp -r in copy 2>/dev/null || true
      status=0; import --move --on-conflict skip in >out 2>&1 || status=$?; test $status = 1; cat out
      find in | sort >rest; printf '%s\\n' in in/busy in/busy/fifo | diff - rest
      import --move in/busy/../../copy/album/ ; test -d copy/album -a ! -e copy/album/inner
      "$PV" check alice --password-file password | grep 'no damage'
      """)
    #expect(said.contains("failed: in/busy/fifo: neither file, folder nor link"), "\(said)")
  }

  @Test func aConflictKeepsTheSourceOfAMove() throws {
    try script(
      """
      mkdir in; noise a.jpg 100; import a.jpg; noise in/a.jpg 100; cp in/a.jpg keep
      status=0; import --move --on-conflict skip in/ || status=$?; test $status = 1
      cmp keep in/a.jpg
      import --move --skip-duplicates in/a.jpg; test ! -e in/a.jpg
      cp keep in/other-name.jpg; import --move --skip-duplicates in; test ! -e in
      export_ back; cmp keep 'back/a (2).jpg'; test "$(ls back | wc -l)" = 3
      """)
  }

  @Test func theVaultItselfIsNoSource() throws {
    let said = try script(
      """
      for s in home home/photos . / home/photos/alice home/photos/alice/vault.json; do
        status=0; import "$s" >out 2>&1 || status=$?; test $status = 1; cat out
      done
      ln -s home/photos linked; status=0; import linked/ 2>out || status=$?; test $status = 1
      status=0; export_ home/photos/alice/inside 2>out || status=$?; test $status = 1; cat out
      test ! -e home/photos/alice/inside
      status=0; import --into ../x functions 2>out || status=$?; test $status = 64
      """)
    #expect(said.contains("holds photovault's own files"), "\(said)")
    #expect(said.contains("lies in the vault itself"), "\(said)")
  }

  @Test func whatCanNotBeReadIsSaidAndTheRestIsThere() throws {
    let said = try script(
      """
      mkdir in; noise in/a.jpg 1000; mkfifo in/fifo
      status=0; import in/ missing >out 2>&1 || status=$?; test $status = 1; cat out
      export_ back; cmp in/a.jpg back/a.jpg
      """)
    #expect(said.contains("failed: missing: no such file or directory"), "\(said)")
    #expect(said.contains("failed: in/fifo: neither file, folder nor link"), "\(said)")
    #expect(said.contains("imported into 'alice': 1 file, 1.0 kB; 2 failed"), "\(said)")
  }

  @Test func aDamagedPhotoIsFifteenAndTheRestIsThere() throws {
    let said = try script(
      """
      mkdir in; noise in/good.jpg 500000; noise in/bad.jpg 400000; import in/
      python3 - home/photos/alice <<'END'
      import glob, os, sys
      for path in glob.glob(sys.argv[1] + "/*.securedData"):
          if os.path.getsize(path) < 450000:
              with open(path, "r+b") as file:
                  file.seek(200000); byte = file.read(1); file.seek(200000)
                  file.write(bytes([byte[0] ^ 1]))
      END
      status=0; export_ back >out 2>&1 || status=$?; test $status = 15; cat out
      cmp in/good.jpg back/good.jpg; test "$(ls -A back)" = good.jpg
      """)
    #expect(said.contains("damaged: bad.jpg: its bytes are not those that were written"), "\(said)")
    #expect(said.contains("1 file, 500 kB; 1 damaged"), "\(said)")
  }

  @Test func anExportReplacesNothing() throws {
    try script(
      """
      mkdir in; noise in/a.jpg 1000; noise in/b.jpg 1000; ln in/a.jpg in/c.jpg; ln -s a.jpg in/l
      import in/
      mkdir back; noise back/a.jpg 1000; cp back/a.jpg mine; echo x >back/l
      export_ back; cmp mine back/a.jpg; cmp in/a.jpg 'back/a (2).jpg'; cmp in/b.jpg back/b.jpg
      test "$(readlink 'back/l (2)')" = a.jpg -a "$(cat back/l)" = x
      export_ back >out; grep -q '0 files, .*; 4 there already' out
      status=0; export_ --on-conflict skip back 2>out || status=$?; test $status = 1
      cmp mine back/a.jpg
      export_ --on-conflict replace back; cmp in/a.jpg back/a.jpg
      test "$(find back -name '.*' -type f | wc -l)" = 0
      # A link in the destination leads nowhere.
      mkdir -p elsewhere deep/d; echo 1 >deep/d/x; import deep/; mkdir to; ln -s ../elsewhere to/d
      status=0; export_ to 2>out || status=$?; test $status = 1; test -z "$(ls elsewhere)"
      """)
  }

  @Test func rncryptorOfAnotherHandReadsTheVault() throws {
    try program.write("key", try program.recoveryKey() + "\n")
    let scripts = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
    try script(
      """
      mkdir in; noise in/a.jpg 300000; mkdir in/sub; noise in/sub/b.jpg 5
      import in/
      python3 '\(scripts)/scripts/share/read-vault.py' key home/photos/alice restored
      diff -r in restored
      """)
  }

  @Test func fiveThousandSmallFiles() throws {
    let said = try script(
      """
      python3 - <<'END'
      import os
      for folder in range(50):
          os.makedirs(f"in/{folder}")
          for file in range(100):
              with open(f"in/{folder}/{file}.jpg", "wb") as out:
                  out.write(os.urandom(1 + file * 40))
      END
      import in/ >out; cat out
      export_ back; diff -r in back
      import in/ >out; grep -q '0 files, .*; 5000 there already' out
      """)
    #expect(said.contains("imported into 'alice': 5000 files, "), "\(said)")
  }

  @Test func itShowsHowFarItIsAndStopsInOrder() throws {
    try script("mkdir in; for n in 1 2 3 4 5 6; do noise in/$n.jpg 60000000; done")
    let ended = try program.onTerminal(
      [("password for alice: ", "\(Program.marker) password\r"), (" of 6 files  ", "\u{3}")],
      "import", "alice", "in")
    #expect(ended.status == 130, "\(ended.output)\(ended.errors)")
    #expect(ended.output.contains("stopping after the files under way"), "\(ended.output)")
    #expect(ended.output.contains("imported into 'alice': "))
    #expect(ended.output.contains("run the same command again"))
    try script(
      """
      "$PV" check alice --password-file password | grep 'no damage'
      find home/photos -name '.photovault*' | grep . && exit 1
      import in >out; grep -q '6 files\\|there already' out
      export_ back; diff -r in back/in
      """)
  }

  @Test func wrongOptionsAreUsage() throws {
    for line in [
      "import alice", "import", "export alice", "export alice a b",
      "import alice --on-conflict maybe x", "export alice --on-conflict maybe x",
    ] {
      let result = try program.shell("\"$PV\" \(line)")
      #expect(result.status == 64, "\(line): \(result.errors)")
    }
    #expect(try program.run("import", "nobody", "x").status == 11)
    #expect(try program.run("export", "nobody", "x").status == 11)
    try program.write("wrong", "wrong")
    #expect(
      try program.shell("\"$PV\" import alice functions --password-file wrong").status == 12)
  }

  @Test func typesAreToldByTheirFirstBytes() {
    func kind(_ bytes: [UInt8]) -> ContentType? { bytes.withUnsafeBytes { ContentType($0) } }
    #expect(kind([]) == nil && kind([0]) == nil && kind(Array("RIFF".utf8)) == nil)
    #expect(kind([0xFF, 0xD8, 0xFF, 0xE0]) == .jpg)
    #expect(kind(Array("RIFF....WEBP".utf8)) == .webp)
    #expect(kind([0, 0, 0, 32] + Array("ftypheic".utf8)) == .heic)
    #expect(kind([0, 0, 0, 32] + Array("ftypavif".utf8)) == .avif)
    #expect(kind([0, 0, 0, 32] + Array("ftypqt  ".utf8)) == .mov)
    #expect(kind([0, 0, 0, 32] + Array("ftypisom".utf8)) == .mp4)
    #expect(kind(Array("text and more text".utf8)) == nil)
    #expect(ContentType.tiff.fits("nef") && !ContentType.tiff.fits("jpg"))
  }

  @Test func numbersStandBeforeTheExtension() {
    func numbered(_ name: String, _ number: Int) -> String {
      SplitName(FileName(name)).numbered(number).description
    }
    #expect(numbered("IMG_1.jpg", 1) == "IMG_1.jpg")
    #expect(numbered("IMG_1.jpg", 2) == "IMG_1 (2).jpg")
    #expect(numbered(".hidden", 3) == ".hidden (3)")
    #expect(numbered("none", 10) == "none (10)")
    let long = String(repeating: "ä", count: 125) + ".jpg"
    #expect(numbered(long, 2).utf8.count <= 255)
    #expect(numbered(long, 2).hasSuffix("ä (2).jpg"))
  }
}
