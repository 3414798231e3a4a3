#!/usr/bin/env python3
"""usage: permissions.py DIRECTORY

Tries what modes allow and forbid their owner, in a new folder in DIRECTORY, and prints each answer. A line is the
same on every POSIX file system.
"""
import errno
import os
import pathlib
import subprocess
import sys
import tempfile
import time

top = pathlib.Path(tempfile.mkdtemp(dir=sys.argv[1]))
FILE_MODES = [0o000, 0o077, 0o200, 0o400, 0o477, 0o500, 0o600, 0o644, 0o700]
DIRECTORY_MODES = [0o000, 0o077, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o700]
SOMEBODY = 65533


def tell(what, attempt):
    try:
        result = attempt()
        print(what, "ok" if result is None else result)
    except OSError as error:
        print(what, errno.errorcode[error.errno])


def opened(path, flags):
    os.close(os.open(path, flags, 0o644))


def script(path, mode):
    path.write_text("#!/bin/sh\necho ran\n")
    path.chmod(mode)
    return path


def run(path):
    subprocess.run([path], check=True, stdout=subprocess.DEVNULL)


def try_file(mode):
    path = script(top / f"file {mode:o}", 0o600)
    os.setxattr(path, "user.kept", b"1")
    path.chmod(mode)
    name = f"file {mode:04o}"
    for flags in ["RDONLY", "WRONLY", "RDWR"]:
        for more in ["", "APPEND", "TRUNC"]:
            # A truncated script is one that runs and says nothing.
            number = getattr(os, f"O_{flags}") | (getattr(os, f"O_{more}") if more else 0)
            tell(f"{name} open {flags} {more}", lambda: opened(path, number))
    for access in ["F_OK", "R_OK", "W_OK", "X_OK"]:
        tell(f"{name} {access}", lambda: os.access(path, getattr(os, access)))
    tell(f"{name} read", lambda: path.read_bytes() and None)
    tell(f"{name} truncate", lambda: os.truncate(path, 10))
    tell(f"{name} getxattr", lambda: os.getxattr(path, "user.kept"))
    tell(f"{name} setxattr", lambda: os.setxattr(path, "user.new", b"2"))
    tell(f"{name} removexattr", lambda: os.removexattr(path, "user.kept"))
    tell(f"{name} utime", lambda: os.utime(path, (1e9, 1e9)))
    tell(f"{name} touch", lambda: os.utime(path))
    tell(f"{name} create", lambda: opened(path, os.O_CREAT | os.O_WRONLY))
    if mode & 0o100 or not mode & 0o011:
        # Where one user gets in only, the kernel lets him run what anybody may.
        tell(f"{name} run", lambda: run(script(top / f"run {mode:o}", mode)))
    tell(f"{name} mode", lambda: oct(path.stat().st_mode))


def try_directory(mode, folder):
    name = f"directory {mode:04o}"
    tell(f"{name} list", lambda: sorted(os.listdir(folder)))
    tell(f"{name} chdir", lambda: os.chdir(folder))
    os.chdir("/")
    for access in ["F_OK", "R_OK", "W_OK", "X_OK"]:
        tell(f"{name} {access}", lambda: os.access(folder, getattr(os, access)))
    tell(f"{name} stat", lambda: (folder / "photo").stat().st_size)
    tell(f"{name} read", lambda: (folder / "photo").read_text())
    tell(f"{name} chmod", lambda: (folder / "photo").chmod(0o640))
    tell(f"{name} open by O_CREAT", lambda: opened(folder / "photo", os.O_CREAT | os.O_WRONLY))
    tell(f"{name} create", lambda: opened(folder / "new", os.O_CREAT | os.O_WRONLY))
    tell(f"{name} mkdir", lambda: os.mkdir(folder / "new directory"))
    tell(f"{name} mkfifo", lambda: os.mkfifo(folder / "fifo"))
    tell(f"{name} mknod", lambda: os.mknod(folder / "node"))
    tell(f"{name} symlink", lambda: os.symlink("photo", folder / "link"))
    tell(f"{name} link", lambda: os.link(top / "source", folder / "other name"))
    tell(f"{name} rename in", lambda: os.rename(folder / "photo", folder / "renamed"))
    tell(f"{name} rename to", lambda: os.rename(top / f"to {mode:o}", folder / "moved"))
    tell(f"{name} rename over", lambda: os.rename(top / f"over {mode:o}", folder / "target"))
    tell(f"{name} rename from", lambda: os.rename(folder / "target", top / "out of it"))
    tell(f"{name} setxattr", lambda: os.setxattr(folder, "user.x", b"1"))
    tell(f"{name} getxattr", lambda: os.getxattr(folder, "user.x"))
    tell(f"{name} move it", lambda: os.rename(folder, top / "there" / folder.name))
    if (top / "there" / folder.name).exists():
        folder = top / "there" / folder.name
    tell(f"{name} unlink", lambda: os.unlink(folder / "victim"))
    tell(f"{name} rmdir", lambda: os.rmdir(folder / "empty"))
    tell(f"{name} mode", lambda: oct(folder.stat().st_mode))


def try_owner(path):
    """Of a stored file, or of one that is not on the disk yet."""
    name = path.name
    tell(f"{name} own user", lambda: os.chown(path, os.getuid(), -1))
    tell(f"{name} another user", lambda: os.chown(path, SOMEBODY, -1))
    tell(f"{name} own group", lambda: os.chown(path, -1, os.getgid()))
    tell(f"{name} another group", lambda: os.chown(path, -1, SOMEBODY))
    tell(f"{name} set-user-id", lambda: path.chmod(0o6755))
    tell(f"{name} mode", lambda: oct(path.stat().st_mode))
    tell(f"{name} no right to empty it", lambda: path.chmod(0o4555))
    tell(f"{name} truncate", lambda: os.truncate(path, 1))
    tell(f"{name} open", lambda: opened(path, os.O_RDONLY | os.O_TRUNC))
    tell(f"{name} mode", lambda: oct(path.stat().st_mode))
    tell(f"{name} is its owner's", lambda: path.stat().st_uid == os.getuid())


(top / "source").write_text("source")
(top / "there").mkdir()
folders = []
for mode in DIRECTORY_MODES:
    folder = top / f"directory {mode:o}"
    folder.mkdir()
    (folder / "empty").mkdir()
    for name in ["photo", "target", "victim"]:
        (folder / name).write_text(name)
    (top / f"to {mode:o}").write_text("to")
    (top / f"over {mode:o}").write_text("over")
    folder.chmod(mode)
    folders.append(folder)
for mode in FILE_MODES:
    try_file(mode)
# What the kernel knows of the folders' entries may be a second old.
time.sleep(1.3)
for mode, folder in zip(DIRECTORY_MODES, folders):
    try_directory(mode, folder)
stored = top / "stored"
stored.write_text("stored")
try_owner(stored)
with open(top / "open", "w+") as file:
    file.write("open")
    try_owner(top / "open")
    os.fchmod(file.fileno(), 0o444)
    tell("open ftruncate", lambda: os.ftruncate(file.fileno(), 2))
    tell("open write", lambda: os.pwrite(file.fileno(), b"yz", 2) and None)
tell("open content", lambda: (top / "open").read_bytes())
