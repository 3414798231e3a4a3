/// Real pictures and a film, made once for each run of the tests.
enum Photos {
  /// A folder with photo.jpg (with Exif), photo.heic, photo.png, photo.tiff and film.mp4.
  static let folder = Result<String, any Error> {
    let folder = try Scratch.makeFolder()
    try Command.shell(
      """
      cd "$OUT"
      convert -seed 7 -size 1500x1000 plasma:fractal -quality 92 photo.jpg
      exiftool -q -overwrite_original -Make=Maker -Model=Model -DateTimeOriginal='2021:06:01 12:00:00' \
        -GPSLatitude=52.5 -GPSLatitudeRef=N -XMP-dc:Title='A day' photo.jpg
      convert photo.jpg photo.png
      convert photo.jpg -compress lzw photo.tiff
      convert photo.jpg -resize 50% small.png
      heif-enc -q 60 -o photo.heic small.png
      rm small.png
      ffmpeg -v error -f lavfi -i testsrc=duration=3:size=640x360:rate=25 -f lavfi \
        -i sine=duration=3 -c:v mpeg4 -q:v 2 -c:a aac film.mp4
      chmod 644 *
      """, environment: ["OUT": folder], limit: 120)
    return folder
  }
}
