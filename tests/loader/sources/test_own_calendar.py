"""racedata.loader.sources.own_calendar: a source adds only the records that it has."""

from contextlib import closing

from support.loads import changed, rows_of, select
from support.stores import READ_AT, a_source, in_order

from racedata.loader.build import build_database
from racedata.loader.corrections import Corrections
from racedata.loader.delivery import Delivery
from racedata.loader.existing import ExistingDatabase
from racedata.loader.rebuild import take_apart
from racedata.loader.sources.own_calendar import with_our_calendar
from racedata.loader.update import put_whole

COLUMNS = ("session", "position", "laps", "milliseconds", "number", "driverId", "constructorId")
PRACTICE = """
    SELECT session, position, laps, milliseconds, practice.number, driverRef, constructorRef
    FROM practice JOIN races USING (raceId) JOIN drivers USING (driverId)
    JOIN constructors USING (constructorId) WHERE (year, round) = (2023, 18)"""


def test_practice_times_join_the_calendar_of_the_others(database, store, tmp_path):
    before = rows_of(database)
    times = [dict(zip(COLUMNS, row)) for row in select(database, PRACTICE)]
    of_race = "DELETE FROM {} WHERE RACE(2023/18)".format
    changed(database, of_race("practice"), f"{of_race('origins')} AND kind = 'practice'")
    own_ids = {"driver": {"a1": "alonso", "h5": "hawthorn"}}
    with closing(ExistingDatabase(database)) as old:
        take_apart(old, store)
        said = with_our_calendar(old, 2023, [(18, {"practice": times})], own_ids)
    calendar, parts, lists = said
    source = a_source("timing", checksum=None, is_loaded=False, is_provisional=True)
    of_parts = [(part, READ_AT) for part in parts]
    put_whole(store, Delivery(source, [calendar], of_parts, lists), Corrections([]))
    in_order(store, "timing")
    build_database(tmp_path / "x.db", store, Corrections([]), lambda text: None)
    assert times and rows_of(tmp_path / "x.db") == before
    kinds = "SELECT kind FROM origins JOIN sources USING (sourceId) WHERE name = 'timing'"
    assert select(tmp_path / "x.db", kinds) == [("practice",)]
    # hawthorn did not drive
    ids = "SELECT kind, reference, id FROM ids WHERE source = 'timing'"
    assert select(tmp_path / "x.db", ids) == [("driver", "alonso", "a1")]
