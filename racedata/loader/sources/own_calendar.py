"""What a source without calendars and lists delivers: its records, in our calendar."""

from collections.abc import Mapping, Sequence
from typing import Any

from racedata.loader.existing import ExistingDatabase
from racedata.loader.parts import LIST_OF, REFERENCE, Calendar, Part, Row, Tables, as_parts
from racedata.loader.sources.statuses import known_statuses
from racedata.values import Value

# The rows of a race by table, with our references of drivers and constructors, and the texts of
# statuses, instead of ids.
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
    calendar = [{**race, "time": None, "sessions": []} for race in tables.seasons()[year]]
    parts = [
        part
        for round, rows in races
        for kind, made in rows.items()
        for part in as_parts(year, round, kind, made)
    ]
    made = [row for _, rows in races for made in rows.values() for row in made]
    used = {id: {row[id] for row in (*calendar, *made) if row.get(id)} for id in REFERENCE}
    lists = {
        LIST_OF[id]: [
            row for row in tables.list_rows(LIST_OF[id]) if row[REFERENCE[id]] in used[id]
        ]
        for id in ("circuitId", "constructorId", "driverId")
    }
    statuses = known_statuses()
    lists["status"] = [
        {"statusId": statuses.get(text), "status": text} for text in used["statusId"]
    ]
    lists["ids"] = [
        {"kind": kind, "reference": reference, "id": str(id)}
        for kind, references in own_ids.items()
        for id, reference in references.items()
        if reference in used[f"{kind}Id"]
    ]
    return Calendar(year, calendar, may_count=False), parts, lists
