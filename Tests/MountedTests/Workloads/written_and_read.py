#!/usr/bin/env python3
"""usage: written_and_read.py FOLDER

New files are written by one descriptor and read by others meanwhile: by read(2), mappings, and anew by name. What
was written before a read began is what it gives, also for who had the file open all the time.
"""
import mmap
import os
import pathlib
import random
import sys
import threading

folder = pathlib.Path(sys.argv[1])
draw = random.Random(1)


def in_turns(path):
    """A write, then a look by every way."""
    expected = bytearray()
    writer = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    reader = os.open(path, os.O_RDONLY)
    editor = os.open(path, os.O_RDWR)
    mapping = None
    for step in range(120):
        data = draw.randbytes(draw.choice([1, 100, 4096, 5000, 70_000]))
        kind = draw.choice(["append", "append", "anywhere", "beyond", "edit", "cut"])
        start = {"append": len(expected), "beyond": len(expected) + draw.randrange(10_000)}.get(
            kind, draw.randrange(len(expected) + 1))
        if kind == "cut":
            os.ftruncate(writer, start)
            del expected[start:]
        else:
            os.pwrite(editor if kind == "edit" else writer, data, start)
            expected.extend(bytes(max(0, start + len(data) - len(expected))))
            expected[start:start + len(data)] = data
        if step % 10 == 5:
            os.fsync(writer)
        if mapping is not None and step % 3 == 0:
            mapping.close()
            mapping = None
        if mapping is None and expected:
            mapping = mmap.mmap(reader, len(expected), mmap.MAP_SHARED, mmap.PROT_READ)
        where = (path.name, step, kind)
        assert os.pread(reader, len(expected) + 1, 0) == expected, (*where, "by who has it open")
        assert path.read_bytes() == expected, (*where, "by name")
        if mapping is not None:
            length = min(len(mapping), len(expected))
            assert mapping[:length] == expected[:length], (*where, "by mapping")
    for descriptor in (writer, reader, editor):
        os.close(descriptor)
    assert path.read_bytes() == expected, path.name


def at_once(path):
    """Somebody reads all the time what is still being written."""
    content = draw.randbytes(draw.randrange(20_000, 400_000))
    done = threading.Event()
    writer = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    reader = os.open(path, os.O_RDONLY)

    def look():
        while not done.is_set():
            os.pread(reader, 1 << 20, max(0, os.fstat(reader).st_size - 5000))

    thread = threading.Thread(target=look)
    thread.start()
    start = 0
    while start < len(content):
        start += os.write(writer, content[start:start + draw.choice([700, 3000, 9000])])
    os.close(writer)
    done.set()
    thread.join()
    assert os.pread(reader, len(content) + 1, 0) == content, (path.name, "by who read meanwhile")
    os.close(reader)
    assert path.read_bytes() == content, (path.name, "by name")


for number in range(5):
    in_turns(folder / f"in turns {number}")
for number in range(60):
    at_once(folder / f"at once {number}")
