#!/usr/bin/env python3
"""usage: intruder.py PID       tries to get at a process as this user; prints what worked, one word a line"""
import ctypes
import os
import re
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
SYSCALLS = {"x86_64": (310, 434, 438), "aarch64": (270, 434, 438)}  # process_vm_readv, pidfd_open, pidfd_getfd
READV, PIDFD_OPEN, PIDFD_GETFD = SYSCALLS[os.uname().machine]
ATTACH, SEIZE = 16, 0x4206  # sys/ptrace.h
process = int(sys.argv[1])


def attempt(name, body):
    try:
        if body():
            print(name)
    except OSError:
        pass


def content(name):
    def read():
        with open(f"/proc/{process}/{name}", "rb", buffering=0) as file:
            return len(file.read(64))
    return read


def mapped():
    with open(f"/proc/{os.getpid()}/maps") as file:
        own = int(re.match("[0-9a-f]+", file.read())[0], 16)
    try:
        with open(f"/proc/{process}/maps") as file:
            return int(re.match("[0-9a-f]+", file.read())[0], 16)
    except (OSError, TypeError):
        return own


def memory():
    with open(f"/proc/{process}/mem", "rb", buffering=0) as file:
        file.seek(mapped())
        return file.read(1)


def readv():
    buffer = ctypes.create_string_buffer(1)
    local = struct.pack("QQ", ctypes.addressof(buffer), 1)
    remote = struct.pack("QQ", mapped(), 1)
    return LIBC.syscall(READV, process, local, 1, remote, 1, 0) == 1


def traced(request):
    def trace():
        return LIBC.ptrace(ctypes.c_long(request), ctypes.c_long(process), None, None) == 0
    return trace


def stolen():
    handle = LIBC.syscall(PIDFD_OPEN, process, 0)
    return handle >= 0 and any(LIBC.syscall(PIDFD_GETFD, handle, number, 0) >= 0 for number in range(30))


for file in ("environ", "maps", "smaps", "auxv", "pagemap", "syscall", "stack", "io"):
    attempt(file, content(file))
attempt("fd", lambda: os.listdir(f"/proc/{process}/fd"))
attempt("map_files", lambda: os.listdir(f"/proc/{process}/map_files"))
for link in ("cwd", "root", "exe"):
    attempt(link, lambda link=link: os.readlink(f"/proc/{process}/{link}"))
attempt("mem", memory)
attempt("process_vm_readv", readv)
attempt("pidfd_getfd", stolen)
attempt("ptrace-seize", traced(SEIZE))
attempt("ptrace-attach", traced(ATTACH))
