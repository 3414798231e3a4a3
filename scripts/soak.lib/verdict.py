"""What may be in a folder after mixed.py was cut short, and what is."""
import collections
import json
import os

import mixed


class Writes:
    """One writer's journal: for each name what it held, one after the other."""

    def __init__(self, path):
        self.changes = []  # as noted, with "ended" and "durable"
        if not os.path.exists(path):
            return
        with open(path) as lines:
            for line in lines:
                try:
                    note = json.loads(line)
                except ValueError:
                    break  # the last line, cut short
                if note["kind"] == "begin":
                    self.changes.append({**note, "ended": None, "durable": False})
                elif note["kind"] == "end":
                    assert self.changes[-1]["number"] == note["number"]
                    self.changes[-1].update(ended=note["at"], durable=note["durable"])


class Verdict:
    def __init__(self):
        self.files = 0
        self.lost = []       # what was promised is not there
        self.torn = []       # a name that holds neither an old nor a new version
        self.torn_new = []   # the same, of a new name that nobody synced

    def __str__(self):
        return f"lost {self.lost[:5]}, torn {self.torn[:5]}, torn and new {self.torn_new[:5]}"


def judge(folder, journals, all_ended_count, before=None, after=None, verdict=None):
    """`journals`: {writer number: path}. With `all_ended_count` every change that ended has to be there (the
    machine went on); else only what was synced (the power was cut). `before`, `after`: the cut lies between
    these moments."""
    verdict = verdict or Verdict()
    for number, path in journals.items():
        judge_writer(os.path.join(folder, f"writer{number}"), Writes(path), all_ended_count, before, after, verdict)
    return verdict


def judge_writer(folder, writes, all_ended_count, before, after, verdict):
    history = collections.defaultdict(lambda: [(0, None)])  # name: [(change, version)]
    certain = collections.defaultdict(int)                  # name: the change that has to be there
    unsynced = set()  # versions that came under a new name and were never synced
    changes = [change for change in writes.changes if after is None or change["at"] <= after]
    for index, change in enumerate(changes, 1):
        has_ended = change["ended"] is not None and (before is None or change["ended"] <= before)
        for name, version in change["changes"].items():
            if version is not None and not change["moved"]:
                is_new = history[name][-1][1] is None
                if is_new and not (has_ended and change["durable"]):
                    unsynced.add(json.dumps(version))
            history[name].append((index, version))
            if has_ended and (all_ended_count or change["durable"]):
                certain[name] = index
    found = {}
    for name in names(folder):
        verdict.files += 1
        try:
            with open(os.path.join(folder, name), "rb") as file:
                data = file.read()
            version = mixed.parse(data)
            is_whole = version is not None and data == mixed.content(version)
        except OSError:
            data, version, is_whole = b"", None, False
        if name not in history:
            if not all_ended_count and "recovered directory " in name:
                # A directory whose name was not synced, with what was put into it.
                if not is_whole:
                    verdict.torn_new.append((name[-20:], len(data)))
                continue
            verdict.torn.append((name, "nobody made it"))
            continue
        if is_whole:
            found[name] = version
        elif not all_ended_count and may_be_torn(history[name], certain[name], unsynced):
            verdict.torn_new.append((name[:20], len(data)))
            found[name] = "torn"
        else:
            verdict.torn.append((name[:20], len(data)))
            found[name] = "torn"
    # Which moments explain what a name holds.
    moments = {}
    for name, versions in history.items():
        value = found.get(name)
        if value == "torn":
            continue
        moments[name] = [index for index, version in versions if version == value and index >= certain[name]]
        if not moments[name]:
            last = [(index, version) for index, version in versions if index >= certain[name]]
            verdict.lost.append((name[:20], "holds", value, "may hold", last[:3], certain[name]))
    # What was renamed is under the one name or the other.
    for index, change in enumerate(changes, 1):
        if not change["moved"]:
            continue
        old, new = change["moved"]
        if not moments.get(old) or not moments.get(new):
            continue
        if all(moment >= index for moment in moments[old]) and all(moment < index for moment in moments[new]):
            verdict.lost.append((old[:20], "was renamed and is under neither name", new[:20]))


def may_be_torn(versions, certain, unsynced):
    """Whether the name may hold a version that came under a new name and was never synced. What replaced
    something has to be on the disk before."""
    return any(version is not None and json.dumps(version) in unsynced
               and (position == 0 or versions[position - 1][1] is None)
               for position, (index, version) in enumerate(versions) if index >= certain)


def unexpected(findings, verdict):
    """What a check reports beside what the next mount removes and the files that the verdict has as torn."""
    torn = len(verdict.torn) + len(verdict.torn_new)
    blobs = [finding for finding in findings if finding["kind"] == "blob"]
    return blobs[torn:] + [finding for finding in findings if finding["kind"] not in ("blob", "leftover", "orphan")]


def names(folder):
    result = []
    for parent, _, files in os.walk(folder):
        for name in files:
            result.append(os.path.relpath(os.path.join(parent, name), folder))
    return result
