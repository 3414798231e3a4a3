#!/usr/bin/env python3
"""Prints one line for each entry of a folder, with all that a copy must keep: to be compared with diff.

usage: manifest.py [--no-times] FOLDER
"""
import hashlib
import os
import stat
import sys

times = "--no-times" not in sys.argv
top = os.fsencode(sys.argv[-1])
first_names = {}  # (device, inode) -> the first name seen: tells hard links


def digest(path):
    result = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            result.update(piece)
    return result.hexdigest()[:24]


def describe(path):
    status = os.lstat(path)
    kind = stat.S_IFMT(status.st_mode)
    facts = [oct(status.st_mode), f"{status.st_uid}:{status.st_gid}"]
    if times:
        facts.append(str(status.st_mtime_ns))
    if kind != stat.S_IFDIR:
        first = first_names.setdefault((status.st_dev, status.st_ino), path)
        facts += [str(status.st_size), f"links={status.st_nlink}", repr(os.path.relpath(first, top))]
    if kind == stat.S_IFLNK:
        facts.append(repr(os.readlink(path)))
    else:
        facts += [f"{name}={os.getxattr(path, name)!r}" for name in sorted(os.listxattr(path))
                  if name.startswith("user.")]
    if kind == stat.S_IFREG:
        facts.append(digest(path))
    return " ".join([repr(os.path.relpath(path, top)), *facts])


paths = [top]
for folder, folders, files in os.walk(top):
    folders.sort()
    paths += [os.path.join(folder, name) for name in sorted(folders + files)]
for path in sorted(paths):
    print(describe(path))
