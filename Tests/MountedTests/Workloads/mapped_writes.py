#!/usr/bin/env python3
"""Writes to photo.jpg in the working directory through mappings; prints what it reads back."""
import hashlib
import mmap
import os


def digest(data):
    return hashlib.sha256(data).hexdigest()


def show(what):
    with open("photo.jpg", "rb") as file:
        print(what, digest(file.read()))


file = os.open("photo.jpg", os.O_RDWR)
size = os.fstat(file).st_size
with mmap.mmap(file, size) as mapping:  # shared
    mapping[1000:1016] = b"0123456789abcdef"
    mapping[size - 3:size] = b"end"
    mapping.flush()
    show("after msync:")
    mapping[5000:5004] = b"late"
    # read(2) sees what the mapping wrote: one page cache.
    print(os.pread(file, 4, 5000))
    os.pwrite(file, b"seen", 6000)
    print(mapping[6000:6004])
show("after munmap:")
os.close(file)
show("after close:")

# A mapping outlives the descriptor: its writes come after the last close.
file = os.open("photo.jpg", os.O_RDWR)
mapping = mmap.mmap(file, size)
os.close(file)
mapping[2000:2004] = b"more"
mapping.close()
show("after a mapping without a descriptor:")

file = os.open("photo.jpg", os.O_RDONLY)
with mmap.mmap(file, size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE) as private:
    private[0:4] = b"mine"
    print(private[0:4], os.pread(file, 4, 0))
os.close(file)
show("after a private mapping:")

# A new file, grown and filled through a mapping only.
file = os.open("mapped", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
os.ftruncate(file, 300_000)
with mmap.mmap(file, 300_000) as mapping:
    for start in range(0, 300_000, 10_000):
        mapping[start:start + 5] = b"%05d" % (start // 10)
os.close(file)
print(digest(open("mapped", "rb").read()))
