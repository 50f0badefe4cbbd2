"""What refresh.py has fetched from an API: files beside the database, and how they change a Stage.

One file per season, `{year}.json` in a folder such as `data/racedata.overlay`. It has the objects of the API as they
came, so its values are checked when they are applied. data/README.md says when a season is applied.
"""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

from racedata.loader.dump import LoadError, Value
from racedata.loader.stage import NUMBERED, Field, Stage, lap_time, plain_text, ref, time_of_day

Json = dict[str, Any]


class Fetched(TypedDict):
    """The records of one kind that were fetched of a race."""

    fetched_at: str  # UTC, YYYY-MM-DDTHH:MM:SSZ
    records: list[Json]  # a timing also has its `lap`


class Season(NamedTuple):
    """What was fetched of a season."""

    facts: Json  # its object
    source: str  # the address of the API
    licence: str | None  # of the data
    fetched_at: str  # when the calendar was fetched: UTC, YYYY-MM-DDTHH:MM:SSZ
    calendar: list[Json]  # races by round, each name once
    statuses: dict[str, str]  # the API's statusId of statuses that the database did not have, by text
    races: dict[str, dict[str, Fetched]]  # by the name of the race, then by kind (see KINDS)

    @property
    def year(self) -> str:
        return str(self.facts["season"])


class Kind(NamedTuple):
    """Records of a race: the table they belong to, and where an object of the API has the values of its columns."""

    table: str
    paths: Mapping[str, str]


CLASSIFIED = {"driverId": "Driver.driverId", "constructorId": "Constructor.constructorId", "number": "number"}
SPRINT = {
    **CLASSIFIED,
    "grid": "grid",
    "positionText": "positionText",
    "positionOrder": "position",
    "points": "points",
    "laps": "laps",
    "milliseconds": "Time.millis",
    "fastestLap": "FastestLap.lap",
    "rank": "FastestLap.rank",
    "fastestLapTime": "FastestLap.Time.time",
    "statusId": "status",
}
STANDING = {name: name for name in ("points", "position", "positionText", "wins")}

# By the name of the endpoint.
KINDS = {
    "results": Kind("results", {**SPRINT, "fastestLapSpeed": "FastestLap.AverageSpeed.speed"}),
    "sprint": Kind("sprint_results", SPRINT),
    "qualifying": Kind("qualifying", {**CLASSIFIED, "position": "position", "q1": "Q1", "q2": "Q2", "q3": "Q3"}),
    "laps": Kind("lap_times", {name: name for name in ("driverId", "lap", "position", "time")}),
    "pitstops": Kind(
        "pit_stops",
        {"driverId": "driverId", "stop": "stop", "lap": "lap", "time": "time", "milliseconds": "duration"},
    ),
    "driverstandings": Kind("driver_standings", {"driverId": "Driver.driverId", **STANDING}),
    "constructorstandings": Kind("constructor_standings", {"constructorId": "Constructor.constructorId", **STANDING}),
}


class Facts(NamedTuple):
    """A table of drivers, constructors or circuits, and where an object of the API has the values of its columns."""

    id: str
    reference: str
    paths: Mapping[str, str]


FACTS = {
    "circuits": Facts(
        "circuitId",
        "circuitRef",
        {
            "circuitRef": "circuitId",
            "name": "circuitName",
            "location": "Location.locality",
            "country": "Location.country",
            "lat": "Location.lat",
            "lng": "Location.long",
            "url": "url",
        },
    ),
    "constructors": Facts(
        "constructorId",
        "constructorRef",
        {"constructorRef": "constructorId", "name": "name", "nationality": "nationality", "url": "url"},
    ),
    "drivers": Facts(
        "driverId",
        "driverRef",
        {
            "driverRef": "driverId",
            "number": "permanentNumber",
            "code": "code",
            "forename": "givenName",
            "surname": "familyName",
            "dob": "dateOfBirth",
            "nationality": "nationality",
            "url": "url",
        },
    ),
}
SESSIONS = {
    "fp1": "FirstPractice",
    "fp2": "SecondPractice",
    "fp3": "ThirdPractice",
    "quali": "Qualifying",
    "sprint": "Sprint",
    "sq": "SprintQualifying",
}
RACE = {
    "year": "season",
    "round": "round",
    "name": "raceName",
    "date": "date",
    "time": "time",
    "url": "url",
}


# Files.


def folder_beside(database: str | Path) -> Path:
    """The folder of the overlay of the database at a path: `racedata.overlay` for `racedata.db`."""
    path = Path(os.path.realpath(database))
    return path.with_name(f"{path.name.removesuffix('.db')}.overlay")


def read(folder: Path) -> list[Season]:
    """The seasons in a folder, in order. Raises LoadError for a file that is not an overlay."""
    seasons = []
    names = os.listdir(folder) if folder.exists() else []  # glob() would ignore a folder that cannot be read
    for path in sorted(folder / name for name in names if re.fullmatch(r"[0-9]{4}\.json", name)):
        try:
            season = Season(**json.loads(path.read_bytes()))
            if season.year != path.stem or not well_formed(season):
                raise ValueError
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise LoadError(f"{path}: not a season that refresh has written; delete the file") from None
        seasons.append(season)
    return seasons


def well_formed(season: Season) -> bool:
    """Whether a season has its lists, objects and texts. The values in records are checked when they are applied."""
    kinds = [kind for race in season.races.values() for kind in race.values()]
    lists = [season.calendar, *(kind["records"] for kind in kinds)]
    texts = [
        *(season.source, season.fetched_at, *season.statuses.values(), *(kind["fetched_at"] for kind in kinds)),
        *(race[key] for race in season.calendar for key in ("raceName", "round")),
    ]
    return (
        all(isinstance(objects, list) and objects for objects in lists)
        and all(isinstance(found, dict) for objects in lists for found in objects)
        and all(isinstance(text, str) for text in texts)
        and isinstance(season.licence, str | None)
        and all(name in KINDS for race in season.races.values() for name in race)
    )


def write(folder: Path, seasons: Sequence[Season]) -> None:
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


# Values.


def duration(text: str) -> int:
    """a duration such as 23.251 or 1:04.278"""
    found = re.fullmatch(r"(?:(?:([0-9]{1,4}):)?([0-9]{1,4}):)?([0-9]{1,6})(?:\.([0-9]{1,3}))?", text, re.ASCII)
    if not found:
        raise ValueError
    hours, minutes, seconds, fraction = found.groups(default="0")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1000 + int(fraction.ljust(3, "0"))


def utc_time(text: str) -> str:
    """a time of day such as 13:00:00Z"""
    return str(time_of_day(text.removesuffix("Z")))


def short_lap_time(text: str) -> str:
    """a time such as 1:07.012"""
    return str(lap_time(text if ":" in text else f"0:{text}"))


def status_text(text: str) -> str:
    """a status such as Finished"""
    # Jolpica-F1 writes some statuses as its code names them: Did_not_start.
    return str(plain_text(text)).replace("_", " ")


def fields(stage: Stage, table: str) -> dict[str, Field]:
    """The columns of a staged table, with parsers for what an API has: references and texts instead of ids."""
    found = {}
    for field in stage.fields(table):
        if field.parent:
            field = field._replace(parse=status_text if field.parent == "status" else ref)
        elif (table, field.name) == ("pit_stops", "milliseconds"):
            field = field._replace(parse=duration)
        elif table in ("races", "sessions") and field.name == "time":
            field = field._replace(parse=utc_time)
        elif field.parse is lap_time:
            field = field._replace(parse=short_lap_time)
        found[field.name] = field
    return found


def at(found: Any, path: str) -> Any:
    """What an object of an API has at a path such as `Time.millis`. None if there is nothing."""
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def value(found: Any, path: str, field: Field, place: str) -> Value:
    """The value of a column that an object of an API has at a path. None if there is none."""
    found = at(found, path)
    if isinstance(found, str):
        found = found.strip(" ")
    missing = found is None or found == ""
    if missing and not field.required:
        return None
    try:
        if not isinstance(found, str) or missing:
            raise ValueError
        return field.parse(found)
    except ValueError:
        what = "missing" if missing else repr(str(found)[:80])
        raise LoadError(f"{place}, {path}: {what}; expected {field.parse.__doc__}") from None


def row(record: Json, paths: Mapping[str, str], fields: Mapping[str, Field], place: str) -> dict[str, Value]:
    """The values of columns, by name."""
    return {column: value(record, path, fields[column], place) for column, path in paths.items()}


def rows(kind: str, records: Sequence[Json], fields: Mapping[str, Field], place: str) -> Iterator[dict[str, Value]]:
    """The rows of a race's records, with references and texts instead of ids."""
    for number, record in enumerate(records, 1):
        lap = record.get("FastestLap")
        if isinstance(lap, dict) and lap.get("rank") == "0":  # Ergast's way to say that no lap of the driver counts
            record = {**record, "FastestLap": None}
        yield row(record, KINDS[kind].paths, fields, f"{place}, {kind}, record {number}")


# Calendars.


class CalendarRace(NamedTuple):
    """A race in a calendar. Its round may change, so it is not among what identifies it."""

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
            *(str(at(race, path) or "") for path in ("raceName", "raceName", "url", "Circuit.circuitId", "date"))
        )
        for race in calendar
    ]


def match(races: Sequence[CalendarRace], others: Sequence[CalendarRace]) -> dict[Any, Any]:
    """The id in `others` of each race in `races` that is there too, by its own id.

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


def licence(of_dump: str | None, seasons: Sequence[Season]) -> str | None:
    """The licences of a dump and of what was fetched, each once."""
    licences = [*(of_dump or "").split(", "), *(season.licence or "" for season in seasons)]
    return ", ".join(dict.fromkeys(filter(None, licences))) or None


def rounds_text(rounds: Sequence[str]) -> str:
    return f"round{'s' * (len(rounds) > 1)} {', '.join(rounds)}" if rounds else "no round"


def apply(stage: Stage, seasons: Sequence[Season]) -> list[str]:
    """Changes a stage by what was fetched. Returns lines for a report. Raises LoadError for a wrong value."""
    (newest,) = stage.db.execute("SELECT max(date) FROM dump.results JOIN dump.races USING (raceId)").fetchone()
    changes = [Change(stage, season, newest or "") for season in seasons]
    return [change.apply() for change in changes]


class Change:
    """Applies a season to a stage. `newest` is the date of the latest race in the dump that has results."""

    def __init__(self, stage: Stage, season: Season, newest: str) -> None:
        self.db, self.season, self.newest = stage.db, season, newest
        self.place = f"{season.source}, {season.year}"
        self.fields = {
            table: fields(stage, table)
            for table in ("seasons", "races", "sessions", *FACTS, *(kind.table for kind in KINDS.values()))
        }

    def older(self, fetched_at: str) -> bool:
        """Whether the dump is newer than `fetched_at`: it has results of a race on a later day."""
        return fetched_at[:10] < self.newest

    def apply(self) -> str:
        """Applies the calendar, then the records of each race. Returns a line for a report."""
        stored = stored_calendar(self.db, "dump", self.season.year)
        ids: dict[str, int] = match(fetched_calendar(self.season.calendar), stored)
        try:
            if not self.older(self.season.fetched_at):
                self.replace_calendar([race.id for race in stored], ids)
            applied = [
                str(race["round"])
                for race in self.season.calendar
                if race["raceName"] in ids and self.replace_records(race["raceName"], ids[race["raceName"]])
            ]
        except sqlite3.IntegrityError as error:
            raise LoadError(f"{self.place}: {error}; expected records without duplicates") from None
        what = rounds_text(applied) if applied else "the calendar"
        if self.older(self.season.fetched_at):
            what = f"older than the dump; used for what the dump lacks: {what if applied else 'nothing'}"
        return f"overlay: {self.season.year}: {what} (from {self.season.source})"

    def replace_calendar(self, stored: Sequence[int], ids: dict[str, int]) -> None:
        """Replaces the races of the season. Adds the ids of new ones to `ids`, the raceId by name."""
        for race_id in set(stored) - set(ids.values()):
            for kind in KINDS.values():
                self.db.execute(f"DELETE FROM dump.{kind.table} WHERE raceId = ?", (race_id,))
        next_id = self.next_id("races", "raceId")
        of_season = "(SELECT raceId FROM dump.races WHERE year = ?)"
        for table in ("sessions", "races"):
            self.db.execute(f"DELETE FROM dump.{table} WHERE raceId IN {of_season}", (self.season.year,))
        for race in self.season.calendar:
            place = f"{self.place}, {race['raceName']}"
            if "SprintShootout" in race:  # what SprintQualifying was called in 2023
                race = {**race, "SprintQualifying": race["SprintShootout"]}
            name = race["raceName"]
            if name not in ids:
                ids[name], next_id = next_id, next_id + 1
            circuit = self.upsert("circuits", race.get("Circuit"), f"{place}, Circuit", update=True)
            new = row(race, RACE, self.fields["races"], place)
            self.insert("races", [{"raceId": ids[name], "circuitId": circuit, **new}])
            for session, key in SESSIONS.items():
                when = row(race, {what: f"{key}.{what}" for what in ("date", "time")}, self.fields["sessions"], place)
                if any(when.values()):
                    self.insert("sessions", [{"raceId": ids[name], "session": session, **when}])
        url = value(self.season.facts, "url", self.fields["seasons"]["url"], self.place)
        self.db.execute("INSERT OR IGNORE INTO dump.seasons (year) VALUES (?)", (self.season.year,))
        self.db.execute("UPDATE dump.seasons SET url = ifnull(?, url) WHERE year = ?", (url, self.season.year))

    def replace_records(self, name: str, race_id: int) -> bool:
        """Replaces the records of a race by those that were fetched; if the dump is newer, only what it lacks."""
        place, replaced = f"{self.place}, {name}", False
        for kind, fetched in self.season.races.get(name, {}).items():
            table, records, older = KINDS[kind].table, fetched["records"], self.older(fetched["fetched_at"])
            if older and self.db.execute(f"SELECT 1 FROM dump.{table} WHERE raceId = ?", (race_id,)).fetchone():
                continue
            found = list(rows(kind, records, self.fields[table], place))
            for number, record in enumerate(records, 1):
                for parent, child in (("drivers", "Driver"), ("constructors", "Constructor")):
                    if child in record:
                        self.upsert(parent, record[child], f"{place}, {kind}, record {number}, {child}", not older)
            new = [self.with_ids(values, race_id, place) for values in found]
            key = NUMBERED[table].key
            if "," not in key:
                # First the ids of the rows that are replaced: what was already applied before stays as it is.
                sql = f"SELECT {key} FROM dump.{table} WHERE raceId = ? ORDER BY {key}"
                ids = chain(
                    (id for (id,) in self.db.execute(sql, (race_id,)).fetchall()), count(self.next_id(table, key))
                )
                new = [{key: id, **values} for id, values in zip(ids, new)]
            self.db.execute(f"DELETE FROM dump.{table} WHERE raceId = ?", (race_id,))
            self.insert(table, new)
            replaced = True
        return replaced

    def with_ids(self, values: Mapping[str, Value], race_id: int, place: str) -> dict[str, Value]:
        """A row of a race's records with ids instead of references and texts."""
        ids: dict[str, Value] = {"raceId": race_id}
        if "driverId" in values:
            ids["driverId"] = self.id_of("drivers", values["driverId"], place)
        if "constructorId" in values:
            ids["constructorId"] = self.id_of("constructors", values["constructorId"], place)
        if "statusId" in values:
            ids["statusId"] = self.status(values["statusId"])
        return {**values, **ids}

    def upsert(self, table: str, found: Any, place: str, update: bool) -> int:
        """The id of a driver, constructor or circuit. A new one is added, another one updated."""
        facts = FACTS[table]
        values = row(found, facts.paths, self.fields[table], place)
        stored = self.find(table, values[facts.reference])
        if stored is None:
            new_id = self.next_id(table, facts.id)
            self.insert(table, [{facts.id: new_id, **values}])
            return new_id
        if update:
            known = {name: new for name, new in values.items() if new is not None}
            changes = ", ".join(f"{name} = ?" for name in known)
            self.db.execute(f"UPDATE dump.{table} SET {changes} WHERE {facts.id} = ?", [*known.values(), stored])
        return stored

    def find(self, table: str, reference: Value) -> int | None:
        """The id of a driver, constructor or circuit; None if there is none with this reference."""
        facts = FACTS[table]
        found = self.db.execute(
            f"SELECT {facts.id} FROM dump.{table} WHERE {facts.reference} = ?", (reference,)
        ).fetchone()
        return int(found[0]) if found else None

    def id_of(self, table: str, reference: Value, place: str) -> int:
        """The id of a driver or constructor that must be there."""
        found = self.find(table, reference)
        if found is None:
            raise LoadError(f"{place}: {reference!r} is none of the {table}")
        return found

    def status(self, text: Value) -> int | None:
        """The id of a status. A new one gets the id that the API has for it, if that is free."""
        if text is None:
            return None
        found = self.db.execute("SELECT statusId FROM dump.status WHERE status = ?", (text,)).fetchone()
        if found:
            return int(found[0])
        wanted = self.season.statuses.get(str(text), "")
        taken = self.db.execute("SELECT 1 FROM dump.status WHERE statusId = ?", (wanted,)).fetchone()
        number = (
            int(wanted)
            if re.fullmatch("[0-9]{1,9}", wanted, re.ASCII) and not taken
            else self.next_id("status", "statusId")
        )
        self.insert("status", [{"statusId": number, "status": text}])
        return number

    def next_id(self, table: str, id: str) -> int:
        (last,) = self.db.execute(f"SELECT max({id}) FROM dump.{table}").fetchone()
        return (last or 0) + 1

    def insert(self, table: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Inserts rows that have the same columns."""
        names = list(rows[0])
        self.db.executemany(
            f"INSERT INTO dump.{table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",
            [list(values.values()) for values in rows],
        )
