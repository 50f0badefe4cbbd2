"""racedata.loader.build: what a database says about itself, and columns that follow from others.

service/test_oracle.py finds the order of all rows.
"""

import sqlite3
from contextlib import closing

from support import SAMPLE
from support.loads import built, csv_rows, edit, rows_of

from racedata.database import SCHEMA_VERSION
from racedata.loader.files.archives import Dump
from racedata.model import TABLES


def test_the_database_says_what_it_is(sample_database):
    with closing(sqlite3.connect(sample_database)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT isSample FROM build").fetchone() == (1,)
        (built_at,) = db.execute("SELECT builtAt FROM build").fetchone()
        ((*source, read_at, is_loaded, gave, is_provisional),) = db.execute(
            "SELECT * FROM sources"
        ).fetchall()
        counts = dict(db.execute("SELECT * FROM row_counts"))
        assert counts == {
            name: db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in counts
        }
        strict = {
            row[1]: row[5]
            for row in db.execute("PRAGMA table_list")
            if row[2] == "table" and not row[1].startswith("sqlite_")
        }
    files = [SAMPLE / f"{table.name}.csv" for table in TABLES]
    checksum = Dump("", SAMPLE, None).checksum(file for file in files if file.exists())
    assert source == [1, "sample", "sample", "CC BY-NC-SA 3.0 and 4.0", checksum]
    assert gave.startswith(
        "results of 8 races (1957 to 2023), fastest laps of 5 races (2005 to 2023), "
        "qualifying of 6 races (2005 to "
    )
    assert (is_loaded, is_provisional, read_at <= built_at) == (1, 0, True)
    assert len(built_at) == len("2023-07-02T13:00:00Z")
    assert set(counts) == {table.name for table in TABLES}
    assert set(strict.values()) == {1}


def ordered_rows(path, table):
    """The rows of a table in the order of `record`, each with the year and round of its race."""
    with closing(sqlite3.connect(path)) as db:
        db.row_factory = sqlite3.Row
        return db.execute(
            f"""SELECT t.*, year, round FROM {table} AS t JOIN races USING (raceId)
                ORDER BY year, round, record"""
        ).fetchall()


def csv_rows_of(folder, table):
    """The rows of a table of a dump: a dict each, numbers as numbers, with the year and round of
    the race.
    """

    def read(name):
        rows = csv_rows(folder, name)
        return [
            {key: int(value) if str(value).isdigit() else value for key, value in row.items()}
            for row in rows
        ]

    races = {
        race["raceId"]: {"year": race["year"], "round": race["round"]} for race in read("races")
    }
    return [row | races[row["raceId"]] for row in read(table)]


def test_a_qualifying_row_without_a_position_is_the_last_of_its_race(source, tmp_path):
    """A season that is only in races is added without a URL."""
    edit(source / "qualifying.csv", "\n1,9,16,16,6,1,", "\n1,9,16,16,6,\\N,")
    (source / "seasons.csv").write_text(
        "year,url\n2005,https://example.org/2005\n2031,https://example.org/2031\n"
    )
    rows = rows_of(built(source, tmp_path / "x.db"))
    qualifying = ordered_rows(tmp_path / "x.db", "qualifying")
    drivers = [row["driverId"] for row in qualifying if row["raceId"] == 9]
    assert (drivers[0], drivers[-1]) == (60, 16)
    years = {row[1] for row in rows["races"]}
    urls = {year: f"https://example.org/{year}" for year in (2005, 2031)}
    assert dict(rows["seasons"]) == dict.fromkeys(years) | urls


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
        final = ordered_rows(sample_database, table)
        rounds = {(row["year"], row["round"]) for row in final if row["final"] == 1}
        of_1957 = {(1957, 8)} if table == "driver_standings" else set()
        assert rounds == of_1957 | {(1997, 17), (2005, 19), (2021, 22), (2023, 22)}
        running = [row for row in ordered_rows(tmp_path / "x.db", table) if row["year"] == 2023]
        assert {row["round"] for row in running} == {9, 18}
        assert not any(row["final"] for row in running)


def test_a_constructor_that_only_entered_a_driver_comes_after_the_one_in_the_result(
    source, tmp_path
):
    result = next(
        row
        for row in csv_rows_of(source, "results")
        if (row["year"], row["round"]) == (2023, 9) and row["constructorId"] > 1
    )
    race, driver, constructor = (result[id] for id in ("raceId", "driverId", "constructorId"))
    text = f"raceId,driverId,constructorId\n{race},{driver},1\n"
    (source / "entries.csv").write_text(text, encoding="utf-8")
    standings = ordered_rows(built(source, tmp_path / "x.db"), "driver_standings")
    (found,) = (
        row["constructors"]
        for row in standings
        if (row["year"], row["round"], row["driverId"]) == (2023, 9, driver)
    )
    assert found == f"{constructor} 1"
