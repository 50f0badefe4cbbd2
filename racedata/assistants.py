"""What AI assistants can ask of a database: the tools of `racedata mcp`, and their bounds.

Every answer also says where its records are from, and which are provisional, corrected or disputed.
The texts about the tools are in assistants.toml, the protocol is in mcp_server.py.
"""

import re
import tomllib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from sqlite3 import Row
from typing import Any
from urllib.parse import urlencode

import orjson

from racedata.database import SCHEMA
from racedata.direct import Answering
from racedata.formats import Json, public_name, utc_now
from racedata.licences import SOURCES
from racedata.model import KIND_OF_COLUMN, KINDS, RACE_KEYS, STANDINGS_KEYS, TABLE_BY_NAME
from racedata.service.addresses import Address
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import BY_NAME, Endpoint
from racedata.service.health import report
from racedata.service.queries import Where
from racedata.service.reload import Reloading
from racedata.service.request import Parameters, parse_query
from racedata.service.snapshot import Snapshot
from racedata.service.words import NOT_HERE
from racedata.statements import Bounds, StatementError, run_apart, too_large

SIZE = 30_000  # characters of an answer: about 10,000 tokens of an assistant
LONGEST = 8190  # characters of an address, as over HTTP
BOUNDS = Bounds(rows=200, size=100_000, seconds=2)  # of a statement
SHOWN = 5  # races that are named as provisional, or as without results
# Without records, they say that nothing is disputed, corrected or changed.
MAY_BE_EMPTY = ("changes", "corrections", "discrepancies", "discrepancycounts")

TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
VIEWS = SCHEMA.partition("\n-- Views for analysts")
RESOURCES: Mapping[str, tuple[str, str]] = {
    "racedata://words": ("What a start, a win, a pole … is here", TEXTS["words"]),
    "racedata://views": ("The views, with comments: for sql", (VIEWS[1] + VIEWS[2]).lstrip()),
    "racedata://tables": ("The tables, with comments: for sql", VIEWS[0]),
}


def json_text(answer: Json) -> str:
    return orjson.dumps(answer, default=bytes.hex).decode()  # JSON has no blobs


class Assistant:
    """The tools, over the file that is now at `path`. Threads may use them at the same time. A
    question that has no answer raises a ValueError or NoLastRound: one line says why.

    Raises DatabaseError if the first file is not good.
    """

    def __init__(self, path: str) -> None:
        self.file = Reloading(path, Answering)

    def current(self) -> Answering:
        """The database, opened again if its file has been replaced with a good one.

        Questions about the old database go on. While one question reads the new file, others get
        the old database.
        """
        self.file.check()
        return self.file.made

    def ask(self, address: str) -> str:
        """The answer at any address of the interface, shortened if it is large."""
        if len(address) > LONGEST:
            raise ValueError(f"the address has more than {LONGEST:,} characters; expected fewer")
        path, _, query = re.sub("^https?://[^/]*", "", address.strip()).partition("?")
        given = parse_query(query)
        db = self.current()
        parsed = db.parse(path)
        answer = fitting(db, parsed, given)
        envelope, (data, catalogue, _) = answer["MRData"], db.served
        endpoint = BY_NAME[parsed.endpoint]
        kinds, races = {kind_of(endpoint)}, races_in(endpoint, envelope, catalogue)
        remarks = remarks_on(db, path, parsed, given, envelope)
        return json_text(
            {
                **({"note": " ".join(remarks)} if remarks else {}),
                **answer,
                **where_from(data, kinds, races),
                **disputed(
                    data,
                    kinds,
                    races,
                    ids_in(envelope, catalogue),
                    where_disputed(parsed, races, catalogue),
                ),
            }
        )

    def sql(self, select: str) -> str:
        """The rows of one statement that only reads, within bounds."""
        db = self.current()
        data = db.served.data
        rows, is_all, tables = run_apart(self.file.path, data.file.state, select, BOUNDS)
        kinds = tables & {*KINDS}
        answer: Json = {"rows": rows}
        if not is_all:
            answer["note"] = (
                f"Only the first {BOUNDS.rows} rows; count, group, or add LIMIT and OFFSET."
            )
        elif not rows:
            answer["note"] = covered(data, kinds) or "No row matches."
        text = json_text({**answer, **where_from(data, kinds, None), **disputed(data, kinds)})
        # Here, each row repeats the names of columns, and blobs and some characters are longer.
        if len(text) > BOUNDS.size:
            raise StatementError(too_large(BOUNDS.size))
        return text

    def coverage(self) -> str:
        """What is loaded, how fresh, from where, and what the database does not have."""
        db = self.current()
        data, catalogue, settings = db.served
        health = report(data, settings)
        del health["status"], health["rows"]
        seasons, now = catalogue.rounds.keys(), utc_now()
        latest, *later = (
            race_in_words(catalogue.race_rows[id])
            for id in (catalogue.last_race, *catalogue.coming)
        )
        past = [text for text in later if text < now[:10]]
        return json_text(
            {
                "now": now,
                "seasons": {"first": min(seasons), "last": max(seasons), "count": len(seasons)},
                "lastRaceWithResults": latest,
                **({"sinceThenWithoutResults": shown(past)} if past else {}),
                "nextRace": next(
                    (text for text in later if text not in past), "no later race is loaded"
                ),
                **health,
                **provisional(data, {*KINDS}, None),
                **disputed(data, {*KINDS}),
                "notHere": f"{', '.join(NOT_HERE)}; kinds of records without a line in coverage: "
                + (", ".join(kind for kind in KINDS if kind not in health["coverage"]) or "none"),
            }
        )

    def changes(self, since: str) -> str:
        """The answer of /changes: what builds have altered since a date or time, newest first."""
        return self.ask(f"/changes?{urlencode({'since': since})}")


def fitting(db: Answering, parsed: Address, given: Parameters) -> Json:
    """An answer with as many of its records as its size allows. Raises ValueError or LookupError,
    as `Answering.answer` does.
    """
    while True:
        answer = db.answer(parsed, given)
        limit, offset, total = page_of(answer["MRData"])
        size, records = len(orjson.dumps(answer)), min(limit, total - offset)
        if size <= SIZE or records <= 1:
            return answer
        # as many as probably fit
        given = {**given, "limit": str(max(1, min(records - 1, records * SIZE // size)))}


def page_of(envelope: Json) -> tuple[int, int, int]:
    return int(envelope["limit"]), int(envelope["offset"]), int(envelope["total"])


def remarks_on(
    db: Answering, path: str, parsed: Address, given: Parameters, envelope: Json
) -> list[str]:
    """What else a reader of an answer must know: where the rest is, and why it has no records."""
    (data, catalogue, _), endpoint = db.served, BY_NAME[parsed.endpoint]
    limit, offset, total = page_of(envelope)
    remarks = []
    if limit and offset + limit < total:
        following = urlencode({**given, "limit": limit, "offset": offset + limit})
        remarks.append(
            f"Records {offset + 1} to {offset + limit} of {total}; the next ones: "
            f"{path}?{following}"
        )
    if offset >= total > 0:
        remarks.append(f"Of {total} records, none is behind the offset.")
    if endpoint.name == "changes":
        first = data.value("SELECT min(changedAt) FROM changes")
        start = first or "the first build; there are none"
        remarks.append(f"Changes are noted since {start}.")
    elif endpoint.name in MAY_BE_EMPTY and not total:
        remarks.append("No records match.")
    elif not total:
        covers = covered(data, {kind_of(endpoint)})
        remarks.append(covers or "No records match; coverage() says what is loaded.")
    if parsed.round == "next" and (races := races_in(endpoint, envelope, catalogue)):
        date = catalogue.race_rows[races[0]]["date"]
        if date < utc_now()[:10]:
            remarks.append(f"This race was on {date}. Its results are not loaded.")
    return remarks


def kind_of(endpoint: Endpoint) -> str:
    return endpoint.record_kind or endpoint.name


def races_in(endpoint: Endpoint, envelope: Json, catalogue: Catalogue) -> list[int] | None:
    """The raceIds of the records in an answer; None if its records are not of races."""
    if endpoint.keys[:2] not in (RACE_KEYS, STANDINGS_KEYS):
        return None
    objects = envelope[endpoint.table_key][endpoint.objects_key]
    return [catalogue.id_of_round[int(each["season"]), int(each["round"])] for each in objects]


def race_in_words(race: Row) -> str:
    return f"{race['date']}: {race['year']}/{race['round']} {race['name']}"


def shown(texts: list[str]) -> list[str]:
    """The first texts, and how many more there are."""
    more = [f"and {len(texts) - SHOWN} more"] if len(texts) > SHOWN else []
    return [*texts[:SHOWN], *more]


def ids_in(envelope: Json, catalogue: Catalogue) -> dict[str, set[int]]:
    """The drivers, constructors and circuits in an answer, by the column of their id."""
    known = {TABLE_BY_NAME[name].id_key: ids for name, ids in catalogue.ids.items()}
    found: dict[str, set[int]] = {name: set() for name in known}
    waiting: list[Any] = [envelope]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += value.values()
            for name in known.keys() & value.keys():
                id = known[name].get(value[name].lower())
                if id is not None:
                    found[name].add(id)
    return found


def where_disputed(address: Address, races: Sequence[int] | None, catalogue: Catalogue) -> str:
    """Where to read what sources say about the values at an address."""
    accepted = BY_NAME["discrepancies"].rules.filters
    # what sources say about a driver or a circuit belongs to no season
    front: list[object] = []
    if races:
        # in winter, `current` is another season for a calendar than for discrepancies
        race = catalogue.race_rows[races[0]]
        front = [address.season and race["year"], address.round and race["round"]]
    filters = [
        word
        for name, value in address.filters.items()
        if name in accepted
        for word in (name, value)
    ]
    words = [str(each) for each in (*front, *filters) if each is not None]
    return "/".join(["", *words, "discrepancies?state=open"])


def where_about(column: str, kinds: Collection[str], races: Collection[int] | None) -> Where:
    """The conditions for rows about records of these kinds, in these races or in all. The column
    has their kind or their table.
    """
    in_rows = {kind for (table, _), kind in KIND_OF_COLUMN.items() if table in kinds}
    where = Where()
    where.among(column, {*kinds, *in_rows})
    if races is not None:
        where.among("raceId", races)
    return where


def where_from(data: Snapshot, kinds: Collection[str], races: Collection[int] | None) -> Json:
    """Where records are from, and which are provisional or corrected."""
    # that there are no records is what all sources say
    where = where_about("kind", kinds, races or None)
    of_records = data.rows(
        f"""SELECT name, licence FROM sources
            WHERE sourceId IN (SELECT sourceId FROM origins{where}) ORDER BY sourceId""",
        where.values,
    )
    sources = [
        {"name": public_name(row["name"]), "licence": row["licence"] or "not stated"}
        for row in of_records or data.rows(SOURCES)  # lists, such as drivers, are of all
    ]
    where = where_about("tableName", kinds, races)
    corrected = data.value(f"SELECT count(*) FROM corrections{where}", where.values)
    of_corrections = (
        {"corrected": f"{corrected} values; the table corrections has each with its evidence"}
        if corrected
        else {}
    )
    return {
        "sources": sources,
        "builtAt": data.build()["builtAt"],
        **provisional(data, kinds, races),
        **of_corrections,
    }


def provisional(data: Snapshot, kinds: Collection[str], races: Collection[int] | None) -> Json:
    """The races with provisional records, the latest first, in words; empty if there are none."""
    where = where_about("kind", kinds, races)
    where.add("isProvisional", [])
    rows = data.rows(
        f"""SELECT year, round, races.name AS race, group_concat(DISTINCT kind) AS kinds,
                sources.name AS source
            FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId){where}
            GROUP BY raceId ORDER BY year DESC, round DESC""",
        where.values,
    )
    named = [
        f"{row['year']}/{row['round']} {row['race']}: {row['kinds'].replace(',', ', ')} "
        f"from {public_name(row['source'])}"
        for row in rows
    ]
    return {"provisional": shown(named)} if named else {}


def disputed(
    data: Snapshot,
    kinds: Collection[str],
    races: Collection[int] | None = None,
    ids: Mapping[str, Collection[int]] | None = None,
    where: str = "/discrepancies?state=open",
) -> Json:
    """The values about which sources disagree, by field, in words; empty if there are none.

    With `ids`, only values of these drivers, constructors and circuits, by the column of their id.
    """
    condition = where_about("kind", kinds, races)
    condition.add("state = 'open'", [])
    for column, values in (ids or {}).items():
        its = Where()
        its.among(column, values)
        # for a record, the circuit only says where the race is
        other = "raceId IS NOT NULL OR " if column == "circuitId" else ""
        condition.add(f"({other}{column} IS NULL OR {its.terms[0]})", its.values)
    columns = data.rows(
        f"""SELECT columnName, count(*) AS count FROM discrepancies{condition}
            GROUP BY columnName ORDER BY count DESC, columnName""",
        condition.values,
    )
    counts = ", ".join(f"{row['columnName']} {row['count']}" for row in columns)
    # of the tables, perhaps not of these rows
    scope = "in all seasons, " if ids is None else ""
    said = f"{scope}sources disagree about these values: {counts}; what each says: ask {where}"
    return {"disputed": said} if columns else {}


def covered(data: Snapshot, kinds: Collection[str]) -> str:
    """How complete these kinds of records are, in words."""
    facts = [
        f"{kind.replace('_', ' ')} of {of['races']} of {of['run']} races from {of['first']} to "
        f"{of['last']}{', of which not all had one' if kind.startswith('sprint') else ''}"
        for kind, of in data.coverage().items()
        if kind in kinds
    ]
    return f"No records match. The database has {', '.join(facts)}." if facts else ""
