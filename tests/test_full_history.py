"""A full dump with f1db: no fact of the dump changes, and answers about history are those of
published tables.
"""

import sqlite3
from contextlib import closing

import pytest
from support.answers import client
from support.loads import built, select

LISTS = ("seasons", "circuits", "constructors", "drivers", "status", "races")
RECORDS = (
    *("sessions", "qualifying", "sprint_results", "lap_times", "pit_stops"),
    *("driver_standings", "constructor_standings"),
)
# of results: where no row of a race has one, f1db's are added
FASTEST = ("rank", "fastestLap", "fastestLapTime")

# Of each driver, the pole positions and fastest laps that are published.
POLES = {
    "senna": 65,
    "clark": 33,
    "prost": 33,
    "mansell": 32,
    "fangio": 29,
    "lauda": 24,
    "piquet": 24,
    "hakkinen": 26,
    "damon_hill": 20,
    "stewart": 17,
    "moss": 16,
    "peterson": 14,
    "rindt": 10,
    # he was fastest in Monaco in 2012, and started sixth because of a penalty
    "michael_schumacher": 68 + 1,
}
FASTEST_LAPS = {
    "prost": 41,
    "mansell": 30,
    "clark": 28,
    "fangio": 23,
    "moss": 19,
    "senna": 19,
    "stewart": 15,
    "ascari": 13,  # with the lap of 1954/5 that he shared with others; some tables have 12
}


@pytest.fixture(scope="session")
def both(dump, f1db, built_once):
    """A database of the dump and what f1db adds, as both are."""
    return built_once("both", lambda path: built([dump, f1db], path, None))


def columns(database, table, *others):
    """The columns of a table but its `record` and some others."""
    found = select(database, f"SELECT name FROM pragma_table_info('{table}')")
    return ", ".join(name for (name,) in found if name not in ("record", *others))


def test_every_fact_of_the_dump_is_as_it_was_and_only_races_without_a_kind_get_rows_of_it(
    both, dump_database
):
    with closing(sqlite3.connect(both)) as db:
        db.execute("ATTACH ? AS dump", (str(dump_database),))
        for table in (*LISTS, *RECORDS, "results"):
            facts = columns(both, table, *FASTEST) if table == "results" else columns(both, table)
            lost = f"SELECT {facts} FROM dump.{table} EXCEPT SELECT {facts} FROM main.{table}"
            assert db.execute(lost).fetchall() == [], table
        for column in FASTEST:
            changed = f"old.{column} NOT NULL AND old.{column} IS NOT new.{column}"
            tables = "dump.results AS old JOIN main.results AS new USING (resultId)"
            found = db.execute(f"SELECT resultId FROM {tables} WHERE {changed}").fetchall()
            assert found == [], column
        for table in (*RECORDS, "results"):
            rows = f"SELECT raceId, count(*) FROM {{}}.{table} GROUP BY raceId"
            before, after = (dict(db.execute(rows.format(name))) for name in ("dump", "main"))
            assert {race: after[race] for race in before} == before, table


def test_each_race_since_2021_has_its_sessions_with_times_since_2022(both):
    with_times = (
        "SELECT year, count(*), count(sessions.time) FROM sessions JOIN races USING "
        "(raceId) GROUP BY year"
    )
    assert [(year, rows == times) for year, rows, times in select(both, with_times)] == [
        (year, year > 2021) for year in range(2021, 2026)
    ]
    without = (
        "SELECT year FROM races WHERE year > 2020 AND raceId NOT IN (SELECT raceId FROM sessions)"
    )
    assert select(both, without) == []
    assert client(both).get("/ergast/f1/2025.ics").text.count("BEGIN:VEVENT") == 5 * 24


def test_the_numbers_of_poles_and_fastest_laps_are_those_that_were_published(both):
    app = client(both)

    def totals(drivers, path):
        found = {
            driver: app.get(f"/ergast/f1/drivers/{driver}/{path}.json?limit=1").json
            for driver in drivers
        }
        return {driver: int(answer["MRData"]["total"]) for driver, answer in found.items()}

    assert totals(POLES, "qualifying/1") == POLES
    assert totals(FASTEST_LAPS, "fastest/1/results") == FASTEST_LAPS
