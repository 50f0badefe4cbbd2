"""Ways to spoil the file at a path: what may be at a database's path other than a good database."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path


def missing(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)  # open() blocks until a writer appears


def device(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def loop(path: Path) -> None:
    path.unlink(missing_ok=True)
    path.symlink_to(path)


def unreadable(path: Path) -> None:
    if os.geteuid():
        path.chmod(0)
    else:  # root may read any file, but not the beginning of this one
        path.unlink()
        path.symlink_to("/proc/self/mem")


def text(path: Path) -> None:
    path.write_text("raceId,year,round\n")


def foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE races (raceId)")


def version(number: int) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"PRAGMA user_version = {number}")

    return change


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5000])


def header_only(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def zeros(path: Path) -> None:
    path.write_bytes(bytes(5000))


def flipped(path: Path) -> None:
    """One bit is inverted."""
    content = bytearray(path.read_bytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def endless(path: Path) -> None:
    """A file of 1 TB without content."""
    path.unlink()
    with open(path, "wb") as file:
        file.truncate(1 << 40)


def grown(path: Path) -> None:
    """The same file, with 1 TB of zeros behind it."""
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content)
    os.truncate(path, 1 << 40)


def cut_off(path: Path) -> None:
    os.truncate(path, random.randrange(path.stat().st_size))


def emptied(path: Path) -> None:
    os.truncate(path, 0)


def overwritten(path: Path) -> None:
    path.write_bytes(random.randbytes(path.stat().st_size))


def bytes_changed(path: Path) -> None:
    with open(path, "r+b") as file:
        for _ in range(100):
            file.seek(random.randrange(path.stat().st_size))
            file.write(random.randbytes(1))


def moved_away_and_overwritten(path: Path) -> None:
    away = path.rename(path.with_name("away.db"))
    away.write_bytes(random.randbytes(away.stat().st_size))
