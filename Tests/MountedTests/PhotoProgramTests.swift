import Testing

extension MountedTests {
  /// Programs that read and rewrite photos and films, each the way it is used.
  @Suite struct PhotoProgramTests {
    @Test("exiftool rewrites a photo beside it and renames", arguments: Names.allCases)
    func exiftool(names: Names) throws {
      try MountedVault.withMounted(names: names) { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS"/photo.* .
          exiftool -q -overwrite_original -Artist=Someone -Rating=4 photo.jpg photo.tiff photo.png
          exiftool -q -Keywords=lake photo.jpg
          exiftool -q -overwrite_original '-FileName<DateTimeOriginal' -d '%Y-%m-%d.%%e' photo.jpg
          exiftool -s -s -s -Artist -Rating -Keywords 2021-06-01.jpg
          """)
      }
    }

    @Test("exiftool rewrites a photo in place, keeping its inode")
    func exiftoolInPlace() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/photo.jpg" .
          setfattr -n user.note -v kept photo.jpg
          ln photo.jpg 'second name.jpg'
          before=$(stat -c %i photo.jpg)
          exiftool -q -overwrite_original_in_place -P -Artist=Someone photo.jpg
          test "$(stat -c %i photo.jpg)" = "$before"
          exiftool -s -s -s -Artist 'second name.jpg'
          """)
      }
    }

    @Test("jpegtran rotates a photo onto itself, by redirection and by -outfile")
    func jpegtran() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/photo.jpg" a.jpg; cp a.jpg b.jpg; cp a.jpg c.jpg
          jpegtran -copy all -rotate 90 -trim a.jpg >.a.jpg.tmp && mv .a.jpg.tmp a.jpg
          jpegtran -copy all -rotate 90 -trim -outfile b.jpg b.jpg
          cmp a.jpg b.jpg
          jpegtran -copy all -optimize c.jpg | cat >d.jpg
          jpegtran -copy all -progressive <c.jpg >e.jpg
          """)
      }
    }

    @Test("ImageMagick converts and mogrifies in the folder")
    func imageMagick() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/photo.jpg" "$PHOTOS/photo.png" .
          convert photo.jpg -resize 200x +set date:create +set date:modify -strip small.jpg
          mogrify -rotate 90 -strip small.jpg
          identify -format '%f %wx%h %m\\n' *.jpg photo.png
          """)
      }
    }

    @Test("heif-enc writes and heif-convert reads a HEIC photo")
    func heif() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/photo.heic" .
          heif-convert photo.heic back.png >&2
          convert back.png -resize 25% -strip -define png:exclude-chunks=date,time small.png
          heif-enc -q 50 -o small.heic small.png >&2
          heif-info small.heic | grep -c image
          """)
      }
    }

    @Test("ffmpeg moves a film's index to the front, which rereads and rewrites its own output")
    func ffmpegFastStart() throws {
      try MountedVault.withMounted { vault in
        try vault.expectLikeAnOrdinaryFolder(
          """
          cp "$PHOTOS/film.mp4" .
          ffmpeg -v error -i film.mp4 -c copy -bitexact -movflags +faststart fast.mp4 </dev/null
          ffmpeg -v error -ss 1 -i fast.mp4 -frames:v 1 -bitexact still.png </dev/null
          ffmpeg -v error -i film.mp4 -c copy -bitexact -f segment -segment_time 1 part%d.mp4 </dev/null
          """)
      }
    }
  }
}
