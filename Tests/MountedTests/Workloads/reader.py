"""Reads a photo by descriptor and by mapping until both fail; says "reads" at first. 20 s at most.

usage: reader.py PHOTO
"""

import mmap
import os
import sys
import time

descriptor = os.open(sys.argv[1], os.O_RDONLY)
mapping = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
assert os.pread(descriptor, 2, 0) == mapping[:2]
print("reads", flush=True)
for _ in range(200):
    time.sleep(0.1)
    try:
        os.pread(descriptor, 2, 0)
    except OSError:
        child = os.fork()
        if child == 0:
            # SIGBUS is what is expected.
            mapping[:2]
            os._exit(0)
        raise SystemExit(1 if os.waitpid(child, 0)[1] == 0 else 0)
raise SystemExit("the photo can still be read")
