"""racedata.loader.compare.changes: each value that a build alters is noted once, with a reason."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from support import SAMPLE
from support.loads import (
    built,
    changed,
    edited,
    file_of_corrections,
    loader_settings,
    race_ids,
    select,
    without,
)
from support.three_sources import season_of_three

from racedata.database import store_path
from racedata.loader import store
from racedata.loader.compare import changes
from racedata.loader.compare.changes import ChangeFinder, facts_of
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.existing import read_only_uri
from racedata.loader.rebuild import replace_from_store
from racedata.model import KINDS, TABLE_OF


def found(new, old):
    """The changes from one file to another."""
    with closing(sqlite3.connect(read_only_uri(new), uri=True)) as db:
        db.execute("ATTACH ? AS old", (read_only_uri(old),))
        return list(ChangeFinder(db, lambda *fact: None).changes())


def compared(new, old):
    return [
        (each.kind, each.round, each.key, each.columnName, each.oldValue, each.value)
        for each in found(new, old)
    ]


def noted(database, what="revision, kind, key, columnName, oldValue, value"):
    """The changes in a database, the newest first."""
    return select(database, f"SELECT {what} FROM changes ORDER BY record")


@pytest.fixture
def copy(database, tmp_path):
    """Returns a copy of the sample's database after some SQL statements."""

    def copy(*statements):
        path = tmp_path / "copy.db"
        shutil.copy(database, path)
        return changed(path, *statements)

    return copy


# With other ids, equal rows mean something else.
OTHER_IDS = tuple(
    f"UPDATE {table} SET driverId = 1000 - driverId"
    for table in (
        "drivers",
        *("results", "entries", "qualifying", "sprint_results", "sprint_qualifying", "practice"),
        *("lap_times", "pit_stops", "driver_standings"),
    )
)


def test_a_database_does_not_differ_from_itself_even_with_other_ids(database, copy):
    assert compared(database, database) == []
    assert compared(copy(*OTHER_IDS), database) == []


@pytest.mark.parametrize(
    ("table", "id", "used"),
    [
        ("drivers", "driverId", "SELECT driverId FROM results WHERE RACE(2023/18)"),
        ("constructors", "constructorId", "SELECT constructorId FROM results WHERE RACE(2023/18)"),
        ("status", "statusId", "SELECT statusId FROM results"),
        ("races", "raceId", "SELECT raceId FROM results"),
    ],
)
def test_equal_rows_differ_if_two_ids_are_exchanged(table, id, used, database, copy):
    both = f"(SELECT min({id}) FROM ({used})), (SELECT max({id}) FROM ({used}))"
    other = copy(
        f"UPDATE {table} SET {id} = -{id} WHERE {id} IN ({both})",
        f"UPDATE {table} SET {id} = (SELECT -sum({id}) FROM {table} WHERE {id} < 0) + {id} "
        f"WHERE {id} < 0",
    )
    assert "results" in {kind for kind, *_ in compared(other, database)}


@pytest.mark.parametrize("ids", [(), OTHER_IDS], ids=["same ids", "other ids"])
def test_rows_records_and_values_of_every_kind_are_found_once(database, copy, ids):
    new = copy(
        *ids,
        "UPDATE drivers SET code = 'LAN' WHERE driverRef = 'norris'",
        "UPDATE races SET time = '19:30:00' WHERE RACE(2023/18)",
        "DELETE FROM sessions WHERE RACE(2023/18) AND session = 'fp1'",
        "UPDATE results SET grid = 9, number = 1 WHERE RACE(2023/18) AND DRIVER(norris)",
        "UPDATE results SET fastestLapTime = NULL WHERE RACE(2023/18) AND DRIVER(norris)",
        # one of his two cars
        "UPDATE results SET laps = 3 WHERE RACE(1957/5) AND DRIVER(moss) AND number = 20",
        "DELETE FROM qualifying WHERE RACE(2021/12)",
        "UPDATE lap_times SET position = NULL WHERE RACE(2023/18) AND DRIVER(norris) AND lap = 3",
        "DELETE FROM pit_stops WHERE RACE(2023/18) AND DRIVER(norris) AND stop = 1",
        "UPDATE driver_standings SET constructors = (SELECT group_concat(constructorId, ' ')"
        " FROM constructors WHERE constructorRef IN ('mclaren', 'ferrari'))"
        " WHERE RACE(2023/18) AND DRIVER(norris)",
    )
    assert compared(new, database) == [
        ("drivers", None, "norris", "code", "NOR", "LAN"),
        ("races", 18, "", "time", "19:00:00", "19:30:00"),
        ("sessions", 18, "fp1", "row", "date=2023-10-20; time=17:30:00", None),
        ("results", 5, "moss/20", "laps", 90, 3),
        ("results", 18, "norris", "number", 4, 1),
        ("results", 18, "norris", "grid", 2, 9),
        ("fastest_laps", 18, "norris", "fastestLapTime", "1:39.985", None),
        ("qualifying", 12, "", "records", 20, None),
        ("pit_stops", 18, "norris/1", "row", "lap=17; time=14:32:42; milliseconds=24155", None),
        ("lap_times", 18, "norris/3", "position", 1, None),
        ("driver_standings", 18, "norris", "constructors", "mclaren", "ferrari mclaren"),
    ]


@pytest.mark.parametrize("kind", [*KINDS, "drivers", "constructors", "circuits", "races"])
def test_any_single_value_that_differs_is_the_only_change(kind, database, copy):
    """Drawn at random."""
    table = TABLE_OF[kind]
    key = "record" if table.is_numbered else table.names[0]
    names = {*facts_of(kind, table.names, "main")} & {*table.names} - {"round"}
    # the number of the car, which names the row of a driver with two cars
    names -= {"number"} if table.unique != table.key else set()
    values = [
        (name, id)
        for name in sorted(names)
        for (id,) in select(database, f"SELECT {key} FROM {table.name} WHERE {name} NOT NULL")
    ]
    column, id = random.choice(values)
    new = copy(f"UPDATE {table.name} SET {column} = '7' || {column} WHERE {key} = {id}")
    assert {each[0::3] for each in compared(new, database)} == {(kind, column)}


QUALIFYING = (
    "DELETE FROM qualifying WHERE RACE(2023/18)",
    "DELETE FROM origins WHERE RACE(2023/18) AND kind = 'qualifying'",
)
# in the results and in the other records of a car
MOVED = tuple(
    f"UPDATE {table} SET CONSTRUCTOR(ferrari) WHERE RACE(2023/18) AND DRIVER(norris)"
    for table in ("results", "qualifying")
)
LAPS = "UPDATE results SET laps = 3 WHERE RACE(2023/18) AND DRIVER(norris)"
# By kind: statements that make the new file, and those that make the old one.
REASONS = {
    "sample has changed it": ("results", [LAPS], []),
    "a source has changed it": (
        "drivers",
        ["UPDATE drivers SET code = 'LAN' WHERE driverRef = 'norris'"],
        [],
    ),
    "other counts now": ("results", ["UPDATE sources SET name = 'other'", LAPS], []),
    "no source has it any more": ("qualifying", QUALIFYING, []),
    "sample has it now": ("qualifying", [], QUALIFYING),
    "follows from the results": ("qualifying", MOVED, []),
}


@pytest.mark.parametrize("reason", REASONS)
def test_the_reason_says_who_has_changed_it_or_what_it_follows_from(reason, copy, tmp_path):
    kind, new, old = REASONS[reason]
    before = copy(*old).rename(tmp_path / "old.db")
    assert {each.reason for each in found(copy(*new), before) if each.kind == kind} == {reason}


@pytest.fixture
def two_dumps(finished, tmp_path):
    """A dump before and after the stewards took points from the third of 2023/18."""
    race = race_ids(finished, 2023)[18]

    def edit(row):
        is_third = row["raceId"] == race and row["positionOrder"] == "3"
        return {**row, "points": "14"} if is_third else row

    return finished, edited(finished, tmp_path / "after", results=edit)


@pytest.fixture
def penalised(two_dumps, tmp_path):
    """A database that was built before a penalty, and again after it."""
    for dump in two_dumps:
        database = built(dump, tmp_path / "racedata.db")
    return database


PENALTY = ("results", "2023/18/sainz", "points", "15", "14")


def test_a_first_load_is_no_change_and_a_later_one_notes_what_it_altered(two_dumps, tmp_path):
    database = tmp_path / "racedata.db"
    before, after = two_dumps
    built(before, database)
    assert noted(database) == []
    built(before, database)
    assert noted(database) == []
    built(after, database)
    assert noted(database) == [(3, *PENALTY)]
    built(before, database)
    assert noted(database) == [(4, *PENALTY[:3], "14", "15"), (3, *PENALTY)]


def test_a_real_database_in_place_of_the_sample_is_no_change(finished, tmp_path):
    database = built(SAMPLE, tmp_path / "racedata.db")
    assert noted(built(finished, database)) == []


def test_a_correction_that_is_added_or_taken_back_is_the_reason(finished, tmp_path):
    database = tmp_path / "racedata.db"
    line = "results,2023/18/sainz,grid,4,5,A test and another"
    corrections = file_of_corrections(tmp_path, line)
    built(finished, database)
    replace_from_store(loader_settings(database, corrections), print)
    replace_from_store(loader_settings(database, CORRECTIONS), print)
    assert noted(database, "key, oldValue, value, reason") == [
        ("2023/18/sainz", "5", "4", "a correction was taken back"),
        ("2023/18/sainz", "4", "5", "corrected: A test and another"),
    ]


def test_changes_survive_a_lost_store_and_a_lost_database(penalised):
    for lost in (store_path(penalised), penalised):
        lost.unlink()
        replace_from_store(loader_settings(penalised, ""), print)
        assert [row[1:] for row in noted(penalised)] == [PENALTY]


def test_a_change_whose_database_was_never_put_in_place_is_noted_once(two_dumps, tmp_path):
    """A program that is killed has committed the store, but not renamed the file."""
    database = tmp_path / "racedata.db"
    before, after = two_dumps
    built(before, database)
    served = database.read_bytes()
    built(after, database)
    database.write_bytes(served)
    replace_from_store(loader_settings(database, ""), print)
    assert [row[1:] for row in noted(database)] == [PENALTY]


def test_only_the_latest_are_kept_and_of_one_build_those_of_the_latest_races(
    finished, tmp_path, monkeypatch
):
    monkeypatch.setattr(store, "MAX_CHANGES", 3)
    grids = edited(finished, tmp_path / "grids", results=lambda row: {**row, "grid": "30"})
    database = tmp_path / "racedata.db"
    built(finished, database)
    built(grids, database)
    assert [row[2].rpartition("/")[0] for row in noted(database)] == ["2023/18"] * 3


def test_very_many_changes_are_those_of_other_sources_and_only_counted(
    penalised, two_dumps, tmp_path, monkeypatch
):
    """For each reason in each race, and of a list."""
    monkeypatch.setattr(changes, "MANY", 10)
    other = edited(
        two_dumps[1],
        tmp_path / "other",
        results=lambda row: {**row, "grid": "30"},
        circuits=lambda row: {**row, "lat": "1"},
    )
    corrections = file_of_corrections(tmp_path, "results,2023/18/sainz,grid,30,9,A test")
    built(other, penalised, corrections)
    *others, last = noted(penalised, "kind, key, columnName, oldValue, value, source, reason")
    assert last[:5] == PENALTY
    of_race = {row for row in others if row[1] == "2023/18"}
    assert of_race == {
        ("results", "2023/18", "values", None, "19", "other", "other counts now"),
        ("results", "2023/18", "values", None, "1", "other", "corrected: A test"),
    }
    circuits = [row for row in others if row[0] == "circuits"]
    assert [(row[1], row[5]) for row in circuits] == [("", "other")]


def test_a_fact_of_a_list_has_the_source_that_says_so(finished, tmp_path):
    database = tmp_path / "racedata.db"
    line = "drivers,sainz,number,55,56,A test and another"
    corrections = file_of_corrections(tmp_path, line)
    built(finished, database)

    def renamed(row):
        codes = {"norris": "LAN", "alonso": r"\N"}
        return {**row, "code": codes.get(row["driverRef"], row["code"])}

    def later(row):
        return {**row, "url": "https://example.org/2023"} if row["year"] == "2023" else row

    other = edited(finished, tmp_path / "other", drivers=renamed, seasons=later)
    built([other, finished], database, corrections)
    assert noted(database, "kind, key, columnName, source, reason") == [
        ("seasons", "2023", "url", "other", "other has it now"),
        ("drivers", "alonso", "code", None, "no source has it any more"),
        ("drivers", "norris", "code", "other", "other has it now"),
        ("drivers", "sainz", "number", None, "corrected: A test and another"),
    ]


def test_changes_follow_a_race_that_gets_another_round(penalised, two_dumps, tmp_path):
    def later(row):
        is_later = row["year"] == "2023" and int(row["round"]) >= 18
        return {**row, "round": str(int(row["round"]) + 1)} if is_later else row

    built(edited(two_dumps[1], tmp_path / "later", races=later), penalised)
    keys = [key for (key,) in noted(penalised, "key")]
    assert keys[-1] == "2023/19/sainz"
    assert ("races", "2023/19", "round", "18", "19") in [row[1:] for row in noted(penalised)]


def test_changes_of_a_race_that_is_gone_keep_its_name(penalised, two_dumps, tmp_path):
    after, race = two_dumps[1], race_ids(two_dumps[1], 2023)[18]
    gone = without(
        after, tmp_path / "gone", 2023, 18, races=lambda row: row if row["raceId"] != race else None
    )
    built(gone, penalised)
    found = noted(penalised, "key, round, raceName, raceId")
    assert ("2023/sainz", None, "United States Grand Prix", None) in found


# The changes after a revision, the oldest first, with keys as in `Change`.
NOTED_SINCE = """
    SELECT raceName, kind, iif(year IS NULL OR kind = 'seasons', key,
        ltrim(substr(key, 1 + length(year || ifnull('/' || round, ''))), '/')),
        columnName, oldValue, value
    FROM changes WHERE revision > {} ORDER BY record DESC"""


def net(changes):
    """The first and the last value of each fact that changes alter, by race, kind, key, column."""
    values = {}
    for *fact, old, new in changes:
        old, new = (each if each is None else str(each) for each in (old, new))
        values[tuple(fact)] = (values.get(tuple(fact), (old,))[0], new)
    return {fact: (old, new) for fact, (old, new) in values.items() if old != new}


def without_counted(changes, others):
    """Those whose row, records or race the others do not count as a whole."""
    return {
        (race, kind, key, column): values
        for (race, kind, key, column), values in changes.items()
        if not {(race, kind, key, "row"), (race, kind, "", "records"), (race, "races", "", "row")}
        & others.keys()
    }


@pytest.mark.long(10)
def test_over_a_season_changes_lead_from_each_value_to_the_next(tmp_path):
    """None is missing, invented or there twice, however often sources disagree."""
    before, revision, count = tmp_path / "previous.db", 0, 0
    for moment, database in season_of_three(tmp_path):
        if before.exists():
            stored = net(select(database, NOTED_SINCE.format(revision)))
            between = net(
                (each.race, each.kind, each.key, each.columnName, each.oldValue, each.value)
                for each in found(database, before)
            )
            count += len(stored)
            assert without_counted(stored, between) == without_counted(between, stored), moment
        shutil.copy(database, before)
        ((revision,),) = select(database, "SELECT revision FROM build")
    assert count > 100
