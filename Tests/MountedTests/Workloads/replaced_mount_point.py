#!/usr/bin/env python3
"""usage: replaced_mount_point.py WAY CALL MOUNT MEANWHILE COMMAND...

Runs the command that mounts at MOUNT, with each system call CALL of it and its children delayed (strace), and
puts something else in the directory's place as soon as some process has it open, or while fusermount3
waits; just before that, the shell command MEANWHILE is run. Prints the command's exit code, what it said, and
every mount below the folder above.

WAY: link (a link to another empty directory), directory (somebody else's), parent (a link above it)
"""
import os
import pathlib
import subprocess
import sys
import time

way, call, mount, meanwhile = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4]
folder = mount.parent.parent
DELAY = 1.2 if not meanwhile else 4
# Each directory that a program is looked for in costs a delay.
ENVIRONMENT = os.environ | {"PATH": "/usr/bin"}


def any_process(is_wanted):
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and is_wanted(process):
                return True
        except OSError:
            pass  # it has ended
    return False


def holds_directory(process):
    return any(os.readlink(number) == str(mount) for number in (process / "fd").iterdir())


def is_mounting(process):
    words = (process / "cmdline").read_bytes().split(b"\0")
    return words[0].endswith(b"fusermount3") and os.fsencode(mount) in words


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


def tell_what_waits():
    """Why it has not ended: the processes below the tracer, and the end of its trace."""
    table = subprocess.run(["ps", "-ww", "-e", "-o", "ppid,pid,stat,wchan:32,etimes,args"], check=False,
                           stdout=subprocess.PIPE, text=True).stdout
    print(*(line for line in table.splitlines() if str(folder) in line or "fusermount3" in line), sep="\n")
    print(*(folder / "trace").read_text(errors="replace").splitlines()[-20:], sep="\n")


strace = ["strace", "-f", "-qq", "-o", str(folder / "trace"), "-e", f"trace={call}",
          "-e", f"inject={call}:delay_enter={int(DELAY * 1e6)}"]
with open(folder / "said", "wb") as output:
    process = subprocess.Popen([*strace, *sys.argv[5:]], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                               env=ENVIRONMENT)
trigger = is_mounting if call == "chdir" else holds_directory
while process.poll() is None:
    if any_process(trigger):
        if meanwhile:
            subprocess.run(["bash", "-ec", meanwhile], check=True)
        elif call == "chdir":
            time.sleep(DELAY / 2)
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
    tell_what_waits()
    for place in mounts():
        subprocess.run(["umount", "-l", place], check=False)
    process.wait(20)
