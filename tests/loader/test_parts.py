"""racedata.loader.parts, delivery, stage, sql: what a source says, taken apart; nothing is lost."""

import sqlite3
from contextlib import closing, contextmanager

import pytest
from support import SAMPLE
from support.loads import changed, edited, rows_of, select

from racedata.loader.build import build_database
from racedata.loader.corrections import Corrections
from racedata.loader.existing import ExistingDatabase
from racedata.loader.parts import OF_CAR, Part, Tables, as_parts
from racedata.loader.rebuild import take_apart
from racedata.loader.sources import source_at
from racedata.loader.store import Store
from racedata.model import FASTEST_LAP, TABLE_BY_NAME

# What a list of rows of an API has.
ROW = {"driverId": "hill", "constructorId": "lotus", "number": 1, "positionText": "1", "laps": 50}


# Rows of parts.


def test_the_rows_of_results_are_two_parts():
    """Without fastest laps, they are one. The laps are in the order of the results."""
    unknown = dict.fromkeys(FASTEST_LAP)
    lap = dict(zip(FASTEST_LAP, (40, 1, "1:20.000", "200.5")))
    rows = [
        {**ROW, "positionOrder": 10, **lap},
        {**ROW, "positionOrder": 2, "driverId": "clark", **unknown},
        {**ROW, "positionOrder": 9, **lap},
    ]
    of_results, of_laps = as_parts(2023, 1, "results", rows)
    assert of_results[:3] == (2023, 1, "results")
    assert of_results.columns == (*ROW, "positionOrder")
    assert [row[0] for row in of_results.rows] == ["hill", "clark", "hill"]
    found = [["hill", 1, "1", place, 40, 1, "1:20.000", "200.5"] for place in (9, 10)]
    assert of_laps == Part(2023, 1, "fastest_laps", (*OF_CAR, *FASTEST_LAP), found)
    assert len(as_parts(2023, 1, "results", rows[1:2])) == 1
    assert as_parts(2023, 1, "results", []) == []


def test_rows_of_other_kinds_are_one_part_with_the_columns_of_any_row():
    rows = [{"driverId": "hill", "rank": 1}, {"driverId": "clark", "time": "1"}]
    (part,) = as_parts(2023, 1, "qualifying", rows)
    assert part.columns == ("driverId", "rank", "time")
    assert part.rows == [["hill", 1, None], ["clark", None, "1"]]


# A database taken apart, and built again.


def taken_apart(database, new):
    """The path of a database built from what another one has."""
    with closing(Store(":memory:")) as store:
        with closing(ExistingDatabase(database)) as existing:
            take_apart(existing, store)
        build_database(new, store, Corrections([]), lambda text: None)
    return new


SOURCES = "SELECT name, address, licence, checksum, readAt, isLoaded, gave FROM sources"
ORIGINS = "SELECT raceId, kind, sourceId, fetchedAt FROM origins ORDER BY 1, 2"
CORRECTIONS = "SELECT * FROM corrections"
IDS = "SELECT resultId, record FROM results ORDER BY record"


@pytest.mark.parametrize("name", ["sample_database", "full_database"])
def test_a_database_taken_apart_and_built_again_is_the_same(request, name, tmp_path):
    database = request.getfixturevalue(name)
    assert select(database, CORRECTIONS)
    new = taken_apart(database, tmp_path / "x.db")
    assert rows_of(new) == rows_of(database)
    for sql in (SOURCES, ORIGINS, CORRECTIONS, IDS):
        assert select(new, sql) == select(database, sql)


# The tables of a source.


@contextmanager
def tables_of(folder):
    """The tables of a dump as its reader fills them."""
    with source_at(str(folder)).opened(lambda text: None) as (tables, _):
        yield tables


@pytest.fixture(scope="module")
def tables():
    """The tables of the sample."""
    with tables_of(SAMPLE) as tables:
        yield tables


def parts_in(tables, years=None, has_ids=True):
    return [part for part, _ in tables.parts(1, years, has_ids)]


def test_a_release_of_a_dump_may_give_everything_another_id(tables, tmp_path):
    names = ("raceId", "circuitId", "driverId", "constructorId")

    def renumbered(row):
        return row | {name: str(9000 - int(row[name])) for name in names if name in row}

    every = dict.fromkeys((path.stem for path in SAMPLE.glob("*.csv")), renumbered)
    with tables_of(edited(SAMPLE, tmp_path / "dump", **every)) as other:
        found, before = (sorted(parts_in(each, has_ids=False), key=str) for each in (other, tables))
    assert found == before


def test_only_the_seasons_that_are_asked_for_are_given(tables):
    assert {part.season for part in parts_in(tables, [2023])} == {2023}
    (calendar,) = tables.calendars(1, [2023])
    assert calendar.season == 2023
    seasons = tables.db.execute("SELECT DISTINCT year FROM stage.races ORDER BY year").fetchall()
    assert [(each.season,) for each in tables.calendars(1, None)] == seasons
    assert [*tables.calendars(2, None)] == [*tables.parts(2, None, True)] == []  # gave nothing
    race = calendar.races[17]
    assert (race["round"], race["circuitId"]) == (18, "americas")
    assert [each["session"] for each in race["sessions"]] == ["fp1", "quali", "sprint", "sq"]
    assert {*race} == {*TABLE_BY_NAME["races"].names, "sessions"}


def test_a_calendar_counts_only_for_the_source_that_gave_the_races(database):
    """Sessions are from the source that gave them."""
    changed(
        database,
        """INSERT INTO sources (sourceId, name, address, readAt, isLoaded, gave)
           VALUES (2, 'other', 'other', '2023-10-23T06:00:00Z', 1, '')""",
        "UPDATE origins SET sourceId = 2 WHERE kind = 'pit_stops' AND RACE(2023/18)",
        "INSERT INTO origins SELECT raceId, 'sessions', 2, NULL FROM races WHERE RACE(2023/18)",
    )
    with closing(sqlite3.connect(database)) as db:
        tables = Tables(db, "main")
        (calendar,) = tables.calendars(2, None)
        assert (calendar.season, calendar.may_count) == (2023, False)
        ((part, fetched_at),) = tables.parts(2, None, False)
        assert part[:3] == (2023, 18, "pit_stops") and fetched_at is None
        assert all(each.may_count for each in tables.calendars(1, None))
        (own,) = tables.calendars(1, [2023])
    of_other, of_own = (
        [race["round"] for race in each.races if race["sessions"]] for each in (calendar, own)
    )
    assert of_other == [18] and 18 not in of_own and len(of_own) == 21


def test_entries_are_of_drivers_without_a_result(database):
    changed(database, "DELETE FROM results WHERE RACE(2023/18) AND DRIVER(alonso)")
    with closing(sqlite3.connect(database)) as db:
        of_entries = [part for part in parts_in(Tables(db, "main")) if part.kind == "entries"]
    assert [(part.season, part.round, *part.rows) for part in of_entries] == [
        (2023, 18, ("alonso", "aston_martin"))
    ]
