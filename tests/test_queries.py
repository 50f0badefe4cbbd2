"""racedata.queries: what an address selects, how pages are cut, and that indexes carry every query."""

import itertools

import pytest
from conftest import SAMPLE
from hypothesis import given
from hypothesis import strategies as st

from racedata import queries
from racedata.addresses import Grammar
from racedata.datafile import DataFile
from racedata.queries import Directory, NotRun
from racedata.resources import ENDPOINTS

GRAMMAR = Grammar("/ergast/f1", {endpoint.name: endpoint.rules for endpoint in ENDPOINTS})


@pytest.fixture(scope="module")
def data(sample_database):
    return DataFile.read(sample_database)


@pytest.fixture(scope="module")
def directory(data):
    return Directory(data)


@pytest.mark.parametrize(
    ("path", "season", "round"),
    [
        ("", None, None),
        ("/2023", 2023, None),
        ("/2023/99", 2023, 99),
        ("/current", 2023, None),
        ("/current/last", 2023, 18),
        ("/current/next", 2023, 19),
        ("/2023/next", 2023, 19),
        ("/1957/last", 1957, 5),
        ("/1997/next", 1997, 1),
        ("/2030/next", 2031, 1),
        ("/1949/next", 1950, 1),
    ],
)
def test_season_and_round_are_numbers_of_the_database(directory, path, season, round):
    selection = directory.select(GRAMMAR.parse(path))
    assert (selection.season, selection.round) == (season, round)


@pytest.mark.parametrize("path", ["/1997/last", "/2030/last/results"])
def test_a_season_without_results_has_no_last_round(directory, path):
    with pytest.raises(NotRun, match=f"No race of season {path[1:5]} has results yet"):
        directory.select(GRAMMAR.parse(path))


@pytest.mark.parametrize("path", ["/drivers/nobody/results", "/2023/99/results", "/1949/1", "/circuits/x/races"])
def test_what_does_not_exist_selects_nothing(directory, path):
    assert directory.select(GRAMMAR.parse(path)).filters is None


def test_ids_are_numbers_and_fastest_0_is_no_filter(directory):
    filters = directory.select(GRAMMAR.parse("/2023/18/drivers/LECLERC/grid/0/fastest/0/results/r")).filters
    assert set(filters) == {"race", "drivers", "grid", "results"}
    assert directory.drivers[filters["drivers"]]["driverId"] == "leclerc"
    assert (filters["grid"], filters["results"]) == (0, "R")


SOURCES = [source for source in vars(queries).values() if isinstance(source, queries.Source)]


def complete_filters(data, directory, source):
    """Some value for each filter of a source."""
    values = {name: 1 for name in source.filters}
    race = directory.race_ids[2023, 18]
    values["circuits"] = directory.race_rows[race]["circuitId"]
    return values, race


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.table)
def test_no_set_of_filters_scans_a_table_that_an_index_could_avoid(data, directory, source):
    values, race = complete_filters(data, directory, source)
    fronts = [{"race": race}] if source.counted_per_race else [{}, {"season": 2023}, {"race": race}]
    checked = 0
    for front in fronts:
        for count in range(len(values) + 1):
            for names in itertools.combinations(values, count):
                where = source.where({**front, **{name: values[name] for name in names}})
                sql = f"EXPLAIN QUERY PLAN SELECT count(*) FROM {source.table}{where}"
                steps = [row["detail"] for row in data.rows(sql, tuple(where.values))]
                if where.terms and source is not queries.SPRINT:  # a few hundred rows
                    assert not [step for step in steps if step.startswith(f"SCAN {source.table}")], (names, steps)
                assert not [step for step in steps if step == "SCAN results"], (names, steps)
                checked += 1
    assert checked == len(fronts) * 2 ** len(values)


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.table)
@given(numbers=st.tuples(st.integers(0, 1100), st.integers(0, 1100)))
def test_a_page_of_numbered_rows_is_the_page_that_counting_finds(data, directory, source, numbers):
    limit, offset = numbers
    race = directory.race_ids[2023, 18]
    filters = {"race": race} if source.counted_per_race else {}
    where = " WHERE raceId = ?" if source.counted_per_race else ""
    sql = f"SELECT {source.columns} FROM {source.table}{where} ORDER BY record LIMIT ? OFFSET ?"
    expected = data.rows(sql, (*filters.values(), limit, offset))
    total, rows = source.page(data, filters, limit, offset)
    assert [tuple(row) for row in rows] == [tuple(row) for row in expected]
    assert total == data.row(f"SELECT count(*) FROM {source.table}{where}", tuple(filters.values()))[0]


def test_a_page_of_timings_costs_the_same_wherever_it_begins(data, directory):
    race = directory.race_ids[2023, 18]

    def instructions(offset):
        """How many times SQLite's virtual machine asked to go on: a tenth of its instructions."""
        count = 0

        def instruction():
            nonlocal count
            count += 1

        data._connection.set_progress_handler(instruction, 10)
        assert len(queries.LAPS.page(data, {"race": race}, 30, offset)[1]) == 30
        data._connection.set_progress_handler(None, 0)
        return count

    instructions(0)  # makes SQLite read the schema
    first = instructions(0)
    assert first > 10
    assert [abs(instructions(offset) - first) <= 1 for offset in (500, 980)] == [True, True]


def test_races_with_a_filter_of_results_are_those_with_such_a_row_each_once(data, directory):
    filters = directory.select(GRAMMAR.parse("/drivers/leclerc/races")).filters
    found = queries.races(data, directory, filters)
    assert [directory.races[id]["raceName"] for id in found] == [
        "British Grand Prix",
        "Belgian Grand Prix",
        "Austrian Grand Prix",
        "United States Grand Prix",
    ]


def test_races_without_one_are_those_of_the_calendar(data, directory):
    filters = directory.select(GRAMMAR.parse("/circuits/monza/races")).filters
    found = [directory.races[id]["season"] for id in queries.races(data, directory, filters)]
    with (SAMPLE / "races.csv").open(encoding="utf-8") as lines:
        assert len(found) == sum("Italian Grand Prix" in line for line in lines)
    assert found == sorted(found)


def test_the_fullest_race_is_the_last_that_has_most(data):
    loaded = queries.loaded(data)
    assert (loaded["season"], loaded["round"]) == (2023, 18)
    assert (loaded["seasons"], loaded["first"], loaded["last"]) == (5, 1957, 2023)
