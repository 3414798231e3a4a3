"""photo.py FILE SEED: writes a PNG picture, some megabytes of noise over a gradient."""
import random
import struct
import sys
import zlib

path, seed = sys.argv[1:]
noise = random.Random(int(seed))
width, height = 1200, 800
rows = b"".join(
    b"\0" + bytes((x * 255 // width + y + n) & 255 for x, n in enumerate(noise.randbytes(3 * width)))
    for y in range(height))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


with open(path, "wb") as file:
    file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
               + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b""))
