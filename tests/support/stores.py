"""What sources have said: sources, calendars and parts, with the facts that few tests care about.

Every race has a name and a circuit of its own, in the month of its round.
"""

from typing import Any

from racedata.loader.delivery import Delivery
from racedata.loader.parts import LIST_OF, LISTS, REFERENCE, Calendar, Part, Row
from racedata.loader.store import Store, StoredCalendar, StoredPart, StoredSource
from racedata.loader.update import put_whole
from racedata.model import TABLE_BY_NAME

READ_AT = "2023-12-01T06:00:00Z"


def a_source(name: str = "dump", **facts: Any) -> StoredSource:
    """A dump that was loaded, the first one of the list."""
    usual = StoredSource(
        name=name,
        address=f"/{name}",
        licence=None,
        checksum="0" * 64,
        read_at=READ_AT,
        reading=1,
        place=1,
        is_loaded=True,
        is_provisional=False,
        is_sample=False,
        ids=None,
    )
    return usual._replace(**facts)


def an_api(name: str = "api", **facts: Any) -> StoredSource:
    return a_source(name, checksum=None, is_loaded=False)._replace(**facts)


def a_race(round: int, **facts: Any) -> dict[str, Any]:
    usual = {
        "year": 2023,
        "round": round,
        "name": f"Grand Prix {round}",
        "circuitId": f"circuit_{round}",
        "date": f"2023-{round:02}-15",
        "time": None,
        "url": None,
        "sessions": [],
    }
    return {**usual, **facts}


def a_calendar(*races: dict[str, Any], season: int = 2023, may_count: bool = True) -> Calendar:
    return Calendar(season, races, may_count)


def stored_calendar(source: str, *races: dict[str, Any], **facts: Any) -> StoredCalendar:
    """A calendar in the store. The key of each race is its name."""
    keyed = [{"key": race["name"], **race} for race in races]
    return StoredCalendar(source, 2023, None, keyed, keyed, {})._replace(**facts)


def stored_part(source: str, round: int, kind: str = "results", **facts: Any) -> StoredPart:
    """A part in the store, without its rows."""
    usual = StoredPart(source, 2023, f"Grand Prix {round}", kind, None, READ_AT, 1, 20)
    return usual._replace(**facts)


RESULT = (
    "driverId",
    "constructorId",
    "number",
    "positionText",
    "positionOrder",
    "laps",
    "statusId",
)


def results(
    round: int,
    *drivers: str,
    constructor: str = "lotus",
    status: str | None = "Finished",
    season: int = 2023,
    first_id: int | None = None,
) -> Part:
    """The results of a race: the drivers in their order. With `first_id`, rows have ids."""
    rows: list[list[Any]] = [
        [driver, constructor, place, str(place), place, 50, status]
        for place, driver in enumerate(drivers, 1)
    ]
    if first_id is None:
        return Part(season, round, "results", RESULT, rows)
    with_ids = [[id, *row] for id, row in enumerate(rows, first_id)]
    return Part(season, round, "results", ("resultId", *RESULT), with_ids)


def a_delivery(source: StoredSource, *said: Calendar | Part, **lists: list[Row]) -> Delivery:
    """What a source says: calendars and parts, and lists of all that they name."""
    calendars = [each for each in said if isinstance(each, Calendar)]
    parts = [each for each in said if isinstance(each, Part)]
    races = [race for calendar in calendars for race in calendar.races]
    named: dict[str, set[str]] = {name: set() for name in LISTS}
    named["circuits"] = {race["circuitId"] for race in races}
    for part in parts:
        for at, column in enumerate(part.columns):
            if column in LIST_OF:
                named[LIST_OF[column]] |= {str(row[at]) for row in part.rows if row[at] is not None}
    rows = {
        name: [row_of(name, id, reference) for id, reference in enumerate(sorted(found), 1)]
        for name, found in named.items()
    }
    fetched_at = None if source.is_loaded else source.read_at
    return Delivery(source, calendars, [(part, fetched_at) for part in parts], {**rows, **lists})


def row_of(name: str, id: int, reference: str) -> Row:
    """A row of a list."""
    column = TABLE_BY_NAME[name].names[0]
    row: Row = {column: id, REFERENCE[column]: reference}
    if name == "drivers":
        return {**row, "forename": "A", "surname": reference.title()}
    return row if name == "status" else {**row, "name": reference.title()}


def put(store: Store, *deliveries: Delivery) -> None:
    """Loads sources, the most trusted dump first."""
    for delivery in deliveries:
        put_whole(store, delivery)
    names = [each.source.name for each in deliveries]
    others = [each.name for each in store.sources() if not each.is_loaded]
    store.order([])
    in_order(store, *others, *names)


def in_order(store: Store, *names: str) -> None:
    """Makes a list of what is listed and of these: APIs, dumps, what is provisional."""
    known = {source.name: source for source in store.known_sources()}
    listed = [source.name for source in store.sources()]

    def rank(name: str) -> int:
        source = known[name]
        return 0 if source.is_api else 2 if source.is_provisional else 1

    store.order(sorted(dict.fromkeys([*listed, *names]), key=rank))


# What tests of a build begin with. Only the base keeps its ids.
BASE = a_source("base", ids="base")
OTHER = a_source("other")
API = an_api("api")
ONE_RACE = a_calendar(a_race(1, raceId=71))
TWO_RACES = a_calendar(a_race(1, raceId=71), a_race(2, raceId=72))
