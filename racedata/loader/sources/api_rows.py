"""Objects of an API in Ergast's format as rows of a Stage: model.py says where they have the
values of the columns.
"""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from racedata.formats import Json
from racedata.loader.errors import LoadError
from racedata.loader.sql import insertion, update_known
from racedata.loader.stage import Stage
from racedata.model import BY_NAME, RACE_TABLES, SHOOTOUT, SPRINT_QUALIFYING, WEEKEND, Column, Table
from racedata.values import Value, whole_number


def value_at(found: Any, path: str) -> Any:
    """The value at a path such as `Time.millis` in an object of an API; None if it is missing."""
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def value_of(found: Any, path: str, column: Column, place: str) -> Value:
    """The value of a column, at a path in an object of an API; None if it is missing."""
    text = value_at(found, path)
    if isinstance(text, str):
        text = text.strip(" ")
    missing = text is None or text == ""
    if missing and not column.required:
        return None
    try:
        if not isinstance(text, str) or missing:
            raise ValueError
        return column.parse_api(text)
    except ValueError:
        what = "missing" if missing else repr(str(text)[:80])
        raise LoadError(f"{place}, {path}: {what}; expected {column.parse_api.expected}") from None


def row_of(found: Any, table: Table, place: str) -> dict[str, Value]:
    """An object of an API as a row: values by column, with references and texts instead of ids."""
    columns = {column.name: column for column in table.columns}
    return {name: value_of(found, path, columns[name], place) for name, path in table.paths.items()}


def rows_of(records: Sequence[Json], table: Table, place: str) -> Iterator[dict[str, Value]]:
    """The records of a race as rows."""
    for number, record in enumerate(records, 1):
        lap = record.get("FastestLap")
        # Ergast's way to say that no lap of the driver counts
        if isinstance(lap, dict) and lap.get("rank") == "0":
            record = {**record, "FastestLap": None}
        yield row_of(record, table, place_of(place, table, number))


def place_of(place: str, table: Table, number: int) -> str:
    """For messages, the place of a record: `…, results, record 1`."""
    return f"{place}, {table.endpoint or table.name}, record {number}"


def sessions_of(race: Mapping[str, Any], place: str) -> Iterator[dict[str, Value]]:
    """The sessions of an API's race that have a date or time, as rows without the raceId."""
    if SHOOTOUT.key in race:
        race = {**race, SPRINT_QUALIFYING.key: race[SHOOTOUT.key]}
    table = BY_NAME["sessions"]
    columns = {column.name: column for column in table.columns}
    for session in WEEKEND:
        row = {
            name: value_of(race, f"{session.key}.{path}", columns[name], place)
            for name, path in table.paths.items()
        }
        if any(row.values()):
            yield {"session": session.name, **row}


class ApiSeason:
    """Fills a Stage with what was fetched of a season. `place` begins messages: the API and the
    season.

    The lists of `old`, the database that is refreshed, are in the Stage first: records refer to
    their rows too.
    """

    def __init__(self, stage: Stage, old: sqlite3.Connection, place: str) -> None:
        self.stage, self.db, self.place = stage, stage.db, place
        for name in ("circuits", "constructors", "drivers", "status"):
            columns = BY_NAME[name].names
            rows = old.execute(f"SELECT {', '.join(columns)} FROM {name}").fetchall()
            stage.insert(name, columns, list(zip(*rows)))

    def add_calendar(self, season: Json, races: Sequence[Json]) -> None:
        """Adds the races of a season, whose raceId is the round."""
        (url,) = row_of(season, BY_NAME["seasons"], self.place).values()
        self.insert("seasons", {"year": int(season["season"]), "url": url})
        for race in races:
            place = f"{self.place}, {race['raceName']}"
            circuit = self.add_to_list("circuits", race.get("Circuit"), f"{place}, Circuit")
            row = row_of(race, BY_NAME["races"], place)
            self.insert("races", {"raceId": row["round"], "circuitId": circuit, **row})
            for session in sessions_of(race, place):
                self.insert("sessions", {"raceId": row["round"], **session})

    def add_records(
        self, race: Json, endpoint: str, records: Sequence[Json], statuses: Mapping[Value, str]
    ) -> None:
        """Adds the records of a race. `statuses` has the API's ids of statuses, by text."""
        place, table = f"{self.place}, {race['raceName']}", RACE_TABLES[endpoint]
        for number, record in enumerate(records, 1):
            for parent, key in (("drivers", "Driver"), ("constructors", "Constructor")):
                if key in record:
                    self.add_to_list(
                        parent, record[key], f"{place_of(place, table, number)}, {key}"
                    )
        free = self.next_id(table.name, table.id) if table.id else 0
        for number, row in enumerate(rows_of(records, table, place), 1):
            facts = {
                "raceId": int(race["round"]),
                **row,
                **({table.id: free + number - 1} if table.id else {}),
            }
            for name, parent in (("driverId", "drivers"), ("constructorId", "constructors")):
                if name in row:
                    facts[name] = self.id_of(parent, row[name], place)
            if row.get("statusId") is not None:
                facts["statusId"] = self.status_id(row["statusId"], statuses)
            try:
                self.insert(table.name, facts)
            except sqlite3.IntegrityError:
                key = ", ".join(str(row[name]) for name in table.unique if name in row)
                what = f"{key!r} appears twice; expected once"
                raise LoadError(f"{place_of(place, table, number)}: {what}") from None

    def add_to_list(self, name: str, found: Any, place: str) -> int:
        """The id of a driver, constructor or circuit, which is added or updated."""
        table = BY_NAME[name]
        id, row = table.names[0], row_of(found, table, place)
        stored = self.find(table, row[table.key[0]])
        if stored is None:
            stored = self.next_id(name, id)
            self.insert(name, {id: stored, **row})
        else:
            update_known(self.db, f"stage.{name}", row, id, stored)
        return stored

    def id_of(self, name: str, reference: Value, place: str) -> int:
        """The id of a driver or constructor. Raises LoadError if it is missing."""
        found = self.find(BY_NAME[name], reference)
        if found is None:
            raise LoadError(f"{place}: {reference!r}; expected one of the {name}")
        return found

    def status_id(self, text: Value, statuses: Mapping[Value, str]) -> int:
        """The id of a status. A new one gets the id that the API has for it, if that is free."""
        found = self.db.execute(
            "SELECT statusId FROM stage.status WHERE status = ?", (text,)
        ).fetchone()
        if found:
            return int(found[0])
        id = statuses.get(text, "")
        is_used = self.db.execute("SELECT 1 FROM stage.status WHERE statusId = ?", (id,)).fetchone()
        number = (
            int(id)
            if whole_number.fullmatch(id) and not is_used
            else self.next_id("status", "statusId")
        )
        self.insert("status", {"statusId": number, "status": text})
        return number

    def find(self, table: Table, reference: Value) -> int | None:
        """The id of a driver, constructor or circuit; None if there is none with this reference."""
        sql = f"SELECT {table.names[0]} FROM stage.{table.name} WHERE {table.key[0]} = ?"
        found = self.db.execute(sql, (reference,)).fetchone()
        return int(found[0]) if found else None

    def next_id(self, name: str, id: str) -> int:
        (last,) = self.db.execute(f"SELECT max({id}) FROM stage.{name}").fetchone()
        return (last or 0) + 1

    def insert(self, name: str, row: Mapping[str, Value]) -> None:
        self.db.execute(insertion(f"stage.{name}", tuple(row)), list(row.values()))
