"""Objects of an API in Ergast's format as rows of tables: tables.py says where they have the values of the columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from racedata.loader.errors import LoadError
from racedata.loader.tables import BY_NAME, SESSIONS, Column, Table
from racedata.loader.values import Value

Json = dict[str, Any]


def value_at(found: Any, path: str) -> Any:
    """What an object of an API has at a path such as `Time.millis`. None if there is nothing."""
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    return found


def value_of(found: Any, path: str, column: Column, place: str) -> Value:
    """The value of a column that an object of an API has at a path. None if there is none."""
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
        if isinstance(lap, dict) and lap.get("rank") == "0":  # Ergast's way to say that no lap of the driver counts
            record = {**record, "FastestLap": None}
        yield row_of(record, table, place_of(place, table, number))


def place_of(place: str, table: Table, number: int) -> str:
    """For messages, the place of a record: `…, results, record 1`."""
    return f"{place}, {table.endpoint.name if table.endpoint else table.name}, record {number}"


def sessions_of(race: Mapping[str, Any], place: str) -> Iterator[dict[str, Value]]:
    """The sessions of a race of an API that it has a date or time of, as rows without the raceId."""
    if "SprintShootout" in race:  # what SprintQualifying was called in 2023
        race = {**race, "SprintQualifying": race["SprintShootout"]}
    table = BY_NAME["sessions"]
    columns = {column.name: column for column in table.columns}
    for session, key in SESSIONS.items():
        row = {name: value_of(race, f"{key}.{path}", columns[name], place) for name, path in table.paths.items()}
        if any(row.values()):
            yield {"session": session, **row}
