#!/usr/bin/env python3
"""usage: unreadable.py MOUNT

Photos whose mode forbids their owner to read them are renamed, linked, replaced and written; then they are made
readable and compared, attributes too.
"""
import ctypes
import os
import pathlib
import sys

top = pathlib.Path(sys.argv[1])
ATTRIBUTE = "user.comment"
RENAME_EXCHANGE, AT_FDCWD = 2, -100
expected = {}


def photo(name, mode, content="a photo"):
    path = top / name
    path.write_text(content)
    os.setxattr(path, ATTRIBUTE, name.encode())
    path.chmod(mode)
    expected[name] = (content, name)
    return path


os.rename(photo("renamed", 0), top / "new name")
expected["new name"] = expected.pop("renamed")
photo("replaced", 0)
os.rename(photo("replacing", 0o600, "another"), top / "replaced")
expected["replaced"] = expected.pop("replacing")
photo("readable", 0o600)
os.rename(photo("over it", 0, "unreadable"), top / "readable")
expected["readable"] = expected.pop("over it")
os.link(photo("first name", 0), top / "second name")
os.unlink(top / "first name")
expected["second name"] = expected.pop("first name")

one, other = photo("one", 0), photo("other", 0, "the other")
if ctypes.CDLL(None, use_errno=True).renameat2(
    AT_FDCWD, os.fsencode(one), AT_FDCWD, os.fsencode(other), RENAME_EXCHANGE
):
    raise OSError(ctypes.get_errno(), "renameat2")
expected["one"], expected["other"] = expected["other"], expected["one"]

file = os.open(photo("open", 0o600), os.O_RDWR)
os.chmod(top / "open", 0)
os.pwrite(file, b"A PHOTO", 0)
os.fsync(file)
os.close(file)
expected["open"] = ("A PHOTO", "open")
with open(photo("write-only", 0o200), "a") as file:
    file.write(" and more")
expected["write-only"] = ("a photo and more", "write-only")
os.truncate(photo("cut", 0o200), 3)
expected["cut"] = ("a p", "cut")
os.truncate(photo("emptied", 0o200), 0)
os.truncate(top / "emptied", 2)
expected["emptied"] = ("\0\0", "emptied")
file = os.open(photo("removed", 0o600), os.O_RDWR)
os.chmod(top / "removed", 0)
os.unlink(top / "removed")
os.fchmod(file, 0o600)
assert os.getxattr(file, ATTRIBUTE) == b"removed"
os.close(file)
del expected["removed"]

assert sorted(os.listdir(top)) == sorted(expected), os.listdir(top)
for name, (content, attribute) in expected.items():
    (top / name).chmod(0o600)
    found = ((top / name).read_text(), os.getxattr(top / name, ATTRIBUTE).decode())
    assert found == (content, attribute), (name, found)
