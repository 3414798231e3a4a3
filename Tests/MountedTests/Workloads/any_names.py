#!/usr/bin/env python3
"""Makes files, folders and links with every kind of name in the working directory; prints the limits met."""
import os

names = [bytes([byte]) * 3 for byte in range(1, 256) if byte != ord("/")]
everything = bytes(byte for byte in range(1, 256) if byte != ord("/"))
names += [everything[:200], everything[55:], b"x" * 255, "ä".encode() * 127, b"\xff" * 255]
names += [b"n" * length for length in range(100, 255)]
# What the vault itself uses, and what looks like it.
names += [b"vault.json", b"directory.id", b".photovault-abcdef.tmp", b"a.securedData", b"a.long.securedData",
          b"a.long.name", b"a.long", b"A" * 43 + b".long", b"A" * 43 + b".long.securedData", b".securedData",
          b".fuse_hidden0001", b".Trash-0", b" ", b"...", b"-", b"~", b"a ", b"A", b"a", b"\xc3\x85", b"A\xcc\x8a"]

for number, name in enumerate(names):
    with open(name, "wb") as file:
        file.write(name)
    os.mkdir(b"folder")
    os.rename(b"folder", name[:254] + b"D")
    if number % 5 == 0:
        os.symlink(name, name[:254] + b"L")
        os.rename(name, name[:254] + b"R")
        os.link(name[:254] + b"R", name)

listed = set(os.listdir(b"."))
assert set(names) <= listed, set(names) - listed
for name in names:
    assert open(name, "rb").read() == name, name

for attempt in (lambda: open(b"x" * 256, "wb"), lambda: os.mkdir(b"y" * 256),
                lambda: os.rename(b"a", b"z" * 256), lambda: os.symlink(b"a", b"z" * 256),
                lambda: os.link(b"a", b"z" * 256), lambda: os.stat(b"z" * 256)):
    try:
        attempt()
        print("accepted")
    except OSError as error:
        print(error.strerror)
print(len(listed), os.pathconf(b".", "PC_NAME_MAX"))
