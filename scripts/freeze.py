"""Writes a hash for every address and every table, so that a change of the loader shows its effect.

`make freeze FOLDER=before` builds the sample; if ERGAST_DUMP and F1DB_DUMP name dumps, Ergast with
f1db and f1db alone; and a database that is refreshed from an API, f1db and OpenF1 through a season.
It writes one file per database, and one per moment of the season, with a line per address and
table. Run it again after the change with another folder, and compare both with `diff -r`.

It builds with the commands and helpers that the tests use, so that it knows little of the loader.
"""

import hashlib
import os
import re
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import falcon.testing

from racedata.service.app import create_app
from racedata.service.endpoints import ENDPOINTS
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from support import SAMPLE
from support.loads import LOAD
from support.three_sources import season_of_three

# Ids may change with each build, so the hash of a table has the natural keys instead.
NATURAL_KEYS = {
    "raceId": "SELECT raceId, year || '/' || round FROM races",
    "driverId": "SELECT driverId, driverRef FROM drivers",
    "constructorId": "SELECT constructorId, constructorRef FROM constructors",
    "circuitId": "SELECT circuitId, circuitRef FROM circuits",
    "sourceId": "SELECT sourceId, name FROM sources",
}
# when it was built, not what
TIMES = {"builtAt", "readAt", "fetchedAt", "changedAt", "storeId", "revision"}
# Where the sample, and the files and servers of the season are: that is no fact of the data either.
SEASON = "season-of-three"
PLACES = re.compile(rf"{re.escape(str(SAMPLE.parent))}\b|/[\w/-]+/{SEASON}\b|(?<=127\.0\.0\.1):\d+")
RACE_ENDPOINTS = ("results", "qualifying", "sprint", "sprintqualifying", "practice", "pitstops")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        for name, database in databases(Path(temporary)):
            write(folder, name, database)


def write(folder: Path, name: str, database: Path) -> None:
    frozen = sorted([*tables(database), *answers(database)])
    (folder / f"{name}.txt").write_text("".join(f"{line}\n" for line in frozen))
    print(f"{folder / name}.txt: {len(frozen)} addresses and tables", flush=True)


def databases(folder: Path) -> Iterator[tuple[str, Path]]:
    """Each database, with its name. The same path may have another one the next time."""
    sources = {"sample": [str(SAMPLE)]}
    ergast, f1db = os.environ.get("ERGAST_DUMP"), os.environ.get("F1DB_DUMP")
    if f1db:
        sources["f1db"] = [f1db]
    if ergast and f1db:
        sources["ergast-f1db"] = [ergast, f1db]
    for name, addresses in sources.items():
        database = folder / f"{name}.db"
        command = [*LOAD, "--database", str(database), "--", *addresses]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        yield name, database
    season = folder / SEASON
    season.mkdir()
    for moment, database in season_of_three(season):
        yield f"season-{moment}", database


def tables(database: Path) -> Iterator[str]:
    """A line per table, with the hash of its rows, in any order: `record` has the order."""
    with closing(sqlite3.connect(database)) as db:
        keys = {column: dict(db.execute(sql).fetchall()) for column, sql in NATURAL_KEYS.items()}
        names = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
        # SQLite's own tables, such as its statistics for queries, have no facts
        for table in [name for (name,) in names if not name.startswith("sqlite_")]:
            rows = db.execute(f"SELECT * FROM {table}")
            columns = [name for name, *_ in rows.description]
            named = sorted(
                PLACES.sub(
                    "", repr([natural(keys, column, value) for column, value in zip(columns, row)])
                )
                for row in rows
            )
            yield f"table {table}: {digest(''.join(named).encode())}"


def natural(keys: dict[str, dict[int, str]], column: str, value: object) -> object:
    if column in TIMES:
        return None
    if column == "constructors":
        # the ids of a driver's constructors of the season so far, in one text
        return [keys["constructorId"][int(id)] for id in str(value).split()]
    return keys[column].get(value) if column in keys and isinstance(value, int) else value


def answers(database: Path) -> Iterator[str]:
    """A line per address, with the hash of status, headers that describe the data, and body."""
    unlimited = {"burst_limit": "off", "sustained_limit": "off", "cache_size": "0"}
    data = Snapshot.read(str(database))
    settings = Settings.read({}, unlimited)
    client = falcon.testing.TestClient(create_app(settings, data))
    read_at = "|".join(time for (time,) in data.rows("SELECT readAt FROM sources"))
    for address in addresses_of(data, settings.base_address):
        answer = client.simulate_get(address, query_string="limit=2000" * ("." not in address))
        # calendars fold long lines, and say when the database was built
        text = re.sub("(?m)^(DTSTAMP|LAST-MODIFIED):.*$", "", answer.text.replace("\r\n ", ""))
        text = re.sub('"time":"[0-9-]+T[0-9:]+Z"', "", text)  # when a value was altered
        text = re.sub(f'<time datetime="({read_at})">[^<]*', "", text)
        said = f"{answer.status} {answer.headers.get('content-type')}\n" + PLACES.sub("", text)
        yield f"{address} {digest(said.encode())}"


def addresses_of(data: Snapshot, base: str) -> Iterator[str]:
    """Every endpoint for each season, round, driver and constructor; filters, formats and pages."""
    names = [endpoint.name for endpoint in ENDPOINTS]
    of_a_race = [name for name in names if name not in ("seasons", "corrections")]
    seasons = [year for (year,) in data.rows("SELECT year FROM seasons ORDER BY year")]
    yield from (f"{base}/{name}" for name in names)
    for year in seasons:
        yield from (f"{base}/{year}/{name}" for name in names)
        yield f"{base}/{year}.ics"
        yield from (f"{base}/{year}/{name}.csv" for name in ("results", "driverstandings"))
        yield f"/{year}"
    for year, round in data.rows("SELECT year, round FROM races ORDER BY year, round"):
        yield from (f"{base}/{year}/{round}/{name}" for name in of_a_race)
        yield f"/{year}/{round}"
    people = "SELECT 'drivers', driverRef FROM drivers UNION ALL SELECT 'constructors', "
    for filter, ref in data.rows(f"{people} constructorRef FROM constructors ORDER BY 1, 2"):
        yield from (
            f"{base}/{filter}/{ref}/{name}"
            for name in ("seasons", "races", "results", "qualifying", "practice", "status")
        )
    for circuit in data.rows("SELECT circuitRef FROM circuits ORDER BY 1"):
        yield from (f"{base}/circuits/{circuit[0]}/{name}" for name in ("races", "results"))
    for filter in ("grid/1", "grid/0", "fastest/1", "results/r", "status/3", "results/1"):
        yield from (f"{base}/{filter}/{name}" for name in ("drivers", "races", "qualifying"))
    yield from (f"{base}/current/last/{name}.csv" for name in RACE_ENDPOINTS)
    yield from (f"{base}/current", f"{base}/current/next", f"{base}/driverstandings/1")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
