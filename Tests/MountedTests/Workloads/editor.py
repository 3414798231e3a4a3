"""Overwrites files with the letter E without emptying them, says "edited" and keeps them open for a minute.

usage: editor.py FOLDER NAME...
"""

import os
import sys
import time

held = []
for name in sys.argv[2:]:
    file = os.open(os.path.join(sys.argv[1], name), os.O_RDWR)
    size = os.fstat(file).st_size
    for offset in range(0, size, 1 << 20):
        os.pwrite(file, b"E" * min(1 << 20, size - offset), offset)
    held.append(file)
print("edited", flush=True)
time.sleep(60)
