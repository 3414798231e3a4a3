"""Holds files of a mount in every way a program can, runs a command that locks it, and looks again.

usage: holder.py MOUNT COMMAND...
"""

import mmap
import os
import subprocess
import sys

mount, command = sys.argv[1], sys.argv[2:]
PHOTO = bytes([0xFF, 0xD8])

descriptor = os.open(f"{mount}/photo.jpg", os.O_RDONLY)
shared = mmap.mmap(descriptor, 0, mmap.MAP_SHARED, mmap.PROT_READ)
private = mmap.mmap(descriptor, 0, mmap.MAP_PRIVATE, mmap.PROT_READ)
writable = os.open(f"{mount}/mapped.jpg", os.O_RDWR)
changed = mmap.mmap(writable, 0)
directory = os.open(f"{mount}/sub", os.O_RDONLY)
os.chdir(f"{mount}/sub")
assert os.pread(descriptor, 2, 0) == shared[:2] == private[:2] == PHOTO
assert os.listdir(".") == os.listdir(directory) == ["photo.jpg"]
changed[:6] = b"MAPPED"

subprocess.run(command, check=True)


def fails(what, action):
    """In a process of its own: a mapping that is cut off ends it with SIGBUS."""
    child = os.fork()
    if child == 0:
        try:
            action()
        except OSError:
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status == 0:
        raise SystemExit(f"{what} still works")


fails("a descriptor", lambda: os.pread(descriptor, 2, 0))
fails("fstat", lambda: os.fstat(descriptor))
fails("a shared mapping", lambda: shared[:2])
fails("a private mapping", lambda: private[:2])
fails("a mapping that was written to", lambda: changed[:2])
fails("listing the working directory", lambda: os.listdir("."))
fails("listing an open directory", lambda: os.listdir(directory))
fails("opening beneath the working directory", lambda: os.open("photo.jpg", os.O_RDONLY))
fails("opening beneath an open directory", lambda: os.open("photo.jpg", os.O_RDONLY, dir_fd=directory))
fails("stat beneath the working directory", lambda: os.stat("photo.jpg"))
fails("making a file", lambda: os.open("new", os.O_CREAT | os.O_WRONLY))
