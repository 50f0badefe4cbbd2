"""racedata.loader.correct: values, rows too many and rows missing are corrected, and nothing else
changes.
"""

import json
import re

import pytest
from support import EXPECTED, SAMPLE
from support.loads import (
    built,
    facts_of,
    file_of_corrections,
    loader_settings,
    rows_of,
    select,
    with_ids,
)

from racedata.database import store_path
from racedata.loader.export import export
from racedata.loader.load import load
from racedata.loader.rebuild import replace_from_store

TOLD = "SELECT tableName, key, columnName, sourceValue, value, witnesses FROM corrections"


def nothing(text):
    pass


@pytest.fixture(scope="module")
def uncorrected(tmp_path_factory):
    return built(SAMPLE, tmp_path_factory.mktemp("uncorrected") / "x.db", None)


def cases():
    """The cases in expected/corrected.txt: a title, lines, what is said, and rows by query."""
    for text in (EXPECTED / "corrected.txt").read_text(encoding="utf-8").split("\n# ")[1:]:
        title, *others = text.strip().splitlines()
        lines, said = (
            [line[2:] for line in others if line.startswith(f"{mark} ")] for mark in "+:"
        )
        rows = "\n".join(line for line in others if line[0] not in "+:")
        queries = re.findall(r"((?:^[^\[].*\n?)+)((?:^\[.*\n?)+)", rows, re.MULTILINE)
        yield pytest.param(lines, said, queries, id=title)


@pytest.mark.parametrize(("lines", "said", "queries"), [*cases()])
def test_a_file_corrects_the_sample(tmp_path, uncorrected, lines, said, queries):
    """No other row gets another id."""
    named = [line if "rule" in line else f"{line},a test" for line in lines]
    file = file_of_corrections(tmp_path, *named)
    report = load([str(SAMPLE)], loader_settings(tmp_path / "x.db", file), nothing)
    about = [line for line in report if line.startswith(("correct", "obsolete"))]
    assert sorted(about) == sorted(said)
    for sql, rows in queries:
        found = select(tmp_path / "x.db", with_ids(sql))
        assert found == [tuple(json.loads(row)) for row in rows.splitlines()]
    ids = "SELECT resultId, raceId, driverId FROM results"
    assert len({*select(tmp_path / "x.db", ids)} ^ {*select(uncorrected, ids)}) <= 1


# Taken back, taken apart, exported.

RULE = 'rule,local-times,,,,"The dump has local times, a test"'
RULED = [
    f"races,{key},time,{wrong},{right},rule local-times"
    for key, wrong, right in [("2023/18", "19:00:00", "18:00:00"), ("2023/9", "13:00:00", "\\N")]
]
MISSING = [
    ("results", "1957/5/moss/99", "constructor=vanwall; positionOrder=23"),
    ("qualifying", "2023/18/lawson", "constructor=alphatauri; number=40; q1=1:40.000"),
    ("sprint_results", "2023/18/lawson", "constructor=alphatauri; positionOrder=21"),
    ("sprint_qualifying", "2023/18/lawson", "constructor=alphatauri; position=21"),
    ("practice", "2023/18/1/lawson", "constructor=alphatauri; laps=9"),
    ("lap_times", "2023/18/max_verstappen/99", "position=1; time=1:40.000"),
    ("pit_stops", "2023/18/albon/9", "lap=50; time=15:21:07; milliseconds=23456"),
    ("driver_standings", "2023/18/vettel", "points=0; position=23; positionText=23; wins=0"),
    ("constructor_standings", "2023/18/brm", "points=0; position=11"),
    ("entries", "2023/18/bottas", "constructor=alphatauri"),
]
TOO_MANY = (
    "qualifying,2023/18/alonso,row,number=14",
    "sprint_results,2023/18/alonso,row,constructor=aston_martin",
    "sprint_qualifying,2023/18/alonso,row,constructor=Aston_Martin",
    "practice,2023/18/1/alonso,row,number=14",
    "lap_times,2023/18/max_verstappen/1,row,position=5",
    "pit_stops,2023/18/albon/1,row,lap=10; time=14:21:07",
    "driver_standings,2023/18/alonso,row,wins=0",
    "constructor_standings,2023/18/ferrari,row,wins=1",
    r"results,1957/5/moss/18,row,status=engine; rank=\N",
)


def test_corrections_are_exported_and_if_they_are_taken_back_leave_no_trace(tmp_path, uncorrected):
    """In between, a database that is taken apart shows the same corrections and facts."""
    removed = [rf"{line},\N,a test" for line in TOO_MANY]
    added = [rf"{table},{key},row,\N,{facts},a test" for table, key, facts in MISSING]
    changed = ["results,1957/5/moss/20,laps,90,89,a test", RULE, *RULED]
    lines = file_of_corrections(tmp_path, *removed, *added, *changed)
    database = built(SAMPLE, tmp_path / "x.db", lines)
    told = select(database, TOLD)
    assert len(told) == len(TOO_MANY) + len(MISSING) + 3
    ids = "SELECT resultId, raceId, driverId, number FROM results"
    facts, numbers = facts_of(database), select(database, ids)
    files = [str(tmp_path / name) for name in ("dump.zip", "more.zip")]
    export(str(database), files[0], nothing, more=files[1])
    again = built(files, tmp_path / "again.db", None)
    assert (select(again, TOLD), facts_of(again), select(again, ids)) == (told, facts, numbers)
    replace_from_store(loader_settings(database), nothing)
    assert rows_of(database) == rows_of(uncorrected)
    assert select(database, ids) == select(uncorrected, ids)
    replace_from_store(loader_settings(database, lines), nothing)
    assert select(database, TOLD) == told
    store_path(database).unlink()
    replace_from_store(loader_settings(database), nothing)
    assert (select(database, TOLD), facts_of(database)) == (told, facts)
