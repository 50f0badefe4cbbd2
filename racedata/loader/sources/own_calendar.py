"""What a source without calendars and lists delivers: its records, in our calendar."""

from collections.abc import Mapping, Sequence
from typing import Any

from racedata.loader.existing import ExistingDatabase
from racedata.loader.parts import LIST_OF, LISTS, Calendar, Part, Row, Tables, as_parts
from racedata.loader.sources.statuses import known_statuses
from racedata.model import LIST_BY_SINGULAR, TABLE_BY_NAME
from racedata.values import Value

# The rows of a race by table, with the database's ids of drivers and constructors; `status` is a
# text.
RowsByTable = dict[str, list[dict[str, Value]]]


def with_our_calendar(
    old: ExistingDatabase,
    year: int,
    races: Sequence[tuple[int, RowsByTable]],
    own_ids: Mapping[str, Mapping[Any, str]],
) -> tuple[Calendar, list[Part], dict[str, list[Row]]]:
    """What a Delivery needs, from the rows of some races of a season, by round: the calendar of the
    season, the parts, and the lists to which they refer.

    The calendar only says which race is which. It may not count, and has neither times nor
    sessions: these would be ours. The lists repeat our facts about all that the source
    names. `own_ids` has our references by the source's own ids, for each kind, such as `driver`.
    """
    tables = Tables(old.db, "main")
    parts = []
    used: dict[str, set[Value]] = {name: set() for name in LISTS}
    for round, rows in races:
        for kind, made in rows.items():
            named = [tables.named(row) for row in made]
            for row in named:
                for id, name in LIST_OF.items():
                    used[name] |= {row[id]} if id in row else set()
            parts += as_parts(year, round, kind, named)
    calendar = [{**race, "time": None, "sessions": []} for race in tables.seasons()[year]]
    used["circuits"] = {race["circuitId"] for race in calendar}
    lists = {
        name: [
            row for row in tables.list_rows(name) if row[TABLE_BY_NAME[name].key[0]] in used[name]
        ]
        for name in ("circuits", "constructors", "drivers")
    }
    statuses = known_statuses()
    lists["status"] = [
        {"statusId": statuses.get(str(text)), "status": text} for text in used["status"] if text
    ]
    lists["ids"] = [
        {"kind": kind, "reference": reference, "id": str(id)}
        for kind, references in own_ids.items()
        for id, reference in references.items()
        if reference in used[LIST_BY_SINGULAR[kind].name]
    ]
    return Calendar(year, calendar, may_count=False), parts, lists
