"""racedata.loader.compare.discrepancies, sides: facts about which sources disagree are
found, and what is known about them.
"""

import csv
import random
import shutil
from contextlib import closing

import pytest
from support import EXPECTED, PACKAGE, SAMPLE
from support.loads import edit, file_of_corrections, loader_settings, select
from support.stores import a_calendar, a_delivery, a_race, a_source, put, results

from racedata.loader.build import build_database
from racedata.loader.compare.discrepancies import RESOLVED
from racedata.loader.corrections import CORRECTIONS, Corrections, corrections_at
from racedata.loader.existing import open_read_only
from racedata.loader.load import load
from racedata.loader.parts import Part
from racedata.loader.store_commands import remove

F1DB = EXPECTED / "f1db"


def test_each_open_fact_of_full_dumps_says_what_would_settle_it(full_database):
    ends = "explanation LIKE '% would settle it.'"
    sql = f"SELECT state, count(*) FROM discrepancies WHERE {ends} GROUP BY state"
    [(state, count)] = select(full_database, sql)
    of_state = "SELECT count(*) FROM discrepancies WHERE state = 'open'"
    assert (state, [(count,)]) == ("open", select(full_database, of_state))
    assert count < 500


def discrepancies(path):
    """The discrepancies of a database: all that is said about a fact, by kind, key and column."""
    with closing(open_read_only(path)) as db:
        said: dict[int, dict[str, str]] = {}
        for record, source, value in db.execute(
            "SELECT record, source, value FROM discrepancy_values"
        ):
            said.setdefault(record, {})[source] = value
        found = db.execute("SELECT * FROM discrepancies ORDER BY record")
        names = [name for name, *_ in found.description]
        rows = [dict(zip(names, row)) for row in found]
    return {
        (row["kind"], row["key"], row["columnName"]): row | {"said": said[row["record"]]}
        for row in rows
    }


def found_in(store, folder, corrections=None):
    """The discrepancies of a store: what each source says about a fact, and its state."""
    path = folder / f"{random.randrange(1 << 60)}.db"
    build_database(path, store, Corrections(corrections_at(corrections)), lambda text: None)
    return discrepancies(path)


def with_laps(laps, *more):
    """The results of a race, in which moss, who was second, has driven some laps."""
    part = results(1, "clark", "moss", *more)
    rows = [[*row] for row in part.rows]
    rows[1][part.columns.index("laps")] = laps
    return part._replace(rows=rows)


def put_sources(store, **parts):
    """Puts one part of each source, or several."""
    several = {name: said if isinstance(said, list) else [said] for name, said in parts.items()}
    put(store, *(a_delivery(a_source(name), CALENDAR, *said) for name, said in several.items()))


def a_part(kind, *rows):
    return Part(2023, 1, kind, COLUMNS[kind], rows)


CALENDAR = a_calendar(a_race(1, raceId=1))
COLUMNS = {
    "results": ("driverId", "constructorId", "positionText", "positionOrder", "statusId"),
    "qualifying": ("driverId", "constructorId", "position"),
    "fastest_laps": ("driverId", "number", "positionText", "positionOrder", "fastestLap", "rank"),
}
LAPS = ("results", "2023/1/moss", "laps")


def test_a_fact_about_which_sources_disagree_has_what_each_of_them_says(store, tmp_path):
    put_sources(store, one=with_laps(50), two=with_laps(47), three=with_laps(40))
    found = found_in(store, tmp_path)
    assert [*found] == [LAPS]
    fact = found[LAPS]
    assert fact["said"] == {"one": "50", "two": "47", "three": "40"}
    assert (fact["value"], fact["state"], fact["year"]) == ("50", "open", 2023)
    assert fact["explanation"].endswith(" would settle it.")
    about = ("raceId", "driverId", "constructorId", "circuitId")
    assert [fact[name] is None for name in about] == [False, False, True, False]


def test_a_source_that_is_not_in_the_list_is_not_compared(store, tmp_path):
    put_sources(store, one=with_laps(50), two=with_laps(47))
    store.order(["one"])
    assert found_in(store, tmp_path) == {}


@pytest.mark.parametrize(
    ("sources", "state", "explanation"),
    [
        ({"dump": 50, "f1db": 50, "other": 47}, "resolved", "dump and f1db agree."),
        ({"dump": 50, "other": 50, "f1db": 47}, "open", ""),  # both descend from Ergast
        ({"dump": 47, "f1db": 50, "openf1": 50}, "open", ""),  # what counts is alone
        ({"dump": 50, "f1db": 50, "other": 47, "openf1": 47}, "resolved", ""),
        ({"dump": 50, "openf1": 47}, "open", ""),
    ],
    ids=["two families", "one family", "against us", "one for us", "one each"],
)
def test_a_choice_is_resolved_if_independent_sources_agree_with_it(
    store, tmp_path, sources, state, explanation
):
    put_sources(store, **{name: with_laps(laps) for name, laps in sources.items()})
    fact = found_in(store, tmp_path)[LAPS]
    assert fact["state"] == state
    assert fact["explanation"].startswith(explanation)


@pytest.mark.parametrize(("wrong", "right"), [("50", "47"), ("47", "50")])
def test_a_fact_is_resolved_by_the_witnesses_of_a_correction(store, tmp_path, wrong, right):
    """Even if the source has it right already."""
    put_sources(store, one=with_laps(50), two=with_laps(47))
    line = f"results,2023/1/moss,laps,{wrong},{right},a report and a photograph"
    fact = found_in(store, tmp_path, file_of_corrections(tmp_path, line))[LAPS]
    assert (fact["value"], fact["state"]) == (right, "resolved")
    assert fact["explanation"] == "a report and a photograph"


def test_a_convention_is_explained(store, tmp_path):
    put_sources(store, one=with_laps(50), two=a_part("results", *RETIRED))
    [fact] = found_in(store, tmp_path).values()
    said = "Sources differ in who is classified, and in who retired, withdrew, did not start or did"
    assert (fact["state"], fact["explanation"]) == ("explained", f"{said} not qualify.")


BOTH, MOSS = results(1, "clark", "moss"), results(1, "moss")
RETIRED = ["clark", "lotus", "R", 1, "Engine"], ["moss", "lotus", "2", 2, "Finished"]
IN_A_COOPER = results(1, "moss", constructor="cooper")
LAP_OF_CLARK, LAP_OF_MOSS = ["clark", 1, "1", 1, 10, 1], ["moss", 2, "2", 2, 20, 2]
# of a driver with two cars
FIRST_LAP, SECOND_LAP = (["moss", 1, "1", 1, lap, 1] for lap in (10, 20))
IN_LOTUS, IN_COOPER = (
    a_part("qualifying", ["moss", constructor, 1]) for constructor in ("lotus", "cooper")
)
SECOND = "number=2; positionText=2; laps=50; constructor=lotus; status=Finished"
FOUND = {
    "none if sources agree": (with_laps(50), BOTH, {}),
    "of rows of other drivers": (
        results(1, "clark", "moss"),
        results(1, "clark", "hill"),
        {
            "results 2023/1/hill row": (None, SECOND),
            "results 2023/1/moss row": (SECOND, None),
        },
    ),
    "without the columns that a source lacks": (
        with_laps(50),
        a_part("results", *RETIRED),
        {"results 2023/1/clark positionText": ("1", "R")},
    ),
    "of a driver who drove and has no fastest lap": (
        [BOTH, a_part("fastest_laps", LAP_OF_CLARK)],
        [BOTH, a_part("fastest_laps", LAP_OF_CLARK, LAP_OF_MOSS)],
        {
            "fastest_laps 2023/1/moss fastestLap": (None, "20"),
            "fastest_laps 2023/1/moss rank": (None, "2"),
        },
    ),
    "none of the fastest lap of a driver with two cars": (
        [results(1, "moss", "moss"), a_part("fastest_laps", FIRST_LAP)],
        [results(1, "moss", "moss"), a_part("fastest_laps", SECOND_LAP)],
        {},
    ),
    "of the constructor of a car, once, in the results": (
        [MOSS, IN_LOTUS],
        [IN_A_COOPER, IN_COOPER],
        {"results 2023/1/moss constructor": ("lotus", "cooper")},
    ),
    "of the constructor in the qualifying, if a source has no results": (
        [MOSS, IN_LOTUS],
        IN_COOPER,
        {"qualifying 2023/1/moss constructor": ("lotus", "cooper")},
    ),
}


@pytest.mark.parametrize(("one", "two", "expected"), FOUND.values(), ids=FOUND)
def test_two_sources_have_these_discrepancies(store, tmp_path, one, two, expected):
    put_sources(store, one=one, two=two)
    found = found_in(store, tmp_path)
    said = {" ".join(key): (*fact["said"].values(),) for key, fact in found.items()}
    assert said == expected


@pytest.mark.parametrize(
    ("kind", "numbers", "differing"),
    [
        ("results", ((18, 20), (20,)), {"/18": "01"}),
        ("results", ((18, 20), ()), {"/18": "01", "/20": "01"}),
        ("results", ((18, 20), (17, 20)), {}),
        ("results", ((20,), (17,)), {}),
        ("results", ((20,), ()), {"": "01"}),
        ("results", ((18, 20), (17, 20), (20,)), {"/17": "12", "/18": "02"}),
        ("pit_stops", ((1, 2), (2,)), {"/1": "01"}),
        ("pit_stops", ((1, 2), (2, 3)), {}),
        ("pit_stops", ((1,), (1, 2), (2,)), {"/1": "012", "/2": "012"}),
    ],
)
def test_a_car_or_stop_that_only_some_sources_have_is_a_row_if_others_have_fewer(
    store, tmp_path, kind, numbers, differing
):
    """Of cars and stops with these numbers, by source: which sources have or lack a row."""
    columns = ("driverId", "number", "constructorId", "positionText", "positionOrder", "statusId")

    def said(of_source):
        if kind == "pit_stops":
            stops = [["moss", number] for number in of_source]
            return [MOSS, Part(2023, 1, kind, ("driverId", "stop"), stops)]
        cars = [("clark", 1), *(("moss", number) for number in of_source)]
        rows = [[driver, number, "lotus", "R", 2, "Engine"] for driver, number in cars]
        return Part(2023, 1, kind, columns, rows)

    put_sources(store, **{str(place): said(each) for place, each in enumerate(numbers)})
    found = found_in(store, tmp_path)
    assert {
        key.removeprefix("2023/1/moss"): "".join(fact["said"])
        for (_, key, column), fact in found.items()
        if column == "row"
    } == differing


def test_a_fact_that_is_not_corrected_has_its_reason(tmp_path):
    path = tmp_path / "merged.db"
    load([str(SAMPLE), str(F1DB)], loader_settings(path, CORRECTIONS), lambda text: None)
    fact = discrepancies(path)["results", "2023/9/bottas", "grid"]
    with (PACKAGE / "loader" / "not_corrected.csv").open(newline="", encoding="utf-8") as file:
        lines = {(row["table"], row["key"]): row for row in csv.DictReader(file)}
    line = lines["results", "2023/9/bottas"]
    assert (fact["value"], fact["state"]) == (line["here"], line["state"])
    assert fact["explanation"] == line["reason"]


def test_the_most_doubtful_comes_first(merged):
    doubts = select(merged, "SELECT doubt FROM discrepancies ORDER BY record")
    assert len(doubts) > 10 and doubts == sorted(doubts)
    assert {row for (row,) in select(merged, "SELECT state FROM discrepancies")} >= {
        "open",
        "explained",
        RESOLVED,
    }


def test_a_database_is_replaced_if_only_its_discrepancies_differ(tmp_path):
    path = tmp_path / "racedata.db"
    other = shutil.copytree(SAMPLE, tmp_path / "other")
    edit(other / "drivers.csv", ",Norris,", ",Noris,")
    load([str(SAMPLE), str(other)], loader_settings(path), lambda text: None)
    assert discrepancies(path)["drivers", "norris", "surname"]["said"]["other"] == "Noris"
    lines = remove(loader_settings(path), str(other), lambda text: None)
    assert lines and discrepancies(path) == {}
