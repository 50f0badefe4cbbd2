"""Ways to spoil the file at a path: what may be at a database's path beside a good database."""

import os
import random
import sqlite3
from contextlib import closing


def missing(path):
    path.unlink()


def folder(path):
    path.unlink()
    path.mkdir()


def fifo(path):
    path.unlink()
    os.mkfifo(path)  # open() blocks until a writer appears


def device(path):
    path.unlink()
    path.symlink_to("/dev/zero")


def loop(path):
    path.unlink()
    path.symlink_to(path)


def unreadable(path):
    if os.geteuid():
        path.chmod(0)
    else:  # root may read any file, but not the beginning of this one
        path.unlink()
        path.symlink_to("/proc/self/mem")


def empty(path):
    path.write_bytes(b"")


def text(path):
    path.write_text("raceId,year,round\n")


def foreign(path):
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE races (raceId)")


def version(number):
    def change(path):
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {number}")

    return change


def truncated(path):
    path.write_bytes(path.read_bytes()[:-5000])


def header_only(path):
    path.write_bytes(path.read_bytes()[:100])


def zeros(path):
    path.write_bytes(bytes(5000))


def flipped(path):
    """One bit is another."""
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def endless(path):
    """A file of 1 TB without content."""
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def grown(path):
    """The same file, with 1 TB of zeros behind it."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    os.truncate(path, 1 << 40)


def cut_off(path):
    os.truncate(path, random.randrange(path.stat().st_size))


def emptied(path):
    os.truncate(path, 0)


def overwritten(path):
    path.write_bytes(random.randbytes(path.stat().st_size))


def bytes_changed(path):
    with open(path, "r+b") as file:
        for _ in range(100):
            file.seek(random.randrange(path.stat().st_size))
            file.write(random.randbytes(1))


def moved_away_and_overwritten(path):
    away = path.rename(path.with_name("away.db"))
    away.write_bytes(random.randbytes(away.stat().st_size))
