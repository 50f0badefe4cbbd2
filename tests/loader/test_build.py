"""racedata.loader.build: what a database says about itself, and columns that follow from others.

service/test_oracle.py finds the order of all rows.
"""

from support import SAMPLE
from support.loads import built, edit, rows_of, select, with_ids

from racedata.loader.files.archives import Dump
from racedata.model import TABLES


def test_the_database_says_what_it_is(sample_database):
    tables = [table.name for table in TABLES]
    counts = dict(select(sample_database, "SELECT * FROM row_counts"))
    assert counts == {
        name: select(sample_database, f"SELECT count(*) FROM {name}")[0][0] for name in tables
    }
    [(built_at, is_sample)] = select(sample_database, "SELECT builtAt, isSample FROM build")
    sql = "SELECT * FROM sources"
    [(*source, read_at, is_loaded, gave, is_provisional)] = select(sample_database, sql)
    files = [SAMPLE / f"{name}.csv" for name in tables]
    checksum = Dump("", SAMPLE, None).checksum(file for file in files if file.exists())
    assert source == [1, "sample", "sample", "CC BY-NC-SA 3.0 and 4.0", checksum]
    assert gave.startswith(
        "results of 8 races (1957 to 2023), fastest laps of 5 races (2005 to 2023), "
        "qualifying of 6 races (2005 to "
    )
    assert (is_loaded, is_provisional, is_sample, read_at <= built_at) == (1, 0, 1, True)
    assert len(built_at) == len("2023-07-02T13:00:00Z")


def test_a_qualifying_row_without_a_position_is_the_last_of_its_race(source, tmp_path):
    """A season that is only in races is added without a URL."""
    edit(source / "qualifying.csv", "\n1,9,16,16,6,1,", "\n1,9,16,16,6,\\N,")
    (source / "seasons.csv").write_text(
        "year,url\n2005,https://example.org/2005\n2031,https://example.org/2031\n"
    )
    database = built(source, tmp_path / "x.db")
    sql = "SELECT driverId FROM qualifying WHERE raceId = 9 ORDER BY record"
    (first,), *_, (last,) = select(database, sql)
    assert (first, last) == (60, 16)
    years = {year for (year,) in select(database, "SELECT year FROM races")}
    urls = {year: f"https://example.org/{year}" for year in (2005, 2031)}
    assert dict(rows_of(database)["seasons"]) == dict.fromkeys(years) | urls


def test_standings_are_final_after_the_last_scheduled_round_of_a_season(
    source, sample_database, tmp_path
):
    """Without its last round, which is race 71 here, a season has no final standings."""
    tables = ("driver_standings", "constructor_standings")
    for table in tables:
        path = source / f"{table}.csv"
        rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text("".join(row for row in rows if row.split(",")[1] != "71"), encoding="utf-8")
    built(source, tmp_path / "x.db")
    for table in tables:
        sql = f"SELECT DISTINCT year, round FROM {table} JOIN races USING (raceId) WHERE final"
        of_1957 = {(1957, 8)} if table == "driver_standings" else set()
        others = of_1957 | {(1997, 17), (2005, 19), (2021, 22)}
        assert {*select(sample_database, sql)} == others | {(2023, 22)}
        assert {*select(tmp_path / "x.db", sql)} == others


def test_a_constructor_that_only_entered_a_driver_comes_after_the_one_in_the_result(
    source, sample_database, tmp_path
):
    of_alonso = "WHERE RACE(2023/9) AND DRIVER(alonso)"
    sql = with_ids(f"SELECT raceId, driverId, constructorId FROM results {of_alonso}")
    ((race, driver, constructor),) = select(sample_database, sql)
    text = f"raceId,driverId,constructorId\n{race},{driver},1\n"
    (source / "entries.csv").write_text(text, encoding="utf-8")
    sql = with_ids(f"SELECT constructors FROM driver_standings {of_alonso}")
    assert select(built(source, tmp_path / "x.db"), sql) == [(f"{constructor} 1",)]
