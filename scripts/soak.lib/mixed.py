"""A mixed load whose every result can be told afterwards, whatever cut it short.

Each writer has a folder of its own (and so nobody else changes what it expects) and notes each change in a
journal outside of the vault: before it (what the names will hold) and after it (and whether it was synced).
A file's first 64 bytes say what the rest has to be.

usage: mixed.py FOLDER JOURNAL WRITER SEED     until the file system goes away, or SIGTERM
"""
import errno
import hashlib
import json
import os
import random
import signal
import sys
import time

HEADER = 64
NAMES = [f"photo{number}.jpg" for number in range(6)] + ["n" * 250, "o" * 240 + ".jpg"]
FILMS = ["film0.mp4", "film1.mp4"]
GONE = (errno.ENOTCONN, errno.ECONNABORTED, errno.EIO, errno.ENOENT, errno.ENOKEY, errno.EROFS)


def stream(key, size):
    return hashlib.shake_128(key.encode()).digest(size)


def patches(version):
    """Where and how long the changes of a version are; a negative place is the end."""
    result = []
    for number in range(1, version["edits"] + 1):
        draw = random.Random(f"{version['id']}.{number}")
        size = draw.choice([1, 100, 4096, 70_000])
        result.append((-1 if draw.random() < 0.3 else draw.random(), size, f"{version['id']}.{number}"))
    return result


def header(version):
    return json.dumps([version["id"], version["size"], version["edits"]]).encode().ljust(HEADER)


def patched_at(place, length, size):
    """The offset of a change in a file of this length."""
    return length if place < 0 else HEADER + int(place * max(0, length - HEADER - size))


def content(version):
    data = bytearray(header(version) + stream(version["id"], version["size"]))
    for place, size, key in patches(version):
        at = patched_at(place, len(data), size)
        data[at:at + size] = stream(key, size)
    return bytes(data)


def parse(data):
    """The version that a file's first bytes name; None where they name none."""
    try:
        identity, size, edits = json.loads(data[:HEADER])
        return {"id": identity, "size": size, "edits": edits}
    except (ValueError, TypeError):
        return None


class Writer:
    def __init__(self, folder, journal, number, seed):
        self.folder = os.path.join(folder, f"writer{number}")
        self.number = number
        self.random = random.Random(f"{seed}.{number}")
        self.journal = os.open(journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        self.state = {}
        self.file = {}  # name: which file it leads to, by number
        self.count = 0
        os.makedirs(self.folder, exist_ok=True)
        os.chdir(self.folder)  # the bare mount point is another folder

    def note(self, kind, **more):
        os.write(self.journal, (json.dumps({"kind": kind, "at": time.monotonic_ns(), **more}) + "\n").encode())

    def change(self, changes, durable, work, moved=None):
        """`work` is what makes `changes` (name: version, or None for no file)."""
        self.count += 1
        self.note("begin", number=self.count, changes=changes, moved=moved)
        work()
        self.note("end", number=self.count, durable=durable)
        for name, version in changes.items():
            if version is None:
                self.state.pop(name, None)
            else:
                self.state[name] = version

    def linked(self, name):
        """All names of the file."""
        return {other for other in self.state if self.file[other] == self.file[name]}

    def sync_folder(self):
        folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        os.fsync(folder)
        os.close(folder)

    def put(self, name, data, sync, flags=os.O_CREAT | os.O_TRUNC):
        file = os.open(name, os.O_WRONLY | flags, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view[:self.random.choice([4096, 50_000, 131_072])]):]
            if sync:
                os.fsync(file)
        finally:
            os.close(file)

    def new_version(self, size):
        return {"id": f"{self.number}.{self.count}.{self.random.randrange(1 << 30)}", "size": size, "edits": 0}

    def write(self, name, size, sync):
        if name in self.state and len(self.linked(name)) > 1:
            return
        version = self.new_version(size)
        self.change({name: version}, sync, lambda: self.put(name, content(version), sync))
        self.file.setdefault(name, self.count)

    def step(self):
        draw = self.random
        name = draw.choice(NAMES)
        sync = draw.random() < 0.3
        way = draw.choice(["write", "write", "aside", "edit", "edit", "edit", "remove", "rename", "link", "film",
                           "folder"])
        size = draw.choice([0, 1, 1000, 70_000, 300_000])
        if way == "write":
            self.write(name, size, sync)
        elif way == "aside":
            self.write(".saving", size, sync)
            self.rename(".saving", name, sync)
        elif way in ("edit", "film"):
            if way == "film":
                name = draw.choice(FILMS)
                if name not in self.state:
                    self.write(name, 3_000_000, sync)
            if name in self.state:
                self.edit(name, sync)
        elif way == "remove" and name in self.state:
            def remove():
                os.unlink(name)
                if sync:
                    self.sync_folder()
            self.change({name: None}, sync, remove)
            del self.file[name]
        elif way == "rename" and name in self.state:
            self.rename(name, draw.choice(NAMES), sync)
        elif way == "link" and name in self.state:
            other = draw.choice(NAMES)
            if other not in self.state:
                def link():
                    os.link(name, other)
                    if sync:
                        self.sync_folder()
                self.change({other: self.state[name]}, sync, link)
                self.file[other] = self.file[name]
        elif way == "folder":
            os.makedirs("album/deep", exist_ok=True)
            self.write(f"album/deep/{draw.randrange(4)}", 1000, sync)

    def rename(self, old, new, sync):
        if old == new or self.file[old] == self.file.get(new):
            return  # two names of one file: nothing happens

        def rename():
            os.rename(old, new)
            if sync:
                self.sync_folder()
        self.change({old: None, new: self.state[old]}, sync, rename, moved=[old, new])
        self.file[new] = self.file.pop(old)

    def edit(self, name, sync):
        before = self.state[name]
        after = {**before, "edits": before["edits"] + 1}
        length = len(content(before))
        place, size, key = patches(after)[-1]
        def work():
            file = os.open(name, os.O_RDWR)
            try:
                os.pwrite(file, stream(key, size), patched_at(place, length, size))
                os.pwrite(file, header(after), 0)
                if sync:
                    os.fsync(file)
            finally:
                os.close(file)
        self.change({each: after for each in self.linked(name)}, sync, work)


def main():
    folder, journal, number, seed = sys.argv[1:5]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        writer = Writer(folder, journal, int(number), seed)
        writer.note("start")
        while True:
            writer.step()
    except OSError as error:
        if error.errno not in GONE:
            raise


if __name__ == "__main__":
    main()
