#!/usr/bin/env python3
"""usage: replaced_mount_point.py WAY CALL MOUNT COMMAND...

Runs the command that mounts at MOUNT, with each system call CALL of it and its children delayed (strace), and
puts something else in the directory's place as soon as some process has it open, or while fusermount3
waits. Prints the command's exit code, what it said, and every mount below the folder above.

WAY: link (a link to another empty directory), directory (somebody else's), parent (a link above it)
"""
import os
import pathlib
import re
import subprocess
import sys
import time

way, call, mount = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
folder = mount.parent.parent
DELAY = 1.2


def holds_directory():
    for path in pathlib.Path("/proc").glob("[0-9]*/fd/*"):
        try:
            if os.readlink(path) == str(mount):
                return True
        except OSError:
            pass
    return False


def is_mounting():
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
            if words[0].endswith(b"fusermount3") and os.fsencode(mount) in words:
                time.sleep(DELAY / 2)
                return True
        except OSError:
            pass
    return False


def replace():
    if way == "parent":
        mount.parent.rename(folder / "moved")
        os.symlink("other", mount.parent)
    else:
        mount.rename(folder / "moved")
        if way == "link":
            os.symlink(folder / "other" / mount.name, mount)
        else:
            os.mkdir(mount, 0o777)
            os.chown(mount, 65533, 65533)
            os.chmod(mount, 0o777)


def mounts():
    with open("/proc/self/mountinfo") as table:
        return [line.split()[4] for line in table if line.split()[4].startswith(f"{folder}/")]


strace = ["strace", "-f", "-qq", "-o", str(folder / "trace"), "-e", f"trace={call}",
          "-e", f"inject={call}:delay_enter={int(DELAY * 1e6)}"]
with open(folder / "said", "wb") as output:
    process = subprocess.Popen([*strace, *sys.argv[4:]], stdin=subprocess.DEVNULL, stdout=output, stderr=output)
trigger = is_mounting if call == "chdir" else holds_directory
while process.poll() is None:
    if trigger():
        replace()
        print("replaced")
        break
    time.sleep(0.002)
try:
    # A mount that stands keeps the tracer: its process is a child of nobody by then.
    status = process.wait(25)
except subprocess.TimeoutExpired:
    status = "none"
print("exit", status)
print((folder / "said").read_text(errors="replace"), end="")
for place in mounts():
    print("mounted", place)
if process.poll() is None:
    for place in mounts():
        subprocess.run(["umount", "-l", place], check=False)
    process.wait(20)
