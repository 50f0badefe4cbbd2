#!/usr/bin/env python3
"""Brings a database up to date from an API in Ergast's format: `refresh.py DATABASE --from URL [--season YEAR]`.

It fetches the calendar of the latest season, and the races that are new, have changed, or are among the last three run:
penalties change them later. What it fetches goes into the overlay (overlay.py) and into a new database, which is
built from the old one's own tables and replaces it. If nothing has changed, the old database stays.

What to fetch is decided here. Like the loader, this needs only Python.
"""

import signal

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # as in load_data.py

import argparse
import hashlib
import os
import re
import sqlite3
import urllib.parse
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

import overlay
from api import JOLPICA, Api, Json
from corrections import CORRECTIONS, corrections_argument
from dump import LoadError, Progress, Table, Value
from load_data import build
from overlay import KINDS, Season, Stored
from replacement import replacement, run
from stage import COMPUTED, NUMBERED, SCHEMA, TABLES, Source, Stage, year

LICENCES = {"api.jolpi.ca": "CC BY-NC-SA 4.0"}  # of the data, by host

LAST_RUN = 3  # races that are fetched again each time
NEW_RECORDS = 30  # more than a race adds to a list of its season
OF_RACE = ("pitstops", "driverstandings", "constructorstandings", "laps")


# Until 1978, some drivers have two results in a race, with different constructors. driver_standings.constructors has
# these in the order of the dump's ids. If `record` has them in another order, the one that comes later there gets a
# later id here too, and so do rows that were classified equally and follow it.
LATER_RESULTS = """
    SELECT equal.record
    FROM results JOIN results AS other USING (raceId, driverId) JOIN driver_standings USING (raceId, driverId)
        JOIN results AS equal USING (raceId, positionOrder)
    WHERE instr(' ' || constructors || ' ', ' ' || other.constructorId || ' ')
        < instr(' ' || constructors || ' ', ' ' || results.constructorId || ' ')
        AND results.record < other.record AND results.record <= equal.record
"""
NEW_ID = f"row_number() OVER (ORDER BY record IN ({LATER_RESULTS}), record)"


class NothingNew(Exception):
    """The new database would have the same rows as the old one."""


class Database:
    """The old database, read only. Raises LoadError if it is damaged, or of another schema version."""

    def __init__(self, path: Path, progress: Progress) -> None:
        check(path)
        # `immutable`: without locks. No loader changes the file meanwhile.
        self.db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        with closing(sqlite3.connect(":memory:")) as empty:
            empty.executescript(SCHEMA.read_text(encoding="utf-8"))
            if pragma(self.db, "user_version") != pragma(empty, "user_version"):
                raise LoadError(f"{path}: made by another version of the loader; build it again with make load-data")
            stage = Stage(empty, progress)
            self.fields = {kind: overlay.fields(stage, KINDS[kind].table) for kind in KINDS}

    def close(self) -> None:
        self.db.close()

    def newest(self) -> str:
        """The date of the latest race with results."""
        (found,) = self.db.execute("SELECT max(date) FROM results JOIN races USING (raceId)").fetchone()
        return found or ""

    def waits_for(self, season: str) -> bool:
        """Whether it has results of races of this season, but not of all, and none of a later season."""
        later, races, run = self.db.execute(
            """SELECT count(*) FILTER (WHERE year > ?1 AND run), count(*) FILTER (WHERE year = ?1),
                   count(*) FILTER (WHERE year = ?1 AND run)
               FROM (SELECT year, raceId IN (SELECT raceId FROM results) AS run FROM races)""",
            (int(season),),
        ).fetchone()
        return not later and 0 < run < races

    def calendar(self, season: str) -> list[Stored]:
        return overlay.stored_races(self.db, "main", season)

    def count(self, kind: str, race_id: int | None) -> int:
        """How many records of a kind a race has."""
        (rows,) = self.db.execute(f"SELECT count(*) FROM {KINDS[kind].table} WHERE raceId = ?", (race_id,)).fetchone()
        return int(rows)

    def rows(self, kind: str, race_id: int | None) -> list[dict[str, Value]]:
        """The records of a race in a classification, as overlay.rows has them: references and texts instead of ids."""
        names = list(KINDS[kind].paths)
        texts = {"driverId": "driverRef", "constructorId": "constructorRef", "statusId": "status"}
        found = self.db.execute(
            f"""SELECT {", ".join(texts.get(name) or f"own.{name}" for name in names)}
                FROM {KINDS[kind].table} AS own JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
                {"LEFT JOIN status USING (statusId)" * ("statusId" in names)} WHERE raceId = ?""",
            (race_id,),
        )
        return [dict(zip(names, row)) for row in found]

    def statuses(self) -> set[Value]:
        return {text for (text,) in self.db.execute("SELECT status FROM status")}

    def read(self, stage: Stage) -> Source:
        """Fills a stage with the tables of this database. Rows get new ids, in the order of the dump's."""
        for table in TABLES:
            own = [name for _, name, *_ in self.db.execute(f"PRAGMA table_info({table})") if name not in COMPUTED]
            names, columns = own, own
            if table in NUMBERED and not NUMBERED[table].per_race:
                names, columns = [NUMBERED[table].key, *own], [NEW_ID if table == "results" else "record", *own]
            found = self.db.execute(f"SELECT {', '.join(columns)} FROM {table}")
            while rows := found.fetchmany(Table.BATCH):
                stage.insert(table, names, list(zip(*rows)))
        return Source(*self.db.execute("SELECT source, licence, sourceChecksum FROM build").fetchone())

    def differences(self, path: Path) -> list[str]:
        """A line for each table that has other rows in the database at `path`."""
        said = []
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as new:
            for table in TABLES:
                if any(
                    a != b for a, b in zip_longest(*(db.execute(f"SELECT * FROM {table}") for db in (self.db, new)))
                ):
                    before, now = (db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for db in (self.db, new))
                    said.append(
                        f"{table:<22}{now:>12,} rows{f' ({now - before:+,})' if now != before else ', changed'}"
                    )
        return said


def pragma(db: sqlite3.Connection, name: str) -> object:
    return db.execute(f"PRAGMA {name}").fetchone()[0]


def check(path: Path) -> None:
    """Raises LoadError if there is no file, or its checksum is wrong; see schema.sql."""
    if not path.is_file():
        raise LoadError(f"{path}: not found; build it with make load-data, then refresh it")
    size, digest = path.stat().st_size - 32, hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(min(1 << 20, max(0, size - file.tell()))):
            digest.update(block)
        if file.read() != digest.digest():
            raise LoadError(f"{path}: damaged; build it again with make load-data")


class Fetch:
    """Fetches a season: `whole`, or only what is new. Races are numbered from 0, as in the calendar."""

    def __init__(self, api: Api, old: Database, season: Json, whole: bool) -> None:
        self.api, self.old, self.season, self.whole = api, old, season, whole
        self.year = season["season"]
        self.calendar = self.fetch_calendar()
        self.numbers = {race["raceName"]: number for number, race in enumerate(self.calendar)}
        stored = overlay.match(overlay.fetched_races(self.calendar), old.calendar(self.year))
        self.ids = [stored.get(name) for name in self.numbers]
        # The records of each race, by kind.
        self.records: list[dict[str, list[Json]]] = [{} for _ in self.calendar]
        self.start = 0 if whole else self.first_wanted()
        first = self.fetch_of_season("results")
        self.fetch_of_season("qualifying")
        if any("Sprint" in race for race in self.calendar[self.start :]):
            self.fetch_of_season("sprint")
        self.run = [
            number
            for number, id in enumerate(self.ids)
            if "results" in self.records[number] or (number < first and old.count("results", id))
        ]
        self.wanted = [
            number
            for number, records in enumerate(self.records)
            if records and (whole or number in self.run[-LAST_RUN:] or self.changed(number, records))
        ]
        for number in self.wanted:
            if "results" in self.records[number]:
                self.fetch_of_race(number)

    def fetch_calendar(self) -> list[Json]:
        path = f"{self.year}/races"
        races = [race for (race,) in self.api.records(path)]
        fault = ""
        for race in races:
            if race.get("season") != self.year:
                fault = f"a race of season {race.get('season')!r}; expected {self.year!r}"
            if not (isinstance(race.get("raceName"), str) and re.fullmatch("[1-9][0-9]?", str(race.get("round")))):
                fault = f"a race named {race.get('raceName')!r} in round {race.get('round')!r}; expected both"
        for key in ("raceName", "round"):
            if len({race.get(key) for race in races}) < len(races):
                fault = f"two races have the same {key}; expected no two"
        if fault:
            raise LoadError(f"{self.api.address(path)}: {fault}")
        return sorted(races, key=lambda race: int(race["round"]))

    def first_wanted(self) -> int:
        """The first race to fetch: the third-last one with results here, or one before that has none."""
        run = [number for number, id in enumerate(self.ids) if self.old.count("results", id)]
        not_run = [number for number in range(len(self.ids)) if number not in run]
        return min([*run[-LAST_RUN:], *not_run], default=0)

    def fetch_of_season(self, kind: str) -> int:
        """Fetches the records from the first wanted race on; or all, if they fit on a page. Returns the first race."""
        path = f"{self.year}/{kind}"
        stored = [self.old.count(kind, id) for id in self.ids]
        # The offset is that of the last record before the first wanted race: it shows that none is missed.
        offset = max(0, sum(stored[: self.start]) - 1)
        if sum(stored) + NEW_RECORDS <= self.api.limit:
            offset = 0
        records = self.api.records(path, offset)
        if offset and not (records and self.number(records[0][0], path) < self.start):
            offset, records = 0, self.api.records(path)
        for race, record in records:
            number = self.number(race, path)
            if number >= self.start or not offset:
                self.records[number].setdefault(kind, []).append(record)
        return self.start if offset else 0

    def number(self, race: Json, path: str) -> int:
        """The number of a race in an answer. Raises LoadError if the calendar does not have it."""
        number = self.numbers.get(str(race.get("raceName")), -1)
        if number < 0 or race.get("round") != self.calendar[number]["round"]:
            what = f"{race.get('raceName')!r} in round {race.get('round')!r}; the calendar does not have that race"
            raise LoadError(f"{self.api.address(path)}: {what}")
        return number

    def changed(self, number: int, records: dict[str, list[Json]]) -> bool:
        """Whether the records of a race differ from those stored."""
        return any(
            Counter(tuple(row.values()) for row in self.read(number, kind))
            != Counter(tuple(row.values()) for row in self.old.rows(kind, self.ids[number]))
            for kind in records
        )

    def read(self, number: int, kind: str) -> list[dict[str, Value]]:
        place = f"{self.api.url}, {self.year}, {self.calendar[number]['raceName']}"
        return list(overlay.rows(kind, self.records[number][kind], self.old.fields[kind], place))

    def fetch_of_race(self, number: int) -> None:
        for kind in OF_RACE:
            if kind == "laps" and not self.needs_laps(number):
                continue
            path = f"{self.year}/{self.calendar[number]['round']}/{kind}"
            found = self.api.records(path)
            for parent, *_ in found:
                if parent.get("round") != self.calendar[number]["round"]:
                    raise LoadError(
                        f"{self.api.address(path)}: round {parent.get('round')!r}; expected that of the address"
                    )
            if kind == "laps":
                records = [{"lap": lap.get("number"), **timing} for _, lap, timing in found]
            else:
                records = [record for _, record in found]
            if records:  # an API without laps of a race does not delete those here
                self.records[number][kind] = records

    def needs_laps(self, number: int) -> bool:
        """Laps need many requests. If they are here: only if one request is enough, or if other laps were driven."""
        stored = self.old.count("laps", self.ids[number])
        # Penalties change times and positions, not laps.
        here, there = (
            Counter((row["driverId"], row["laps"]) for row in rows)
            for rows in (self.old.rows("results", self.ids[number]), self.read(number, "results"))
        )
        return self.whole or stored <= self.api.limit or here != there

    def fetched(self) -> Season:
        """What was fetched, for the overlay."""
        now = datetime.fromtimestamp(self.api.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # If the clock is wrong: not before any race that has results.
        dates = [str(self.calendar[number].get("date")) for number in self.run]
        time = max([now, *(f"{date}T00:00:00Z" for date in (*dates, self.old.newest()))])
        return Season(
            season=self.season,
            source=self.api.url,
            licence=LICENCES.get(urllib.parse.urlsplit(self.api.url).hostname or ""),
            fetched=time,
            calendar=self.calendar,
            statuses=self.fetch_statuses(),
            races={
                self.calendar[number]["raceName"]: {
                    kind: {"fetched": time, "records": records} for kind, records in self.records[number].items()
                }
                for number in self.wanted
            },
        )

    def fetch_statuses(self) -> dict[str, str]:
        """The ids of statuses that are new here, by text."""
        used = {
            row["statusId"]
            for number in self.wanted
            for kind in ("results", "sprint")
            if kind in self.records[number]
            for row in self.read(number, kind)
        }
        new = used - self.old.statuses() - {None}
        if not new:
            return {}
        found = [status for (status,) in self.api.records(f"{self.year}/status")]
        ids = {str(status.get("status")).replace("_", " "): str(status.get("statusId")) for status in found}
        return {text: id for text, id in ids.items() if text in new}

    def report(self) -> str:
        rounds = [self.calendar[number]["round"] for number in self.wanted]
        return f"{self.year}: calendar of {len(self.calendar)} races; records of {rounds_text(rounds)}"


def rounds_text(rounds: Sequence[str]) -> str:
    return f"round{'s' * (len(rounds) > 1)} {', '.join(rounds)}" if rounds else "no round"


def fetch(api: Api, old: Database, season: str | None) -> list[Fetch]:
    """Fetches `season` whole; or what is new in the latest one, and in the one before if that may have news too."""
    seasons = {str(found.get("season")): found for (found,) in api.records("seasons")}
    if not seasons or not all(re.fullmatch("[1-9][0-9]{3}", name, re.ASCII) for name in seasons):
        raise LoadError(f"{api.address('seasons')}: seasons {', '.join(seasons)[:80]!r}; expected years")
    if season:
        if season not in seasons:
            what = f"no season {season}; it has {min(seasons)} to {max(seasons)}"
            raise LoadError(f"{api.address('seasons')}: {what}")
        return [Fetch(api, old, seasons[season], whole=True)]
    latest = Fetch(api, old, seasons[max(seasons)], whole=False)
    before = str(int(latest.year) - 1)
    if before in seasons and (not latest.run or old.waits_for(before)):
        return [Fetch(api, old, seasons[before], whole=False), latest]
    return [latest]


def merge(old: Season | None, new: Season) -> Season:
    """What the overlay has of a season, and what was fetched now. Races that the new calendar lacks are dropped."""
    if old is None:
        return new
    names = overlay.match(overlay.fetched_races(new.calendar), overlay.fetched_races(old.calendar))
    races = {
        race["raceName"]: {**old.races.get(names.get(race["raceName"], ""), {}), **new.races.get(race["raceName"], {})}
        for race in new.calendar
    }
    races = {name: kinds for name, kinds in races.items() if kinds}
    licence = overlay.licence(old.licence, [new])
    return new._replace(licence=licence, statuses={**old.statuses, **new.statuses}, races=races)


def refresh(database: str, api: Api, season: str | None, corrections: Path | None, progress: Progress) -> list[str]:
    """Refreshes the database. Returns lines for a report. Raises LoadError, sqlite3.Error or OSError."""
    folder = overlay.folder_beside(database)
    said = []
    with suppress(NothingNew), replacement(database) as new:
        with closing(Database(Path(os.path.realpath(database)), progress)) as old:
            seasons = {stored.year: stored for stored in overlay.read(folder)}
            fetches = fetch(api, old, season)
            for fetched in fetches:
                seasons[fetched.year] = merge(seasons.get(fetched.year), fetched.fetched())
                said.append(fetched.report())
            build(new, old.read, corrections, [seasons[name] for name in sorted(seasons)], progress)
            changes = old.differences(new)
        said += [
            *changes,
            f"{database}: {'new data' if changes else 'nothing new'} after {api.requests} requests to {api.url}",
        ]
        if not changes:
            raise NothingNew
        for fetched in fetches:
            overlay.write(folder, seasons[fetched.year])
    return said


def season_argument(text: str) -> str:
    """A season as an argument: nothing, or a year."""
    if text:
        year(text)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description="Bring the database up to date from an API in Ergast's format.")
    parser.add_argument("database", help="file to refresh")
    parser.add_argument("--from", dest="url", default=JOLPICA, help="base address of the API (default: %(default)s)")
    parser.add_argument(
        "--season",
        type=season_argument,
        default="",
        metavar="YEAR",
        help="fetch this season whole; otherwise, what is new in the latest season",
    )
    parser.add_argument(
        "--corrections",
        default=CORRECTIONS,
        type=corrections_argument,
        help="file of known errors, as for load_data.py; or none",
    )
    arguments = parser.parse_args()

    def work(progress: Progress) -> list[str]:
        api = Api(arguments.url or JOLPICA, progress)
        return refresh(arguments.database, api, arguments.season, arguments.corrections, progress)

    run("refresh", arguments.database, work)


if __name__ == "__main__":
    main()
