"""What refresh.py has fetched from an API: files beside the database, and how they change a Stage.

One file per season, `{year}.json` in a folder such as `data/racedata.overlay`. It has the objects of the API as they
came, so its values are checked when they are applied. data/README.md says when a season is applied.
"""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from racedata.loader.api_rows import Json, place_of, row_of, rows_of, sessions_of, value_at
from racedata.loader.archives import is_address
from racedata.loader.errors import LoadError
from racedata.loader.stage import Stage
from racedata.loader.tables import BY_NAME, RACE_TABLES, Table
from racedata.loader.values import Value, fetch_time, from_one, plain_text, whole_number

FILE_BYTES = 20_000_000  # a limit of memory, far above what a season needs


class Fetched(TypedDict):
    """The records of one endpoint that were fetched of a race."""

    fetched_at: str  # UTC, YYYY-MM-DDTHH:MM:SSZ
    records: list[Json]  # a timing also has its `lap`


class Season(NamedTuple):
    """What was fetched of a season."""

    facts: Json  # the season's own object in the list of seasons
    source: str  # the address of the API
    licence: str | None  # of the data
    fetched_at: str  # when the calendar was fetched: UTC, YYYY-MM-DDTHH:MM:SSZ
    calendar: list[Json]  # races by round, each name once
    statuses: dict[str, str]  # the API's statusId of statuses that the database did not have, by text
    races: dict[str, dict[str, Fetched]]  # by the name of the race, then by endpoint (see RACE_TABLES in tables.py)

    @property
    def year(self) -> str:
        return str(self.facts["season"])


# Files.


def folder_beside(database: str | Path) -> Path:
    """The folder of the overlay of the database at a path: `racedata.overlay` for `racedata.db`."""
    path = Path(os.path.realpath(database))
    return path.with_name(f"{path.name.removesuffix('.db')}.overlay")


def read_seasons(folder: Path) -> list[Season]:
    """The seasons in a folder, in order. Raises LoadError for a file that is not an overlay."""
    seasons = []
    names = os.listdir(folder) if folder.exists() else []  # glob() would ignore a folder that cannot be read
    for path in sorted(folder / name for name in names if re.fullmatch(r"[0-9]{4}\.json", name)):
        try:
            if not path.is_file() or path.stat().st_size > FILE_BYTES:  # a FIFO would block, a device might never end
                raise ValueError
            season = Season(**json.loads(path.read_bytes()))
            if season.year != path.stem or not is_well_formed(season):
                raise ValueError
            check_texts(season)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise LoadError(f"{path}: not a season that refresh has written; delete the file") from None
        seasons.append(season)
    return seasons


def is_well_formed(season: Season) -> bool:
    """Whether a season has its lists, objects and texts."""
    fetched = [found for race in season.races.values() for found in race.values()]
    lists = [season.calendar, *(found["records"] for found in fetched)]
    return (
        all(isinstance(objects, list) and objects for objects in lists)
        and all(isinstance(found, dict) for objects in lists for found in objects)
        and all(isinstance(id, str) for id in season.statuses.values())
        and all(race["season"] == season.year for race in season.calendar)
        and is_address(season.source)
        and all(name in RACE_TABLES for race in season.races.values() for name in race)
    )


def check_texts(season: Season) -> None:
    """Raises ValueError or TypeError for a wrong text. The values in records are checked when they are applied."""
    for text in (season.source, season.licence or "-"):
        plain_text(text)
    fetched = [found for race in season.races.values() for found in race.values()]
    for time in (season.fetched_at, *(found["fetched_at"] for found in fetched)):
        fetch_time(time)
    for race in season.calendar:
        plain_text(race["raceName"].strip(" "))
        from_one(race["round"])


def write_seasons(folder: Path, seasons: Sequence[Season]) -> None:
    """Replaces the files of seasons, once all new ones are complete. No reader sees half a file."""
    folder.mkdir(exist_ok=True)
    new = {folder / f".{season.year}.writing": folder / f"{season.year}.json" for season in seasons}
    try:
        for season, path in zip(seasons, new):
            with path.open("w", encoding="utf-8") as file:
                json.dump(season._asdict(), file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
        for path, old in new.items():
            os.replace(path, old)
    finally:
        for path in new:
            path.unlink(missing_ok=True)
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# Calendars.


class CalendarRace(NamedTuple):
    """A race in a calendar. Its round may change, so it does not identify the race."""

    id: Any  # unique in the calendar
    name: str
    url: str | None
    circuit: str
    date: str


def stored_calendar(db: sqlite3.Connection, schema: str, year: str) -> list[CalendarRace]:
    """The calendar of a season in a database. `id` is the raceId."""
    return [
        CalendarRace(*found)
        for found in db.execute(
            f"""SELECT raceId, races.name, races.url, circuitRef, date
                FROM {schema}.races JOIN {schema}.circuits USING (circuitId) WHERE year = ? ORDER BY round""",
            (year,),
        )
    ]


def fetched_calendar(calendar: Sequence[Json]) -> list[CalendarRace]:
    """A calendar of an API. `id` is the name."""
    return [
        CalendarRace(
            *(str(value_at(race, path) or "") for path in ("raceName", "raceName", "url", "Circuit.circuitId", "date"))
        )
        for race in calendar
    ]


def match_races(races: Sequence[CalendarRace], others: Sequence[CalendarRace]) -> dict[Any, Any]:
    """Ids in `others` of the same races, by their ids in `races`.

    The same race has the same name; or, if it was renamed, the same article, or the same circuit and date.
    """
    marks: list[Callable[[CalendarRace], Any]] = [
        lambda race: race.name,
        lambda race: race.url and re.sub("^https?:", "", race.url),
        lambda race: (race.circuit.lower(), race.date),
    ]
    matched: dict[Any, Any] = {}
    for mark in marks:
        free = {mark(other): other.id for other in others if other.id not in matched.values()}
        for race in races:
            if race.id not in matched and mark(race) and mark(race) in free:
                matched[race.id] = free.pop(mark(race))
    return matched


# Changes.


def joined(first: str | None, others: Iterable[str | None]) -> str | None:
    """Texts separated by commas, each once: `first`, which may be several already, and others."""
    texts = [*(first or "").split(", "), *others]
    return ", ".join(dict.fromkeys(filter(None, texts))) or None


def rounds_text(rounds: Sequence[str]) -> str:
    return f"round{'s' * (len(rounds) > 1)} {', '.join(rounds)}" if rounds else "no round"


def apply_seasons(stage: Stage, seasons: Sequence[Season]) -> list[str]:
    """Changes a stage by what was fetched. Returns lines for a report. Raises LoadError for a wrong value."""
    (newest,) = stage.db.execute("SELECT max(date) FROM dump.results JOIN dump.races USING (raceId)").fetchone()
    return [SeasonChange(stage.db, season, newest or "").make() for season in seasons]


class SeasonChange:
    """Applies a season to a stage. `newest` is the date of the latest race in the dump that has results."""

    def __init__(self, db: sqlite3.Connection, season: Season, newest: str) -> None:
        self.db, self.season, self.newest = db, season, newest
        self.place = f"{season.source}, {season.year}"

    def predates_dump(self, fetched_at: str) -> bool:
        """Whether what was fetched then is older than the dump, which has results of a race on a later day."""
        return fetched_at[:10] < self.newest

    def make(self) -> str:
        """Applies the calendar, then the records of each race. Returns a line for a report."""
        stored = stored_calendar(self.db, "dump", self.season.year)
        ids: dict[str, int] = match_races(fetched_calendar(self.season.calendar), stored)
        older = self.predates_dump(self.season.fetched_at)
        try:
            if not older:
                self.replace_calendar([race.id for race in stored], ids)
            applied = [
                str(race["round"])
                for race in self.season.calendar
                if race["raceName"] in ids and self.replace_records(race["raceName"], ids[race["raceName"]])
            ]
        except sqlite3.IntegrityError as error:
            raise LoadError(f"{self.place}: {error}; expected records without duplicates") from None
        what = rounds_text(applied) if applied else "the calendar"
        if older:
            what = f"older than the dump; used for what the dump lacks: {what if applied else 'nothing'}"
        return f"overlay: {self.season.year}: {what} (from {self.season.source})"

    def replace_calendar(self, stored: Sequence[int], ids: dict[str, int]) -> None:
        """Replaces the races of the season. `ids` maps names to raceIds; new races are added to it."""
        for race_id in set(stored) - set(ids.values()):
            for table in RACE_TABLES.values():
                self.db.execute(f"DELETE FROM dump.{table.name} WHERE raceId = ?", (race_id,))
        next_id = self.next_id("races", "raceId")
        for name in ("sessions", "races"):
            of_season = "SELECT raceId FROM dump.races WHERE year = ?"
            self.db.execute(f"DELETE FROM dump.{name} WHERE raceId IN ({of_season})", (self.season.year,))
        for race in self.season.calendar:
            place = f"{self.place}, {race['raceName']}"
            name = race["raceName"]
            if name not in ids:
                ids[name], next_id = next_id, next_id + 1
            circuit = self.upsert("circuits", race.get("Circuit"), f"{place}, Circuit", update=True)
            self.insert("races", {"raceId": ids[name], "circuitId": circuit, **row_of(race, BY_NAME["races"], place)})
            for session in sessions_of(race, place):
                self.insert("sessions", {"raceId": ids[name], **session})
        (url,) = row_of(self.season.facts, BY_NAME["seasons"], self.place).values()
        self.db.execute("INSERT OR IGNORE INTO dump.seasons (year) VALUES (?)", (self.season.year,))
        self.db.execute("UPDATE dump.seasons SET url = ifnull(?, url) WHERE year = ?", (url, self.season.year))

    def replace_records(self, name: str, race_id: int) -> bool:
        """Replaces the records of a race by those that were fetched; if the dump is newer, only what it lacks."""
        place, replaced = f"{self.place}, {name}", False
        for endpoint, fetched in self.season.races.get(name, {}).items():
            table, records, older = RACE_TABLES[endpoint], fetched["records"], self.predates_dump(fetched["fetched_at"])
            if older and self.db.execute(f"SELECT 1 FROM dump.{table.name} WHERE raceId = ?", (race_id,)).fetchone():
                continue
            rows = list(rows_of(records, table, place))
            for number, record in enumerate(records, 1):
                for parent, key in (("drivers", "Driver"), ("constructors", "Constructor")):
                    if key in record:
                        self.upsert(parent, record[key], f"{place_of(place, table, number)}, {key}", not older)
            rows = [{"raceId": race_id, **self.with_ids(row, place)} for row in rows]
            if table.id:
                rows = [{table.id: id, **row} for id, row in zip(self.ids_for(table, race_id), rows)]
            self.db.execute(f"DELETE FROM dump.{table.name} WHERE raceId = ?", (race_id,))
            for row in rows:
                self.insert(table.name, row)
            replaced = True
        return replaced

    def ids_for(self, table: Table, race_id: int) -> Iterable[int]:
        """Ids for the records of a race: those of the rows that they replace, then free ones.

        So a season that is applied twice changes nothing the second time.
        """
        sql = f"SELECT {table.id} FROM dump.{table.name} WHERE raceId = ? ORDER BY {table.id}"
        replaced = [id for (id,) in self.db.execute(sql, (race_id,))]
        return chain(replaced, count(self.next_id(table.name, table.id)))

    def with_ids(self, row: Mapping[str, Value], place: str) -> dict[str, Value]:
        """A row with ids instead of references and texts."""
        ids: dict[str, Value] = {}
        if "driverId" in row:
            ids["driverId"] = self.id_of("drivers", row["driverId"], place)
        if "constructorId" in row:
            ids["constructorId"] = self.id_of("constructors", row["constructorId"], place)
        if "statusId" in row:
            ids["statusId"] = self.status_id(row["statusId"])
        return {**row, **ids}

    def upsert(self, name: str, found: Any, place: str, update: bool) -> int:
        """The id of a driver, constructor or circuit. A new one is added, another one updated."""
        table = BY_NAME[name]
        id, row = table.names[0], row_of(found, table, place)
        stored = self.find(table, row[table.key[0]])
        if stored is None:
            new_id = self.next_id(name, id)
            self.insert(name, {id: new_id, **row})
            return new_id
        if update:
            known = {column: value for column, value in row.items() if value is not None}
            changes = ", ".join(f"{column} = ?" for column in known)
            self.db.execute(f"UPDATE dump.{name} SET {changes} WHERE {id} = ?", [*known.values(), stored])
        return stored

    def find(self, table: Table, reference: Value) -> int | None:
        """The id of a driver, constructor or circuit; None if there is none with this reference."""
        sql = f"SELECT {table.names[0]} FROM dump.{table.name} WHERE {table.key[0]} = ?"
        found = self.db.execute(sql, (reference,)).fetchone()
        return int(found[0]) if found else None

    def id_of(self, name: str, reference: Value, place: str) -> int:
        """The id of a driver or constructor that must be there."""
        found = self.find(BY_NAME[name], reference)
        if found is None:
            raise LoadError(f"{place}: {reference!r} is none of the {name}")
        return found

    def status_id(self, text: Value) -> int | None:
        """The id of a status. A new one gets the id that the API has for it, if that is free."""
        if text is None:
            return None
        found = self.db.execute("SELECT statusId FROM dump.status WHERE status = ?", (text,)).fetchone()
        if found:
            return int(found[0])
        id = self.season.statuses.get(str(text), "")
        taken = self.db.execute("SELECT 1 FROM dump.status WHERE statusId = ?", (id,)).fetchone()
        number = int(id) if whole_number.fullmatch(id) and not taken else self.next_id("status", "statusId")
        self.insert("status", {"statusId": number, "status": text})
        return number

    def next_id(self, name: str, id: str) -> int:
        (last,) = self.db.execute(f"SELECT max({id}) FROM dump.{name}").fetchone()
        return (last or 0) + 1

    def insert(self, name: str, row: Mapping[str, Value]) -> None:
        sql = f"INSERT INTO dump.{name} ({', '.join(row)}) VALUES ({', '.join('?' * len(row))})"
        self.db.execute(sql, list(row.values()))
