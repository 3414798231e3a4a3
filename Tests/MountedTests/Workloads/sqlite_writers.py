#!/usr/bin/env python3
"""Four processes that write to one SQLite database in WAL mode at the same time.

usage: sqlite_writers.py DATABASE
"""
import multiprocessing
import sqlite3
import sys

WRITERS, ROWS = 4, 100


def write(path, writer):
    database = sqlite3.connect(path, timeout=60, isolation_level=None)
    for row in range(ROWS):
        database.execute("BEGIN IMMEDIATE")
        database.execute("INSERT INTO photo VALUES (?, ?, ?)", (writer, row, bytes([writer]) * (row * 40)))
        database.execute("COMMIT")
        if row % 10 == 0:
            assert database.execute("PRAGMA quick_check").fetchone() == ("ok",)
    database.close()


path = sys.argv[1]
database = sqlite3.connect(path)
assert database.execute("PRAGMA journal_mode = WAL").fetchone() == ("wal",)
database.execute("CREATE TABLE photo (writer INTEGER, number INTEGER, pixels BLOB)")
database.commit()
writers = [multiprocessing.Process(target=write, args=(path, writer)) for writer in range(WRITERS)]
for process in writers:
    process.start()
for process in writers:
    process.join()
assert [process.exitcode for process in writers] == [0] * WRITERS
assert database.execute("SELECT count(*) FROM photo").fetchone() == (WRITERS * ROWS,)
assert database.execute("SELECT count(*) FROM photo WHERE length(pixels) != number * 40").fetchone() == (0,)
assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
