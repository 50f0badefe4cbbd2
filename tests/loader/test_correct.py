"""racedata.loader.correct: a row too many, a row missing, and rules."""

import pytest
from support import SAMPLE
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
from racedata.loader.correct import apply_corrections, note_corrections
from racedata.loader.corrections import corrections_at, corrections_in
from racedata.loader.export import export
from racedata.loader.reading import all_read
from racedata.loader.rebuild import replace_from_store

TOLD = "SELECT tableName, key, columnName, sourceValue, value, witnesses FROM corrections"


def nothing(text):
    pass


@pytest.fixture
def build(tmp_path):
    """Builds a database with some lines of corrections. Returns its path."""

    def build(*lines, source=SAMPLE, name="x"):
        return built(source, tmp_path / f"{name}.db", file_of_corrections(tmp_path, *lines))

    return build


@pytest.fixture(scope="module")
def uncorrected(tmp_path_factory):
    return built(SAMPLE, tmp_path_factory.mktemp("uncorrected") / "x.db", None)


@pytest.fixture
def applied():
    """Applies lines to the sample. Returns what was changed, and the Stage while it is open."""
    with all_read([str(SAMPLE)], nothing) as (stage,):

        def applied(path):
            return apply_corrections(stage, corrections_at(path)), stage

        yield applied


def of(driver, table="results", race="1957/5", columns="number, laps"):
    return with_ids(f"SELECT {columns} FROM {table} WHERE RACE({race}) AND DRIVER({driver})")


BONNIER = r"results,1957/5/bonnier,row,constructor=Maserati; laps=18; rank=\N,\N,a test"
ADDED = (
    "results,1957/5/ward,row,\\N,"
    '"constructor=brm; number=99; positionOrder=20; positionText=R; laps=3; status=Bird strike",'
    "a test"
)


# A row too many.


def test_a_row_too_many_is_removed_if_its_facts_are_those_of_the_file(build, uncorrected):
    database = build(BONNIER)
    assert select(database, of("bonnier")) == []
    assert select(database, of("bonnier", "entries", columns="constructorId")) == []
    facts = r"constructor=maserati; laps=18; rank=\N"
    told = ("results", "1957/5/bonnier", "row", facts, None, "a test")
    assert select(database, TOLD) == [told]
    ids = "SELECT resultId, raceId FROM results"
    assert len({*select(uncorrected, ids)} - {*select(database, ids)}) == 1


def test_a_row_with_other_facts_stays_and_the_correction_is_obsolete(applied, tmp_path):
    found, _ = applied(
        file_of_corrections(
            tmp_path,
            "results,1957/5/bonnier,row,constructor=ferrari; laps=18,\\N,a test",
            "results,1957/5/naylor,row,laps=1,\\N,a test",
            "results,1957/5/moss,row,laps=51,\\N,a test",
        )
    )
    assert found.rows == 0
    assert found.remarks == [
        "obsolete correction, not applied: results 1957/5/bonnier row is constructor=maserati; "
        "laps=18, not constructor=ferrari; laps=18",
        "correction not applied: results 1957/5/moss row: 2 rows; expected a key that ends with "
        "the number of the car",
    ]


# A row that is missing.


def test_a_missing_row_is_added_and_no_other_row_has_another_id(build, uncorrected):
    database = build(ADDED)
    row = "number, laps, positionText, positionOrder, points, status.status"
    sql = f"SELECT {row} FROM results JOIN status USING (statusId) WHERE "
    sql += "RACE(1957/5) AND DRIVER(ward)"
    assert select(database, with_ids(sql)) == [(99, 3, "R", 20, None, "Bird strike")]
    assert len(select(database, of("ward", "entries", columns="constructorId"))) == 1
    facts = ADDED.split('"')[1]
    assert select(database, TOLD) == [("results", "1957/5/ward", "row", None, facts, "a test")]
    ids = "SELECT resultId, raceId, driverId FROM results ORDER BY resultId"
    assert select(database, ids)[:-1] == select(uncorrected, ids)
    about = "SELECT year, raceId NOT NULL, driverRef FROM corrections JOIN drivers USING (driverId)"
    assert select(database, about) == [(1957, 1, "ward")]


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


def test_a_row_without_a_place_in_the_order_is_added_behind_all_others(build):
    database = build(r"results,1957/5/ward/99,row,\N,constructor=cooper; number=99; laps=3,a test")
    order = "SELECT max(positionOrder), DRIVER(ward) FROM results JOIN drivers USING (driverId)"
    assert select(database, with_ids(f"{order} WHERE RACE(1957/5)")) == [(20, 1)]
    assert select(database, TOLD)[0][4] == "constructor=cooper; laps=3"


def test_a_row_that_is_there_is_not_added(applied, tmp_path):
    found, _ = applied(
        file_of_corrections(
            tmp_path,
            "results,1957/5/bonnier,row,\\N,constructor=maserati; positionOrder=18,a test",
            "results,1957/5/gould,row,\\N,constructor=maserati; positionOrder=23,a test",
            "results,1957/6/gould,row,\\N,constructor=maserati; positionOrder=23,a test",
            "results,1957/5/nobody,row,\\N,constructor=maserati; positionOrder=23,a test",
            "results,1957/5/ward,row,\\N,constructor=fiat; positionOrder=23,a test",
        )
    )
    assert found.rows == 0
    assert sorted(found.remarks) == [
        "correction not applied: results 1957/5/nobody row: 'nobody'; expected a driver of the "
        "source",
        "correction not applied: results 1957/5/ward row: 'fiat'; expected a constructor of the "
        "source",
        "correction not applied: results 1957/6/gould row: the data has no such row",
    ]


# Rules.

RULE = 'rule,local-times,,,,"The dump has local times, a test"'
RULED = [
    f"races,{key},time,{wrong},{right},rule local-times"
    for key, wrong, right in [("2023/18", "19:00:00", "18:00:00"), ("2023/9", "13:00:00", "\\N")]
]


def test_corrections_with_a_rule_have_its_sentence(tmp_path):
    file = file_of_corrections(tmp_path, RULED[0], RULE, RULED[1])
    lines = [line.correction for line in corrections_in(file, nothing)]
    assert [each.key for each in lines] == ["2023/18", "2023/9"]
    assert {each.witnesses for each in lines} == {"The dump has local times, a test"}


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (
            [RULE, "", *RULED, "drivers,alonso,number,14,41,rule other"],
            "line 6, column source: 'rule other'; expected a sentence, or a rule that a line gives",
        ),
        ([*RULED, RULE, RULE], "line 5, columns table, key, column: 'rule, local-times, "),
        (
            ["drivers,alonso,code,ALO,ALX,a test", "drivers,Alonso,code,ALX,ALZ,a test"],
            "line 3, columns table, key, column: 'drivers, Alonso, code' appears twice; expected",
        ),
    ],
)
def test_an_unknown_rule_or_two_lines_about_the_same_are_refused_with_their_line(
    tmp_path, lines, said
):
    with pytest.raises(Exception) as error:
        corrections_at(file_of_corrections(tmp_path, *lines))
    assert str(error.value).startswith(f"corrections.csv, {said}")


# Taken back, taken apart, exported.

ALL = [
    "results,1957/5/moss/18,laps,51,50,a test",
    BONNIER,
    ADDED,
    "pit_stops,2023/18/bottas/1,row,lap=10,\\N,a test",
    RULE,
    *RULED,
]


def test_a_correction_whose_row_has_other_facts_is_not_noted(applied, tmp_path):
    path = file_of_corrections(tmp_path, *ALL)
    _, stage = applied(file_of_corrections(tmp_path / "..", *()))
    note_corrections(stage, corrections_in(path, nothing))
    assert stage.db.execute("SELECT * FROM stage.corrections").fetchall() == []


def test_an_export_has_the_corrected_rows_and_says_so(build, tmp_path):
    database = build(*ALL)
    files = [str(tmp_path / name) for name in ("dump.zip", "more.zip")]
    export(str(database), files[0], nothing, more=files[1])
    again = built(files, tmp_path / "again.db", None)
    assert select(again, TOLD) == select(database, TOLD)
    assert facts_of(again) == facts_of(database)
    ids = "SELECT resultId, raceId, driverId, number FROM results"
    assert select(again, ids) == select(database, ids)


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


def test_corrections_that_are_taken_back_leave_no_trace(tmp_path, uncorrected):
    """In between, a database that is taken apart shows the same corrections and facts."""
    removed = [rf"{line},\N,a test" for line in TOO_MANY]
    added = [rf"{table},{key},row,\N,{facts},a test" for table, key, facts in MISSING]
    changed = ["results,1957/5/moss/20,laps,90,89,a test", RULE, *RULED]
    lines = file_of_corrections(tmp_path, *removed, *added, *changed)
    database = built(SAMPLE, tmp_path / "x.db", lines)
    told = select(database, TOLD)
    assert len(told) == len(TOO_MANY) + len(MISSING) + 3
    replace_from_store(loader_settings(database), nothing)
    assert rows_of(database) == rows_of(uncorrected)
    ids = "SELECT resultId, raceId, driverId, number FROM results"
    assert select(database, ids) == select(uncorrected, ids)
    replace_from_store(loader_settings(database, lines), nothing)
    assert select(database, TOLD) == told
    facts = facts_of(database)
    store_path(database).unlink()
    replace_from_store(loader_settings(database), nothing)
    assert facts_of(database) == facts
    assert select(database, TOLD) == told
