"""Writes zeros into a new or emptied file, says "ready", and after a pause the word "end".

usage: writer.py FILE BYTES SECONDS
"""

import sys
import time

name, count, pause = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
with open(name, "wb", buffering=0) as file:
    while count > 0:
        count -= file.write(bytes(min(count, 1 << 20)))
    print("ready", flush=True)
    time.sleep(pause)
    file.write(b"end")
