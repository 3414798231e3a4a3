#!/usr/bin/env python3
"""Runs a program on a terminal of its own.

terminal.py SCRIPT PROGRAM [ARGUMENT...]

SCRIPT is JSON: [[TEXT, KEYS], ...]. Waits until the terminal shows TEXT, then types KEYS. Prints
what the terminal showed, then whether it echoes as before; ends as the program did.
"""
import json
import os
import pty
import select
import signal
import sys
import termios
import time


def main():
    steps = json.loads(sys.argv[1])
    process, terminal = pty.fork()
    if process == 0:
        # As the threads of some parents do.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGQUIT})
        os.execv(sys.argv[2], sys.argv[2:])
    before = termios.tcgetattr(terminal)
    shown = b""
    seen = 0
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        ready, _, _ = select.select([terminal], [], [], 0.05)
        if ready:
            try:
                piece = os.read(terminal, 4096)
            except OSError:  # EIO: the program ended
                break
            if not piece:
                break
            shown += piece
        if steps and steps[0][0].encode() in shown[seen:]:
            text, keys = steps.pop(0)
            seen = shown.index(text.encode(), seen) + len(text.encode())
            echoes = bool(termios.tcgetattr(terminal)[3] & termios.ECHO)
            shown += b"{echo on}" if echoes else b"{echo off}"
            seen = len(shown)
            os.write(terminal, keys.encode())
    else:
        os.kill(process, 9)
    try:
        same = termios.tcgetattr(terminal)[3] == before[3]
    except termios.error:
        same = True
    _, status = os.waitpid(process, 0)
    sys.stdout.buffer.write(shown)
    sys.stdout.buffer.write(b"{as before}" if same else b"{changed}")
    sys.stdout.flush()
    if steps:
        sys.exit("never shown: " + steps[0][0])
    code = os.waitstatus_to_exitcode(status)
    sys.exit(code if code >= 0 else 128 - code)


main()
