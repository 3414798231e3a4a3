"""Photos as a camera leaves them, drawn by ImageMagick: landscapes, each another, with what a camera writes into them."""
import concurrent.futures
import math
import os
import pathlib
import random

import soak

SKIES = ["#20304f-#f2a65a", "#3b6ea5-#f7e7ce", "#5b3a6e-#f4b6a6", "#0f2a4a-#7fb7d6", "#7ea6c9-#fdf3d8", "#43244e-#f08a5d"]
LAND = ["#2f4858", "#33658a", "#55828b", "#364f3f", "#4f6d4a", "#5d4a66", "#784f41", "#27323f"]
# Lossless, so that many photos come of few.
VARIANTS = [[], ["-flip", "horizontal"], ["-crop", "1600x1066+160+96"], ["-rotate", "90"], ["-grayscale"]]


def ridge(chance, width, base, height):
    """The outline of hills, as points."""
    waves = [(chance.uniform(0.3, 4), chance.uniform(0, 6.3), chance.uniform(0.1, 1)) for _ in range(7)]
    return [(x, base - height * sum(size / (1 + rate) * math.sin(rate * 6.3 * x / width + shift)
                                    for rate, shift, size in waves)) for x in range(0, width + 1, width // 60)]


def draw(path, number, width=2000, height=1333, noise="0.35"):
    """One landscape into `path`; the same for the same number."""
    chance = random.Random(number)
    lines = [f"fill '#fff4d6' circle {(x := chance.randrange(width))},{(y := height * chance.uniform(0.2, 0.5)):.0f} "
             f"{x + width // 28},{y:.0f}"]
    layers = chance.randrange(3, 6)
    for layer in range(layers):
        points = ridge(chance, width, height * (0.55 + 0.4 * layer / layers), height * 0.22)
        outline = " ".join(f"{x:.0f},{y:.0f}" for x, y in [(0, height), *points, (width, height)])
        lines.append(f"fill '{LAND[(number + layer * 3) % len(LAND)]}' polygon {outline}")
    soak.run("convert", "-size", f"{width}x{height}", f"gradient:{SKIES[number % len(SKIES)]}", "-draw", "\n".join(lines),
             "-seed", number, "-attenuate", noise, "+noise", "Gaussian", "-quality", chance.randrange(91, 96), f"JPEG:{path}")


def make(folder, count):
    """`count` photos of one to four megabytes in `folder`, with EXIF, and one of each other kind."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    bases = -(-count // len(VARIANTS))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda number: draw(folder / f"base{number}", number), range(bases)))
    names = []
    for number in range(count):
        names.append(f"IMG_{number + 1:04}.JPG")
        with open(folder / names[-1], "wb") as photo:
            soak.run("jpegtran", *VARIANTS[number // bases], folder / f"base{number % bases}", stdout=photo, quiet=False)
    for number in range(bases):
        (folder / f"base{number}").unlink()
    # One exiftool for all: a line of the table for each photo.
    table = folder / "table.csv"
    table.write_text("SourceFile,DateTimeOriginal,Make,Model,ISO,GPSLatitude,GPSLatitudeRef\n" + "".join(
        f"{folder / name},2024:{1 + number % 12:02}:{1 + number % 28:02} 12:{number % 60:02}:00,Maker,Camera,"
        f"{100 + number},47.5,N\n" for number, name in enumerate(names)))
    soak.run("exiftool", "-q", "-overwrite_original", "-P", f"-csv={table}", folder)
    table.unlink()
    soak.run("convert", folder / names[0], "-resize", "1200", folder / "Painting.png")
    soak.run("heif-enc", "-o", folder / "IMG_2000.HEIC", folder / names[1])
    soak.run("ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=8", "-c:v", "mpeg4",
             "-b:v", "3M", folder / "MOV_3000.MP4")
    return names
