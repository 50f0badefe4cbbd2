"""Refreshes: the command, the servers that they ask, and what they leave behind."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from support import EXPECTED, SAMPLE
from support.answers import client
from support.apis import Answer, answers_of
from support.loads import Row, built, edited, race_ids, racedata, select

F1DB = EXPECTED / "f1db"  # a cut of a release
# the time of a refresh, unless it is passed in; in seconds
NOW, HOUR, DAY = 1_800_000_000, 3_600, 86_400

# As Jolpica-F1 answers (commit b5e43ca); test_api.py compares this with a recording.
NOT_SERVED_BY_JOLPICA: Answer = (
    400,
    {"Content-Type": "application/json"},
    b'{"detail":"Bad Request: Endpoint does not support final filter."}',
)


def run_refresh(
    database: Path, address: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """`racedata refresh` from one source, finished."""
    return racedata("refresh", "--database", database, "--from", address, *arguments)


def assert_ends_at_once(follow: "subprocess.Popen[str]") -> None:
    """Ends a process that follows sources: it has nothing more to say."""
    follow.terminate()
    assert (follow.communicate(timeout=20), follow.returncode) == (("", ""), 0)


def state(folder: Path) -> dict[Path, tuple[bytes, int, int]]:
    """All files in a folder: their content and their attributes that a replacement would change."""
    return {
        path: (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        # the store says when it was refreshed
        if path.is_file() and not path.name.endswith(".sources.db")
    }


def origins_of(database: Path, round: int) -> dict[str, str]:
    """The names of the sources of a race of 2023, by kind."""
    sql = f"""SELECT kind, sources.name
              FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId)
              WHERE year = 2023 AND round = {round}"""
    found = select(database, sql)
    return {kind: Path(name).name if name.startswith("/") else name for kind, name in found}


def like_jolpica(database: Path) -> Callable[[str], Answer]:
    """What Jolpica-F1 answers from a database: pages of 100; no sprint qualifying, no practice."""
    answer = answers_of(client(database, max_limit=100))
    return lambda path: (
        NOT_SERVED_BY_JOLPICA if re.search("sprintqualifying|practice", path) else answer(path)
    )


def with_a_penalty(source: Path, folder: Path, round: int) -> Path:
    """A database from a dump like the sample, in which the second of a race is disqualified."""
    second = {"raceId": race_ids(SAMPLE, 2023)[round], "positionOrder": "2"}

    def penalty(row: Row) -> Row:
        is_second = second.items() <= row.items()
        return row | {"points": "1", "positionText": "D"} if is_second else row

    return built(edited(source, folder / "penalty", results=penalty), folder / "penalty.db")


def moved(row: Row, year: int) -> Row:
    """A race in another season."""
    return {name: value.replace(row["year"], str(year)) for name, value in row.items()}
