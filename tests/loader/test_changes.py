"""racedata.loader.changes: each value that a build alters is noted once, with its reason."""

import random
import shutil
import sqlite3
from contextlib import closing

import pytest
from support import SAMPLE
from support.loads import built, changed, edited, race_ids, select, without

from racedata.database import store_path
from racedata.loader import store
from racedata.loader.changes import Comparison, facts_of, table_of
from racedata.loader.corrections import CORRECTIONS, HEADER, REMEMBERED
from racedata.loader.existing import read_only_uri
from racedata.loader.load import rebuild
from racedata.model import KINDS


def compared(new, old):
    """The changes from one file to another."""
    with closing(sqlite3.connect(read_only_uri(new), uri=True)) as db:
        db.execute("ATTACH ? AS old", (read_only_uri(old),))
        return [
            (each.kind, each.about.round, each.key, each.column, each.old, each.new)
            for each in Comparison(db, lambda *facts: "").changes()
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


@pytest.mark.parametrize("ids", [(), OTHER_IDS], ids=["same ids", "other ids"])
def test_rows_records_and_values_of_every_kind_are_found_once(database, copy, ids):
    new = copy(
        *ids,
        "UPDATE drivers SET code = 'LAN' WHERE driverRef = 'norris'",
        "UPDATE races SET time = '19:30:00' WHERE RACE(2023/18)",
        "DELETE FROM sessions WHERE RACE(2023/18) AND session = 'fp1'",
        "UPDATE results SET grid = 9 WHERE RACE(2023/18) AND DRIVER(norris)",
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
        ("results", 18, "norris", "grid", 2, 9),
        ("fastest_laps", 18, "norris", "fastestLapTime", "1:39.985", None),
        ("qualifying", 12, "", "records", 20, None),
        ("pit_stops", 18, "norris/1", "row", "lap=17; time=14:32:42; milliseconds=24155", None),
        ("lap_times", 18, "norris/3", "position", 1, None),
        ("driver_standings", 18, "norris", "constructors", "mclaren", "ferrari mclaren"),
    ]


def test_any_single_value_that_differs_is_the_only_change(database, copy):
    """Of each kind, drawn at random."""
    for kind in [*KINDS, "drivers", "constructors", "circuits", "races"]:
        table = table_of(kind)
        key = "record" if table.is_numbered else table.names[0]
        values = [
            (name, id)
            for name in facts_of(kind, table.names)
            if name in table.names and name != "round"
            for (id,) in select(database, f"SELECT {key} FROM {table.name} WHERE {name} NOT NULL")
        ]
        column, id = random.choice(values)
        new = copy(f"UPDATE {table.name} SET {column} = '7' || {column} WHERE {key} = {id}")
        assert {each[0::3] for each in compared(new, database)} == {(kind, column)}


def moved_back(source, folder):
    """A copy of a dump in which the stewards took points from the third of 2023/18."""
    race = race_ids(source, 2023)[18]

    def edit(row):
        is_third = row["raceId"] == race and row["positionOrder"] == "3"
        return {**row, "points": "14"} if is_third else row

    return edited(source, folder, results=edit)


@pytest.fixture
def two_dumps(finished, tmp_path):
    """A dump before and after a penalty."""
    return finished, moved_back(finished, tmp_path / "after")


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


def test_new_records_of_a_race_are_one_change_for_each_kind(finished, tmp_path):
    database = tmp_path / "racedata.db"
    built(without(finished, tmp_path / "dump", 2023, 18), database)
    built(finished, database)
    found = noted(database, "kind, columnName, oldValue, oldSource")
    # Standings that were known also change: `constructors` follows from all results before.
    of_race = [row for row in found if row[1] != "constructors"]
    of_round = "JOIN races USING (raceId) WHERE year = 2023 AND round = 18"
    origins = select(database, f"SELECT kind FROM origins {of_round}")
    kinds = [kind for kind in KINDS if (kind,) in origins]
    assert of_race == [(kind, "records", None, None) for kind in kinds]


def test_a_correction_that_is_added_or_taken_back_is_the_reason(finished, tmp_path):
    database = tmp_path / "racedata.db"
    corrections = tmp_path / "corrections.csv"
    corrections.write_text(f"{HEADER}\nresults,2023/18/sainz,grid,4,5,A test and another\n")
    built(finished, database)
    rebuild(str(database), corrections, print, "")
    rebuild(str(database), CORRECTIONS, print, "")
    assert noted(database, "key, oldValue, value, reason") == [
        ("2023/18/sainz", "5", "4", "a correction was taken back"),
        ("2023/18/sainz", "4", "5", "corrected: A test and another"),
    ]


def test_changes_survive_a_lost_store_and_a_lost_database(two_dumps, tmp_path):
    database = tmp_path / "racedata.db"
    for dump in two_dumps:
        built(dump, database)
    store_path(database).unlink()
    rebuild(str(database), REMEMBERED, print, "")
    assert [row[1:] for row in noted(database)] == [PENALTY]
    database.unlink()
    rebuild(str(database), REMEMBERED, print, "")
    assert [row[1:] for row in noted(database)] == [PENALTY]


def test_a_change_whose_database_was_never_put_in_place_is_noted_once(two_dumps, tmp_path):
    """A program that is killed has committed the store, but not renamed the file."""
    database = tmp_path / "racedata.db"
    before, after = two_dumps
    built(before, database)
    served = database.read_bytes()
    built(after, database)
    database.write_bytes(served)
    rebuild(str(database), REMEMBERED, print, "")
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


def test_changes_follow_a_race_that_gets_another_round(two_dumps, tmp_path):
    database = tmp_path / "racedata.db"
    before, after = two_dumps
    built(before, database)
    built(after, database)

    def later(row):
        is_later = row["year"] == "2023" and int(row["round"]) >= 18
        return {**row, "round": str(int(row["round"]) + 1)} if is_later else row

    built(edited(after, tmp_path / "later", races=later), database)
    keys = [key for (key,) in noted(database, "key")]
    assert keys[-1] == "2023/19/sainz"
    assert ("races", "2023/19", "round", "18", "19") in [row[1:] for row in noted(database)]


def test_changes_of_a_race_that_is_gone_keep_its_name(two_dumps, tmp_path):
    database = tmp_path / "racedata.db"
    before, after = two_dumps
    built(before, database)
    built(after, database)
    race = race_ids(after, 2023)[18]
    gone = without(
        after, tmp_path / "gone", 2023, 18, races=lambda row: row if row["raceId"] != race else None
    )
    built(gone, database)
    found = noted(database, "key, round, raceName, raceId")
    assert ("2023/sainz", None, "United States Grand Prix", None) in found
