"""Objects of an API in Ergast's format as rows of parts: model.py says where they have the values
of the columns.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from racedata.formats import Json
from racedata.loader.errors import LoadError
from racedata.loader.parts import LISTS, Calendar, Part, Row, as_parts
from racedata.loader.sources.statuses import known_statuses
from racedata.model import (
    KIND_BY_ENDPOINT,
    SHOOTOUT,
    SPRINT_QUALIFYING,
    TABLE_BY_NAME,
    WEEKEND,
    Column,
    Table,
)
from racedata.values import Value


def value_at(value: Any, path: str) -> Any:
    """The value at a path such as `Time.millis` in an object of an API; None if it is missing."""
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


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


def row_of(record: Any, table: Table, place: str) -> dict[str, Value]:
    """An object of an API as a row: values by column, with references and texts instead of ids."""
    return {
        column.name: value_of(record, column.path, column, place)
        for column in table.columns
        if column.path
    }


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
    columns = [column for column in TABLE_BY_NAME["sessions"].columns if column.path]
    for session in WEEKEND:
        row = {
            column.name: value_of(race, f"{session.key}.{column.path}", column, place)
            for column in columns
        }
        if any(row.values()):
            yield {"session": session.name, **row}


class SeasonParts:
    """Takes apart what was fetched of a season. `place` begins messages: the API and the season.

    `known` has the references that records may name although the API gave no facts about them.
    """

    def __init__(self, season: int, place: str, known: Mapping[str, Collection[Value]]) -> None:
        self.season, self.place, self.known = season, place, known
        self.lists: dict[str, dict[Value, Row]] = {name: {} for name in LISTS}
        self.parts: list[Part] = []
        self.statuses = known_statuses()

    def calendar(self, races: Sequence[Json]) -> Calendar:
        """The calendar of the season."""
        rows = []
        for race in races:
            place = f"{self.place}, {race['raceName']}"
            circuit = self.add_to_list("circuits", race.get("Circuit"), f"{place}, Circuit")
            row = row_of(race, TABLE_BY_NAME["races"], place)
            sessions = list(sessions_of(race, place))
            rows.append({**row, "circuitId": circuit, "sessions": sessions})
        return Calendar(self.season, rows, may_count=True)

    def add_entrants(self, race: Json, endpoint: str, records: Sequence[Json]) -> None:
        """Adds the drivers and constructors in the records of a race."""
        place, table = f"{self.place}, {race['raceName']}", KIND_BY_ENDPOINT[endpoint]
        for number, record in enumerate(records, 1):
            for name, key in (("drivers", "Driver"), ("constructors", "Constructor")):
                if key in record:
                    self.add_to_list(name, record[key], f"{place_of(place, table, number)}, {key}")

    def add_records(self, race: Json, endpoint: str, records: Sequence[Json]) -> None:
        """Adds the records of a race, after their entrants."""
        place, table = f"{self.place}, {race['raceName']}", KIND_BY_ENDPOINT[endpoint]
        rows: list[Row] = []
        keys = set()
        for number, row in enumerate(rows_of(records, table, place), 1):
            for name, of in (("driverId", "drivers"), ("constructorId", "constructors")):
                if name in row and not (row[name] in self.lists[of] or row[name] in self.known[of]):
                    what = f"{row[name]!r}; expected one of the {of}"
                    raise LoadError(f"{place_of(place, table, number)}: {what}")
            unique = tuple(row[name] for name in table.unique if name in row)
            if unique in keys:
                what = f"{', '.join(map(str, unique))!r} appears twice; expected once"
                raise LoadError(f"{place_of(place, table, number)}: {what}")
            keys.add(unique)
            rows.append(row)
            if status := row.get("statusId"):
                facts: Row = {"statusId": self.statuses.get(str(status)), "status": status}
                self.lists["status"][status] = facts
        self.parts += as_parts(self.season, int(race["round"]), table.name, rows)

    def add_to_list(self, name: str, found: Any, place: str) -> Value:
        """The reference of a driver, constructor or circuit, whose facts are added."""
        row = row_of(found, TABLE_BY_NAME[name], place)
        reference = row[TABLE_BY_NAME[name].key[0]]
        self.lists[name].setdefault(reference, {}).update(
            {column: value for column, value in row.items() if value is not None}
        )
        return reference
