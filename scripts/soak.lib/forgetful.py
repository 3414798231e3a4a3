"""A disk that keeps what was synchronized and forgets of the rest what it likes.

Reads what recorder.c noted and makes what a power cut could have left at any moment. More is forgotten than any
of today's file systems forgets: a file's data without fsync of that file, a name without fsync of its directory,
attributes without fsync. Kept: rename is one step, and a name's changes have an order.
"""
import os
import pathlib
import random

PAGE = 4096


class Content:
    """An inode that is a file: its changes, and up to which they are on the disk."""

    def __init__(self, data=b"", mode=0o600, attributes=None):
        self.base = data
        self.mode = mode
        self.attributes = dict(attributes or {})
        self.changes = []   # (moment, kind, ...)
        self.synced = 0     # moment of the last fsync or fdatasync that ended
        self.synced_all = 0  # ... of the last fsync

    def at(self, moment, draw):
        """Data, mode and attributes after a cut at this moment."""
        data = bytearray(self.base)
        mode, attributes = self.mode, dict(self.attributes)
        chance = draw.choice([0, 0, 0.5, 0.9, 1])  # the same for the whole file: mostly all or nothing
        keeps_attributes = draw.choice([True, True, False])
        size_known = draw.random() < 0.5  # the size is there, the bytes are not
        synced = self.synced_at(moment)
        synced_all = self.synced_all_at(moment)
        for change in self.changes:
            when, kind = change[:2]
            if when > moment:
                break
            if kind == "write":
                offset, new = change[2:]
                is_sure = when <= synced
                if len(data) < offset + len(new) and (is_sure or size_known):
                    data.extend(bytes(offset + len(new) - len(data)))
                for start in range(offset - offset % PAGE, offset + len(new), PAGE):
                    if not is_sure and draw.random() >= chance:
                        continue
                    first, last = max(start, offset), min(start + PAGE, offset + len(new))
                    if len(data) < last:
                        data.extend(bytes(last - len(data)))
                    data[first:last] = new[first - offset:last - offset]
            elif kind == "truncate":
                if when <= synced or draw.random() < chance:
                    size = change[2]
                    del data[size:]
                    data.extend(bytes(size - len(data)))
            elif when <= synced_all or keeps_attributes:
                if kind == "mode":
                    mode = change[2]
                elif kind == "setxattr":
                    attributes[change[2]] = change[3]
                elif kind == "removexattr":
                    attributes.pop(change[2], None)
        return bytes(data), mode, attributes

    def synced_at(self, moment):
        return max((when for when in self.syncs if when <= moment), default=0)

    def synced_all_at(self, moment):
        return max((when for when in self.full_syncs if when <= moment), default=0)

    @property
    def syncs(self):
        return [change[0] for change in self.changes if change[1] in ("sync", "datasync")]

    @property
    def full_syncs(self):
        return [change[0] for change in self.changes if change[1] == "sync"]


class Folder:
    def __init__(self, mode=0o700):
        self.mode = mode
        self.syncs = []


class Link:
    def __init__(self, target):
        self.target = target


class Recording:
    """`root`: the vault's directory as it is on the disk when recording begins."""

    def __init__(self, root):
        self.root = os.stat(root).st_ino
        self.inodes = {}
        self.start = {}  # folder object: {name: object}
        self.steps = []  # (moment, time, [((folder, name), object or None)])
        self.times = [0]  # of each moment
        self.read_start(root)

    def read_start(self, path):
        folder = Folder(os.stat(path).st_mode & 0o7777)
        self.inodes[os.stat(path).st_ino] = folder
        names = self.start[folder] = {}
        for name in os.listdir(os.fsencode(path)):
            inner = os.path.join(os.fsencode(path), name)
            status = os.lstat(inner)
            if os.path.isdir(inner):
                names[name] = self.read_start(inner)
            else:
                if status.st_ino not in self.inodes:
                    attributes = {key: os.getxattr(inner, key) for key in os.listxattr(inner)}
                    data = pathlib.Path(os.fsdecode(inner)).read_bytes()
                    self.inodes[status.st_ino] = Content(data, status.st_mode & 0o7777, attributes)
                names[name] = self.inodes[status.st_ino]
        return folder

    def load(self, log, data_file):
        data = pathlib.Path(data_file).read_bytes()
        names = {folder: dict(entries) for folder, entries in self.start.items()}
        for line in pathlib.Path(log).read_text().splitlines():
            time, kind, *rest = line.split()
            moment = len(self.times)
            self.times.append(int(time))
            if kind == "nameless":
                self.inodes[int(rest[0])] = Content()
            elif kind in ("write", "truncate", "setxattr", "removexattr", "mode", "sync", "datasync"):
                self.change(moment, kind, self.inodes.get(int(rest[0])), rest[1:], data)
            elif kind == "syncall":
                for found in self.inodes.values():
                    self.change(moment, "sync", found, [], data)
            else:
                self.name(moment, kind, rest, names)

    def change(self, moment, kind, found, rest, data):
        if isinstance(found, Folder):
            if kind == "sync":
                found.syncs.append(moment)
            elif kind == "mode":
                found.mode = int(rest[0], 8)
        elif isinstance(found, Content):
            if kind == "write":
                offset, size, place = map(int, rest)
                found.changes.append((moment, kind, offset, data[place:place + size]))
            elif kind == "truncate":
                found.changes.append((moment, kind, int(rest[0])))
            elif kind == "setxattr":
                name, size, place = bytes.fromhex(rest[0]), int(rest[1]), int(rest[2])
                found.changes.append((moment, kind, name, data[place:place + size]))
            elif kind == "removexattr":
                found.changes.append((moment, kind, bytes.fromhex(rest[0])))
            elif kind == "mode":
                found.changes.append((moment, kind, int(rest[0], 8)))
            else:
                found.changes.append((moment, kind))

    def name(self, moment, kind, rest, names):
        folder = self.inodes[int(rest[0])]
        name = bytes.fromhex(rest[1])
        here = names.setdefault(folder, {})
        if kind in ("create", "mkdir"):
            made = Content() if kind == "create" else Folder()
            self.inodes[int(rest[2])] = made
            effects = [((folder, name), made)]
        elif kind == "symlink":
            effects = [((folder, name), Link(bytes.fromhex(rest[2])))]
        elif kind == "link":
            effects = [((folder, name.rsplit(b"/", 1)[-1]), self.inodes[int(rest[2])])]
        elif kind == "unlink":
            effects = [((folder, name), None)]
        else:
            assert kind == "rename", kind
            other, new = self.inodes[int(rest[2])], bytes.fromhex(rest[3])
            there = names.setdefault(other, {})
            replaced = there.get(new) if int(rest[4]) & 2 else None
            if here[name] is there.get(new):
                return  # two names of one file: nothing happens
            effects = [((folder, name), replaced), ((other, new), here[name])]
        for (place, entry), found in effects:
            names.setdefault(place, {})[entry] = found
        self.steps.append((moment, effects))

    def state(self, moment, draw):
        """Which of the names' changes are on the disk after a cut: a random choice that keeps every name's
        changes in order."""
        steps = [step for step in self.steps if step[0] <= moment]
        before = []  # for each step: the last steps that changed its names
        last = {}
        for number, (_, effects) in enumerate(steps):
            before.append({last[place] for place, _ in effects if place in last})
            for place, _ in effects:
                last[place] = number
        kept = set()

        def keep(number):
            waiting = [number]
            while waiting:
                number = waiting.pop()
                if number not in kept:
                    kept.add(number)
                    waiting.extend(before[number])

        for number, (when, effects) in enumerate(steps):
            if any(when <= sync <= moment for (folder, _), _ in effects for sync in folder.syncs):
                keep(number)
        way = draw.choice(["in order", "each name", "each name", "nothing", "all"])
        if way == "in order":  # as a journal does it
            for number in range(draw.randrange(len(steps) + 1)):
                keep(number)
        elif way != "nothing":
            chance = 1 if way == "all" else draw.choice([0.1, 0.5, 0.9])
            for number in range(len(steps)):
                if draw.random() < chance:
                    keep(number)
        names = {folder: dict(entries) for folder, entries in self.start.items()}
        for number in sorted(kept):
            for (folder, name), found in steps[number][1]:
                entries = names.setdefault(folder, {})
                if found is None:
                    entries.pop(name, None)
                else:
                    entries[name] = found
        return names

    def make(self, moment, target, draw):
        """What is left after a cut at this moment, as files under `target`."""
        names = self.state(moment, draw)
        made = {}

        def put(folder, path):
            for name, found in names.get(folder, {}).items():
                inner = os.path.join(path, name)
                if isinstance(found, Folder):
                    if found not in made:  # no directory has two names
                        made[found] = inner
                        os.mkdir(inner)
                        put(found, inner)
                        os.chmod(inner, found.mode)
                elif isinstance(found, Link):
                    os.symlink(found.target, inner)
                elif found in made:
                    os.link(made[found], inner)
                else:
                    made[found] = inner
                    data, mode, attributes = found.at(moment, draw)
                    with open(inner, "wb") as file:
                        file.write(data)
                    for key, value in attributes.items():
                        os.setxattr(inner, key, value)
                    os.chmod(inner, mode)

        os.makedirs(target, exist_ok=True)
        root = self.inodes[self.root]
        made[root] = os.fsencode(target)
        put(root, os.fsencode(target))
        os.chmod(target, root.mode)
        return sum(len(entries) for entries in names.values())


def moments(recording, count, seed):
    """The moments to cut at: right behind a call that names something or synchronizes, and random ones."""
    draw = random.Random(seed)
    telling = [step[0] + draw.choice([-1, 0]) for step in recording.steps]
    result = draw.sample(telling, min(len(telling), count * 2 // 3))
    while len(result) < count:
        result.append(draw.randrange(1, len(recording.times)))
    return sorted(result)
