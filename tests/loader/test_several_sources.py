"""racedata.loader.load, racedata.loader.reading, racedata.loader.update: what a further source adds
to the first, and what a load keeps of the old database.

The further source is the sample with other ids, rounds and dates, so that nothing can be matched by
those.
"""

import pytest
from support import SAMPLE
from support.answers import client
from support.apis import answers_of, refreshed, served
from support.loads import (
    RECORDS,
    built,
    edit,
    edited,
    loader_settings,
    race_ids,
    rows_of,
    run_loader,
    select,
    without,
)

from racedata.loader.load import load as load_dumps
from racedata.loader.sources import addresses_in

NUMBERED = "raceId driverId constructorId circuitId statusId resultId qualifyId driverStandingsId"
IDS = [*NUMBERED.split(), "constructorStandingsId"]
US_GRAND_PRIX = race_ids(SAMPLE, 2023)[18]


def renumbered(row):
    """A row with other ids and rounds, and the race a day later, as a source with dates in UTC may
    have it.
    """
    changes = {name: str(int(row[name]) + 1000) for name in IDS if name in row}
    if "round" in row:
        changes["round"] = str(60 - int(row["round"]))
        if row["raceId"] == US_GRAND_PRIX:
            changes["date"] = "2023-10-23"
    return row | changes


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    """The further source."""
    tables = [path.stem for path in SAMPLE.glob("*.csv")]
    return edited(
        SAMPLE, tmp_path_factory.mktemp("other") / "other", **dict.fromkeys(tables, renumbered)
    )


def lacking(folder, *tables, **edits):
    """The sample without the rows of one race in some tables."""

    def drop(row):
        return None if row["raceId"] == US_GRAND_PRIX else row

    return edited(SAMPLE, folder / "lacking", **dict.fromkeys(tables, drop), **edits)


def load(database, *sources):
    """Loads from several sources. Returns the lines of the report."""
    addresses = [address for each in sources for address in addresses_in(str(each))]
    return load_dumps(addresses, loader_settings(database), lambda text: None)


def test_a_further_source_adds_the_kinds_of_records_that_a_race_lacks(
    other, sample_database, tmp_path
):
    source = lacking(tmp_path, *RECORDS)
    said = load(tmp_path / "x.db", source, other)
    assert rows_of(tmp_path / "x.db") == rows_of(sample_database)
    of_other = next(line for line in said if line.startswith(f"{other}: "))
    assert {
        text.partition(" of 1 race (2023)")[0].replace(" ", "_")
        for text in of_other[len(f"{other}: ") :].split(", ")
    } == {*RECORDS, "fastest_laps"}


def test_existing_facts_never_change_and_the_sources_are_kept_apart(
    other, sample_database, tmp_path
):
    database = tmp_path / "x.db"
    edit(other / "licence.txt", "CC BY-NC-SA 3.0 and 4.0", "CC BY-SA 4.0")
    said = load(database, SAMPLE, other)
    edit(other / "licence.txt", "CC BY-SA 4.0", "CC BY-NC-SA 3.0 and 4.0")
    assert rows_of(database) == rows_of(sample_database)
    assert f"{other}: nothing" in said
    assert said[-1].endswith(f" from sample and {other}")
    rows = select(database, "SELECT name, licence, isLoaded FROM sources ORDER BY sourceId")
    assert rows == [("sample", "CC BY-NC-SA 3.0 and 4.0", 1), (str(other), "CC BY-SA 4.0", 1)]


def test_fastest_laps_are_added_to_results_without_any(other, sample_database, tmp_path):
    unknown = dict.fromkeys(("fastestLap", "rank", "fastestLapTime", "fastestLapSpeed"), r"\N")

    def results(row):
        return row | unknown if row["raceId"] == US_GRAND_PRIX else row

    load(tmp_path / "x.db", lacking(tmp_path, results=results), other)
    assert rows_of(tmp_path / "x.db") == rows_of(sample_database)
    kinds = select(tmp_path / "x.db", "SELECT kind FROM origins WHERE sourceId = 2")
    assert kinds == [("fastest_laps",)]


SESSIONS = [
    f"{name}_{what}"
    for name in ("fp1", "fp2", "fp3", "quali", "sprint")
    for what in ("date", "time")
]


def unscheduled(row):
    """A race without the times of the race and of sessions, of which it has none."""
    return row | dict.fromkeys(["time", *SESSIONS], r"\N")


def without_sessions(row):
    return unscheduled(row) | {"time": row["time"]}


def test_the_newest_of_many_races_without_a_match_are_named_and_add_nothing(other, tmp_path):
    further = edited(other, tmp_path / "other", races=lambda row: row | {"circuitId": "1001"})
    said = load(tmp_path / "x.db", lacking(tmp_path, *RECORDS), further)
    (line,) = [line for line in said if "no matching race in the database" in line]
    assert line.startswith("2023/")
    assert line.endswith(" more: no matching race in the database, or more than one; not added")


# What a load keeps of the database from before.


@pytest.fixture
def refreshed_database(sample_database, tmp_path):
    """A database of the sample without the latest round, which a refresh on the day after the race
    has brought.
    """
    database = built(without(SAMPLE, tmp_path / "dump", 2023, 18), tmp_path / "racedata.db")
    with served(answers_of(client(sample_database))) as server:
        refreshed(database, server.url, season=2023, now=1_698_100_000)
    assert rows_of(database) == rows_of(sample_database)
    return database


def test_a_load_of_an_older_dump_keeps_refreshed_records(
    refreshed_database, sample_database, tmp_path
):
    before = select(
        refreshed_database,
        "SELECT kind, fetchedAt FROM origins WHERE fetchedAt NOT NULL ORDER BY 1, 2",
    )
    for dump in (tmp_path / "dump", lacking(tmp_path, *RECORDS)):
        load(refreshed_database, dump)
        assert rows_of(refreshed_database) == rows_of(sample_database)
    kept = "SELECT kind, fetchedAt FROM origins WHERE fetchedAt NOT NULL ORDER BY 1, 2"
    assert select(refreshed_database, kept) == before
    sources = select(refreshed_database, "SELECT name, isLoaded FROM sources ORDER BY sourceId")
    assert [is_loaded for _, is_loaded in sources] == [1, 0]
    assert sources[1][0].startswith("http://127.0.0.1:")


SOURCES_AND_ORIGINS = (
    "sourceId, name, gave, isLoaded FROM sources",
    "raceId, kind, sourceId FROM origins",
)


def test_if_an_additional_source_fails_its_stored_records_are_used(
    other, sample_database, tmp_path
):
    source, further = lacking(tmp_path, "qualifying", races=without_sessions), tmp_path / "further"
    database = tmp_path / "x.db"
    run = run_loader(further, built(source, database), source)
    assert (run.returncode, run.stdout) == (1, "")
    assert f"{further}: not found; expected a folder of CSV files" in run.stderr
    further.symlink_to(other)
    last = edited(other, tmp_path / "last")
    load(database, source, further, last)
    before = [select(database, f"SELECT {what} ORDER BY 1") for what in SOURCES_AND_ORIGINS]
    further.unlink()
    run = run_loader("", database, cwd=tmp_path)  # the same sources again
    assert f"{further}: not found; expected a folder" in run.stdout
    assert "; the records of this source in the database are kept\n" in run.stdout
    assert rows_of(database) == rows_of(sample_database)
    assert [select(database, f"SELECT {what} ORDER BY 1") for what in SOURCES_AND_ORIGINS] == before
