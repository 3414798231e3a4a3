#!/usr/bin/env python3
"""Writes versions of files that tell whether they are whole, until the file system goes away; or checks them.

usage: versions.py write FOLDER CLOSED SEED     each version whose close succeeded is noted in CLOSED
       versions.py check FOLDER CLOSED

CLOSED is there as soon as the writer is in the folder. What a lock kept of a file that was being written has
"(interrupted" in its name.
"""
import errno
import hashlib
import os
import random
import sys

NAMES = 12
HEADER_SIZE = 64


def content(name, version, size):
    header = f"{name} {version} {size}".encode().ljust(HEADER_SIZE)
    return header + hashlib.shake_256(header).digest(size)


def put(path, data, flags, synchronize):
    file = os.open(path, os.O_WRONLY | flags, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(file, view[:random.choice([4096, 50_000, 131_072])]):]
        if synchronize:
            os.fsync(file)
    finally:
        os.close(file)


def write_one(name, version):
    """One new version of a file, in one of the ways that programs save."""
    data = content(name, version, random.choice([0, 1, 1000, 70_000, 1_500_000]))
    path, aside = name, f".{name}.new"
    way = random.randrange(5)
    if way <= 1:
        put(path, data, os.O_CREAT | os.O_TRUNC, synchronize=way == 0)
    elif way <= 3:
        put(aside, data, os.O_CREAT | os.O_TRUNC, synchronize=way == 2)
        os.rename(aside, path)
    else:  # gone, then new
        note(name, 0)
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        put(path, data, os.O_CREAT | os.O_EXCL, synchronize=False)


def note(name, version):
    with open(closed_path, "a") as closed:
        closed.write(f"{name} {version}\n")


def write(seed):
    # From inside the mount: its bare mount point is another directory.
    os.chdir(folder)
    open(closed_path, "a").close()  # who kills the daemon waits for this
    random.seed(seed)
    version = seed * 1_000_000
    try:
        while True:
            version += 1
            name = f"photo{random.randrange(NAMES)}"
            write_one(name, version)
            note(name, version)
    except OSError as error:
        if error.errno not in (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENOENT, errno.ENOKEY):
            raise


def check():
    closed = {}
    with open(closed_path) as lines:
        for line in lines:
            name, version = line.split()
            closed[name] = int(version)
    found = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        if "(interrupted " in name:
            if len(data) >= HEADER_SIZE:
                wanted, version, size = data[:HEADER_SIZE].split()
                assert content(wanted.decode(), int(version), int(size)).startswith(data), name
            continue
        wanted, version, size = data[:HEADER_SIZE].split()
        assert wanted.decode() == name.removeprefix(".").removesuffix(".new"), (name, data[:HEADER_SIZE])
        assert data == content(wanted.decode(), int(version), int(size)), (name, len(data), data[:HEADER_SIZE])
        found[name] = int(version)
    for name, version in closed.items():
        assert found.get(name, 0) >= version, (name, version, found.get(name))


action, folder, closed_path = sys.argv[1:4]
if action == "write":
    write(int(sys.argv[4]))
else:
    check()
