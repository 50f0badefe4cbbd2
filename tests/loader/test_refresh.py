"""racedata.loader.refresh: what an API has that the database lacks is fetched with few requests, or
nothing is.
"""

import hashlib
import io
import json
import random
import re
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from support import EXPECTED, ROOT, SAMPLE
from support.answers import bodies, client
from support.apis import FAULTS, answers_of, hanging, hurried, refreshed, served
from support.loads import (
    RECORDS,
    built,
    changed,
    csv_rows,
    edited,
    race_ids,
    rows_of,
    select,
    without,
)
from support.processes import following, until
from support.season import LimitedApi, SimulatedTime, follow_source

from racedata.database import COMMAND, SCHEMA_VERSION, read_refreshes, refreshes_path
from racedata.loader import notes, refresh
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.errors import LoadError
from racedata.loader.existing import checksum_at_end
from racedata.loader.load import load
from racedata.loader.refresh import Refresh
from racedata.loader.replacement import locked
from racedata.loader.schedule import Expected
from racedata.loader.sources import f1db_release
from racedata.loader.sources.source import check_season
from racedata.loader.tables import RACE_TABLES

F1DB = EXPECTED / "f1db"  # a cut of a release
REFRESH = [sys.executable, "-m", "racedata", "refresh", "--database"]
# the time of a refresh, unless it is passed in; in seconds
NOW, HOUR, DAY = 1_800_000_000, 3_600, 86_400


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A dump like the sample, whose seasons before 2023 have only the races that were run."""
    with_results = {row["raceId"] for row in csv_rows(SAMPLE, "results")}
    kept = with_results | {*race_ids(SAMPLE, 2023).values()}
    edits = {
        name: lambda row: row if row["raceId"] in kept else None for name in ("races", *RECORDS)
    }
    edits["seasons"] = lambda row: row if row["year"] != "1997" else None
    return edited(SAMPLE, tmp_path_factory.mktemp("finished") / "dump", **edits)


@pytest.fixture(scope="module")
def complete(finished, tmp_path_factory):
    """A database with all of it."""
    return built(finished, tmp_path_factory.mktemp("complete") / "racedata.db")


@pytest.fixture(scope="module")
def api(complete):
    """An API with all rounds of the sample."""
    with served(answers_of(client(complete))) as server:
        yield server


@pytest.fixture(autouse=True)
def reset(api):
    api.paths.clear()
    api.faults.clear()


@pytest.fixture(scope="module")
def behind_file(tmp_path_factory, finished):
    """A database like the sample's, without the latest round that was run."""
    folder = tmp_path_factory.mktemp("behind")
    return built(without(finished, folder / "dump", 2023, 18), folder / "racedata.db")


@pytest.fixture
def behind(behind_file, tmp_path):
    """A copy of that database."""
    database = tmp_path / "racedata.db"
    database.write_bytes(behind_file.read_bytes())
    return database


@pytest.fixture
def current(complete, tmp_path):
    """A copy of the sample's database."""
    database = tmp_path / "racedata.db"
    database.write_bytes(complete.read_bytes())
    return database


def state(folder):
    """All files in a folder: their content and their attributes that a replacement would change."""
    return {
        path: (path.read_bytes(), path.stat().st_ino, path.stat().st_mtime_ns)
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".json"  # which says when it was refreshed
    }


# What is fetched.


def test_a_new_round_makes_the_database_equal_row_by_row_with_one_request_for_each_list(
    api, behind, complete
):
    assert rows_of(behind) != rows_of(complete)
    said, requests = refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)
    paths = [path.partition(".json")[0] for path in api.paths]
    assert paths[:5] == ["seasons", "2023/races", "2023/results", "2023/qualifying", "2023/sprint"]
    endpoints = (
        "pitstops",
        "driverstandings",
        "constructorstandings",
        "laps",
        "practice",
        "sprintqualifying",
    )
    assert sorted(paths[5:]) == sorted([f"2023/18/{endpoint}" for endpoint in endpoints])
    assert requests == len(paths) == 11
    assert said[0] == "2023: fetched the calendar (22 races) and round 18"
    assert said[-1] == f"{behind}: new data after {requests} requests to {api.url}"
    assert "results                        165 rows (+20)" in said


def like_jolpica(database):
    """What an API over a database answers that has no sprint qualifying and no practice."""
    answer = answers_of(client(database))
    return lambda path: (
        (404, {}, b"{}") if re.search("sprintqualifying|practice", path) else answer(path)
    )


def test_an_api_without_practice_and_sprint_qualifying_is_asked_for_them_once_per_season(
    finished, complete, tmp_path
):
    before = built(without(finished, tmp_path / "dump", 2021, 10, 12), tmp_path / "racedata.db")
    with served(like_jolpica(complete)) as server:
        refreshed(before, server.url)
        asked = Counter(path.partition(".json")[0].rpartition("/")[2] for path in server.paths)
    assert (asked["pitstops"], asked["sprintqualifying"], asked["practice"]) == (3, 2, 2)
    lacking = {table for table, rows in rows_of(complete).items() if rows_of(before)[table] != rows}
    assert lacking == {"practice", "row_counts"}


def test_nothing_new_leaves_every_file_as_it_is(api, behind):
    refreshed(behind, api.url)
    before = state(behind.parent)
    said, requests = refreshed(behind, api.url)
    assert said[-1] == f"{behind}: nothing new after {requests} requests to {api.url}"
    assert state(behind.parent) == before


@pytest.mark.parametrize("limit", [7, 30, 100])
def test_an_api_with_small_pages_gives_the_same(behind, complete, limit):
    with served(answers_of(client(complete, max_limit=limit))) as server:
        refreshed(behind, server.url)
    assert rows_of(behind) == rows_of(complete)


def with_a_penalty(finished, folder, round):
    """A database like the sample's, in which the second of a race is disqualified."""
    second = {"raceId": race_ids(SAMPLE, 2023)[round], "positionOrder": "2"}
    penalty = {"points": "1", "positionText": "D"}
    edits = {"results": lambda row: row | penalty if second.items() <= row.items() else row}
    return built(edited(finished, folder / "penalty", **edits), folder / "penalty.db")


# the latter is on the day of the latest race
@pytest.mark.parametrize("now", [None, 1_698_000_000])
def test_a_result_that_was_changed_later_comes_right(api, complete, finished, tmp_path, now):
    database = with_a_penalty(finished, tmp_path, 9)
    said, _ = refreshed(database, api.url, now=now)
    assert "results                        165 rows, 1 changed" in said
    assert rows_of(database) == rows_of(complete)


def test_a_result_that_was_changed_after_it_was_fetched_comes_right(
    api, behind, complete, finished, tmp_path
):
    with served(answers_of(client(with_a_penalty(finished, tmp_path, 18)))) as before:
        refreshed(behind, before.url)
    assert rows_of(behind) != rows_of(complete)
    refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)


def test_drivers_teams_circuits_and_statuses_that_are_new_appear(api, complete, tmp_path, finished):
    recent = {*race_ids(SAMPLE, 2021).values(), *race_ids(SAMPLE, 2023).values()}

    def without_races(row):
        return None if row["raceId"] in recent else row

    def without_names(column, *names):
        return lambda row: None if row[column] in names else row

    edits = {
        **dict.fromkeys((*RECORDS, "races"), without_races),
        "seasons": without_names("year", "2021", "2023"),
        "drivers": without_names("driverRef", "piastri", "sargeant"),
        "constructors": without_names("constructorRef", "haas", "alpine"),
        "circuits": without_names("circuitRef", "americas", "vegas"),
        "status": without_names("status", "Undertray", "Disqualified"),
    }
    behind = built(edited(finished, tmp_path / "dump", **edits), tmp_path / "racedata.db")
    refreshed(behind, api.url)
    paths = [
        *(f"2023/{round}/{kind}" for round in (9, 18) for kind in RACE_TABLES),
        *("2023/races", "2023/status", "2023/drivers", "2023/constructors", "2023/circuits"),
    ]
    addresses = [f"/ergast/f1/{path}.json?limit=2000" for path in paths]
    assert bodies(behind, addresses) == bodies(complete, addresses)
    for table in ("status", "seasons", "circuits"):
        assert len(rows_of(behind)[table]) == len(rows_of(complete)[table])


def test_rounds_that_are_cancelled_renumbered_or_renamed_are_so_here(behind, tmp_path, finished):
    """In the API, round 19 is cancelled, the rounds after it move up, and round 17 has another name
    and date.
    """

    def race(row):
        round = int(row["round"])
        if row["year"] != "2023" or round < 17:
            return row
        if round == 17:
            return {**row, "name": "Losail Grand Prix", "date": "2023-10-10"}
        return None if round == 19 else {**row, "round": str(round - (round > 19))}

    changed = built(edited(finished, tmp_path / "dump", races=race), tmp_path / "changed.db")
    with served(answers_of(client(changed))) as server:
        refreshed(behind, server.url)
        refreshed(behind, server.url, now=NOW + DAY)
        assert rows_of(behind) == rows_of(changed)
        assert "nothing new" in refreshed(behind, server.url)[0][-1]


def test_two_races_that_swap_their_rounds_keep_their_records(api, complete, tmp_path, finished):
    def race(row):
        swapped = {"9": "18", "18": "9"}
        return (
            {**row, "round": swapped.get(row["round"], row["round"])}
            if row["year"] == "2023"
            else row
        )

    database = built(edited(finished, tmp_path / "dump", races=race), tmp_path / "racedata.db")
    refreshed(database, api.url)
    assert rows_of(database) == rows_of(complete)


def test_an_api_without_laps_and_pit_stops_does_not_delete_those_here(current, tmp_path, finished):
    nothing = {"lap_times": lambda row: None, "pit_stops": lambda row: None}
    without_laps = built(edited(finished, tmp_path / "dump", **nothing), tmp_path / "api.db")
    with served(answers_of(client(without_laps))) as server:
        assert "nothing new" in refreshed(current, server.url)[0][-1]


def test_qualifying_appears_before_the_race_is_run(api, complete, tmp_path, finished):
    """The API has the results of round 9 only, but the qualifying of round 18."""
    id = race_ids(SAMPLE, 2023)[18]
    edit = {"results": lambda row: None if row["raceId"] == id else row}
    saturday = built(edited(finished, tmp_path / "saturday", **edit), tmp_path / "saturday.db")
    behind = built(without(finished, tmp_path / "dump", 2023, 18), tmp_path / "racedata.db")
    with served(answers_of(client(saturday))) as server:
        refreshed(behind, server.url)
        assert not [path for path in server.paths if path.startswith("2023/18/")]
    assert rows_of(behind)["qualifying"] == rows_of(complete)["qualifying"]
    assert rows_of(behind)["results"] == rows_of(saturday)["results"]


def test_a_season_is_refreshed_whole(api, complete, tmp_path, finished):
    source = without(
        finished, tmp_path / "dump", 2005, 1, results=lambda row: {**row, "grid": "99"}
    )
    database = built(source, tmp_path / "racedata.db")
    said, _ = refreshed(database, api.url, season=2005)
    assert said[0] == "2005: fetched the calendar (2 races) and rounds 1, 7"
    assert {path[:4] for path in api.paths} == {"seas", "2005"}
    addresses = [
        f"/ergast/f1/2005/{kind}.json?limit=2000"
        for kind in ("races", "results", "qualifying", "drivers")
    ]
    assert bodies(database, addresses) == bodies(complete, addresses)
    # Other seasons are as they were.
    addresses = ["/ergast/f1/2023/results.json"]
    assert bodies(database, addresses) != bodies(complete, addresses)


def moved(row, year):
    """A race in another season."""
    return {name: value.replace(row["year"], str(year)) for name, value in row.items()}


def later(row):
    return moved(row, 2024) if row["year"] == "2021" else row


def test_before_the_first_race_of_a_season_the_season_before_is_refreshed_too(
    complete, tmp_path, finished
):
    """In the API, the calendar of 2024 is there: the races of 2021, a few years later."""

    gone = {
        "results": lambda row: (
            None if row["raceId"] in set(race_ids(SAMPLE, 2021).values()) else row
        )
    }
    winter = built(
        edited(finished, tmp_path / "winter", races=later, **gone), tmp_path / "winter.db"
    )
    behind = built(without(finished, tmp_path / "dump", 2023, 18), tmp_path / "racedata.db")
    with served(answers_of(client(winter))) as server:
        said, _ = refreshed(behind, server.url)
    assert "2023: fetched the calendar (22 races) and round 18" in said
    assert any(line.startswith("2024: fetched the calendar (2 races) and ") for line in said)
    addresses = [
        f"/ergast/f1/{path}.json"
        for path in ("2024/races", "2023/results", "2023/18/driverstandings")
    ]
    assert bodies(behind, addresses) == bodies(winter, addresses)


def test_no_season_between_those_here_and_the_latest_stays_empty(complete, finished, tmp_path):
    """The first that is unfinished here is 2005; 2021 is missing."""
    ids = race_ids(SAMPLE, 2005), race_ids(SAMPLE, 2021)
    gone = {ids[0][7], *ids[1].values()}
    edits = dict.fromkeys(RECORDS, lambda row: None if row["raceId"] in gone else row)
    edits["races"] = lambda row: None if row["raceId"] in {*ids[1].values()} else row
    edits["seasons"] = lambda row: None if row["year"] == "2021" else row
    behind = built(edited(finished, tmp_path / "dump", **edits), tmp_path / "racedata.db")
    with served(answers_of(client(complete))) as server:
        said, _ = refreshed(behind, server.url)
        assert said[0].startswith("2005 to 2023: about 273 requests to ")
        assert [line[:4] for line in said if "fetched the calendar" in line] == [
            "2005",
            "2021",
            "2023",
        ]
        paths = [
            f"/ergast/f1/{year}/{kind}.json?limit=2000"
            for year in (2005, 2021, 2023)
            for kind in ("races", "results")
        ]
        assert bodies(behind, paths) == bodies(complete, paths)
        # Then, the earlier seasons are left alone.
        server.paths.clear()
        assert "nothing new" in refreshed(behind, server.url)[0][-1]
        assert {path[:4] for path in server.paths} == {"seas", "2023"}


def without_calendar(answer, *years):
    """The answers of an API that also lists these seasons, but has no races of them."""

    def changed(path):
        status, headers, body = answer(path)
        if path.startswith("/ergast/f1/seasons.json"):
            envelope = json.loads(body)
            table = envelope["MRData"]["SeasonTable"]["Seasons"]
            table += [
                {"season": year}
                for year in years
                if year not in {season["season"] for season in table}
            ]
            envelope["MRData"]["total"] = str(len(table))
            body = json.dumps(envelope).encode()
        for year in years:
            if path.startswith(f"/ergast/f1/{year}/races.json"):
                numbers = {"limit": "100", "offset": "0", "total": "0"}
                body = json.dumps(
                    {"MRData": {**numbers, "RaceTable": {"season": year, "Races": []}}}
                ).encode()
                status = 200
        return status, headers, body

    return changed


def test_a_season_without_races_is_left_out(behind, complete, tmp_path):
    with served(without_calendar(answers_of(client(complete)), "2024")) as server:
        refreshed(behind, server.url)
        assert rows_of(behind) == rows_of(complete)
        assert "nothing new" in refreshed(behind, server.url)[0][-1]
        before = state(behind.parent)
        with pytest.raises(LoadError) as caught:
            refreshed(behind, server.url, season=2024)
    what = "no races in any season from 2024 on; expected the calendar of at least one"
    assert str(caught.value) == f"{server.url}: {what}"
    assert state(behind.parent) == before
    built(SAMPLE, behind)


def test_an_api_without_any_races_is_refused(behind, complete):
    years = [str(year) for year, *_ in rows_of(complete)["seasons"]]
    with (
        served(without_calendar(answers_of(client(complete)), *years)) as server,
        pytest.raises(
            LoadError,
            match=r": no races in any season from 2023 on; expected the calendar of at least one$",
        ),
    ):
        refreshed(behind, server.url)


def test_a_calendar_without_a_race_that_has_results_here_is_refused(current, tmp_path, finished):
    """With SEASON, it is deleted. Races without results are cancelled and go within a day."""
    ids = race_ids(SAMPLE, 2023)

    def without_races(*rounds):
        gone = {ids[round] for round in rounds}
        edits = dict.fromkeys(
            ("races", *RECORDS), lambda row: None if row["raceId"] in gone else row
        )
        name = "-".join(map(str, rounds))
        return built(edited(finished, tmp_path / name, **edits), tmp_path / f"{name}.db")

    cancelled, stale = without_races(22), without_races(9, 22)
    with served(answers_of(client(cancelled))) as server:
        refreshed(current, server.url)
        refreshed(current, server.url, now=NOW + DAY)
    assert rows_of(current) == rows_of(cancelled)
    before = state(tmp_path)
    with served(answers_of(client(stale))) as server:
        with pytest.raises(LoadError) as caught:
            refreshed(current, server.url)
        assert str(caught.value) == (
            f"{server.url}/2023/races.json?limit=2000&offset=0: no 2023/9 Austrian Grand Prix, "
            "which has results in the database; expected an API that is up to date"
        )
        assert state(tmp_path) == before
        refreshed(current, server.url, season=2023)
    assert rows_of(current)["races"] == rows_of(stale)["races"]
    assert rows_of(current)["lap_times"] == rows_of(stale)["lap_times"]


# A calendar that lacks races without results: it is incomplete, or they are cancelled.


@pytest.fixture(scope="module")
def saturday(finished, tmp_path_factory):
    """A dump on the Saturday of round 18 of 2023: with practice, qualifying and the sprint, and
    races to come.
    """
    sunday = ("results", "lap_times", "pit_stops", "driver_standings", "constructor_standings")
    of_race = dict.fromkeys(
        sunday, lambda row: None if row["raceId"] == race_ids(SAMPLE, 2023)[18] else row
    )
    return edited(finished, tmp_path_factory.mktemp("saturday") / "dump", **of_race)


@pytest.fixture
def lacking(saturday, tmp_path):
    """Returns what an API answers that lacks some rounds of 2023, as if they had never been."""

    def lacking(*rounds):
        gone = {race_ids(saturday, 2023)[round] for round in rounds}
        edits = dict.fromkeys(
            ("races", *RECORDS), lambda row: None if row["raceId"] in gone else row
        )
        name = "-".join(map(str, rounds)) or "none"
        return answers_of(
            client(built(edited(saturday, tmp_path / name, **edits), tmp_path / f"{name}.db"))
        )

    return lacking


@pytest.fixture
def weekend(saturday, tmp_path):
    """A database with that dump."""
    (tmp_path / "weekend").mkdir()
    return built(saturday, tmp_path / "weekend" / "racedata.db")


def next_race(database):
    """The name of the next race, as the service answers."""
    (race,) = (
        client(database).get("/ergast/f1/current/next.json").json["MRData"]["RaceTable"]["Races"]
    )
    return race["raceName"]


@pytest.mark.parametrize(
    "rounds", [[18], [19], range(10, 23)], ids=["the weekend", "a later race", "all to come"]
)
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "with another source"])
def test_a_calendar_that_is_incomplete_for_an_hour_changes_nothing(
    lacking, weekend, rounds, is_alone
):
    complete, incomplete = lacking(), lacking(*rounds)
    with served(complete) as server, served(complete) as other:
        addresses = [server.url] if is_alone else [server.url, other.url]
        refreshed(weekend, *addresses)
        before = rows_of(weekend)
        # the second time counts as the first, because it was complete meanwhile
        for now in (NOW + HOUR, NOW + DAY):
            server.answer = incomplete
            for minutes in range(0, 60, 20):
                said, _ = refreshed(weekend, *addresses, now=now + 60 * minutes)
                assert any("not used unless they stay missing" in line for line in said)
                assert rows_of(weekend) == before
                assert next_race(weekend) == "British Grand Prix"
            server.answer = complete
            refreshed(weekend, *addresses, now=now + HOUR)
            assert rows_of(weekend) == before
            assert read_refreshes(weekend)[server.url]["lacks"] == {}


@pytest.mark.parametrize("rounds", [[19], [18], [18, 20]], ids=str)
@pytest.mark.parametrize("is_alone", [True, False], ids=["alone", "with another source"])
def test_a_race_that_is_cancelled_is_gone_at_the_next_daily_look(
    lacking, weekend, tmp_path, rounds, is_alone
):
    complete, cancelled = lacking(), lacking(*rounds)
    with served(complete) as server, served(complete) as other:
        addresses = [server.url] if is_alone else [server.url, other.url]
        refreshed(weekend, *addresses)
        before = rows_of(weekend)
        server.answer = cancelled
        for hours in (0, 1, 11.9):
            refreshed(weekend, *addresses, now=NOW + DAY + hours * HOUR)
            assert rows_of(weekend) == before
        for days in (2, 3, 4):  # another source does not bring it back
            refreshed(weekend, *addresses, now=NOW + days * DAY)
            name = "-".join(map(str, rounds))
            assert rows_of(weekend)["races"] == rows_of(tmp_path / f"{name}.db")["races"]
            assert rows_of(weekend)["qualifying"] == rows_of(tmp_path / f"{name}.db")["qualifying"]
        assert read_refreshes(weekend)[server.url]["lacks"] == {}


def test_a_race_that_only_a_less_preferred_source_lacks_stays(lacking, weekend):
    with served(lacking()) as server, served(lacking(19)) as other:
        for days in range(3):
            refreshed(weekend, server.url, other.url, now=NOW + days * DAY)
            assert select(weekend, "SELECT count(*) FROM races WHERE year = 2023") == [(22,)]


def test_records_of_the_other_races_are_taken_from_an_api_whose_calendar_lacks_one(
    behind, complete, finished, tmp_path
):
    edit = {"races": lambda row: None if row["raceId"] == race_ids(SAMPLE, 2023)[10] else row}
    incomplete = built(
        edited(finished, tmp_path / "incomplete", **edit), tmp_path / "incomplete.db"
    )
    with served(answers_of(client(incomplete))) as server:
        said, _ = refreshed(behind, server.url)
    why = "missing from the calendar; it is not used unless they stay missing"
    assert f"2023 British Grand Prix: {why}" in said
    assert rows_of(behind) == rows_of(complete)


def test_a_season_that_is_named_loses_a_cancelled_race_at_once(lacking, weekend):
    with served(lacking(19)) as server:
        refreshed(weekend, server.url, season=2023)
    assert select(weekend, "SELECT count(*) FROM races WHERE year = 2023") == [(21,)]


@pytest.mark.parametrize(
    "noted",
    [
        {"2023 Mexico City Grand Prix": "2035-01-01T00:00:00Z"},
        {"2023 Mexico City Grand Prix": "0"},
        {"2023 Mexico City Grand Prix": None},
        {"2022 Mexico City Grand Prix": "2020-01-01T00:00:00Z"},
        ["2023 Mexico City Grand Prix"],
        "2020-01-01T00:00:00Z",
    ],
    ids=str,
)
def test_a_note_in_the_future_or_without_meaning_is_not_believed(lacking, weekend, noted):
    with served(lacking(19)) as server:
        refreshes_path(weekend).write_text(json.dumps({server.url: {"lacks": noted}}))
        for hours, races in ((0, 22), (11, 22), (13, 21)):
            refreshed(weekend, server.url, now=NOW + hours * HOUR)
            assert select(weekend, "SELECT count(*) FROM races WHERE year = 2023") == [(races,)]


@pytest.mark.parametrize("season", [None, 2023])
def test_an_api_without_results_of_a_race_that_has_results_here_deletes_none(
    current, complete, behind_file, season
):
    with served(answers_of(client(behind_file))) as server:
        assert "nothing new" in refreshed(current, server.url, season=season)[0][-1]
    assert rows_of(current) == rows_of(complete)


# A season of six races with results, most of them borrowed from other seasons of the sample.
SIX = [(2021, 10), (2021, 12), (2005, 1), (2005, 7), (2023, 9), (2023, 18)]


@pytest.fixture(scope="module")
def six(tmp_path_factory, finished):
    """A dump of the sample with such a season."""
    ids = {
        race_ids(SAMPLE, year)[round]: str(number) for number, (year, round) in enumerate(SIX, 1)
    }

    def race(row):
        if row["raceId"] in ids:
            return {
                **moved(row, 2023),
                "round": ids[row["raceId"]],
                "name": f"Grand Prix {ids[row['raceId']]}",
            }
        return None if row["year"] == "2023" else row

    records = {table: lambda row: row if row["raceId"] in ids else None for table in RECORDS}
    return edited(finished, tmp_path_factory.mktemp("six") / "dump", races=race, **records)


def test_an_api_that_has_no_results_of_the_season_changes_none_here(six, tmp_path):
    ids = set(race_ids(six, 2023).values())
    nothing = {table: lambda row: None if row["raceId"] in ids else row for table in RECORDS}
    # The loader needs a result: in the API, the only one is of a race of 1957.
    winner = {"raceId": race_ids(six, 2023)[1], "positionOrder": "1"}
    other = {"raceId": race_ids(six, 1957)[2]}
    nothing["results"] = lambda row: {**row, **other} if winner.items() <= row.items() else None
    database, empty = (
        built(six, tmp_path / "racedata.db"),
        edited(six, tmp_path / "dump", **nothing),
    )
    addresses = [
        f"/ergast/f1/2023/{kind}.json?limit=2000"
        for kind in ("results", "qualifying", "driverstandings")
    ]
    before = bodies(database, addresses)
    with served(answers_of(client(built(empty, tmp_path / "api.db"), max_limit=100))) as server:
        said, _ = refreshed(database, server.url)
    assert "2023: fetched the calendar (6 races) and no round" in said
    assert bodies(database, addresses) == before


# What goes wrong.


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_at_any_request_changes_nothing(complete, behind, tmp_path, fault):
    with served(answers_of(client(complete, max_limit=600))) as server:
        (tmp_path / "copy").mkdir()
        copy = tmp_path / "copy" / "racedata.db"
        copy.write_bytes(behind.read_bytes())
        requests = refreshed(copy, server.url)[1]
        assert requests >= 10
        for number in range(requests):
            server.paths.clear()
            server.faults = {number: fault}
            before = state(behind.parent)
            with pytest.raises(LoadError) as caught:
                refreshed(behind, server.url)
            assert str(caught.value).startswith(f"{server.url}/")
            assert "\n" not in str(caught.value)
            # a wrong total may show only on the next page
            assert number < len(server.paths) <= number + 2
            assert state(behind.parent) == before


def test_a_wrong_value_is_refused_with_its_place(api, behind):
    before = state(behind.parent)
    for wrong, right, place in [
        (b'"millis":"x', b'"millis":"', "record 1, Time.millis: 'x"),
        (b'"driverId":"../', b'"driverId":"', "'../"),
        (b'"grid":"\xc2\xb2', b'"grid":"', "record 1, grid: '²"),
        (b'"points":"1e', b'"points":"', "points: '1e"),
    ]:
        api.paths.clear()
        api.faults = {
            2: lambda body, wrong=wrong, right=right: (200, {}, body.replace(right, wrong))
        }
        with pytest.raises(LoadError, match=r"2023, Austrian Grand Prix") as caught:
            refreshed(behind, api.url)
        assert place in str(caught.value)
        assert state(behind.parent) == before


# so its other facts are compared
RENAMED = "UPDATE races SET name = 'Styrian Grand Prix' WHERE RACE(2023/9)"


def test_an_address_of_a_race_that_is_not_text_is_refused_with_its_place(api, behind):
    changed(behind, RENAMED)
    api.faults = {1: lambda body: (200, {}, with_wrong(body, ["url"], ["x"]))}
    before = state(behind.parent)
    said = re.escape(
        f"{api.url}, 2023, Austrian Grand Prix, url: \"['x']\"; "
        "expected text of at most 1,000 characters"
    )
    with pytest.raises(LoadError, match=f"^{said}"):
        refreshed(behind, api.url)
    assert state(behind.parent) == before


def with_wrong(body, path, value):
    """An answer with a calendar in which a field of round 9 of 2023 has another value."""
    answer = json.loads(body)
    race = answer["MRData"]["RaceTable"]["Races"][8]
    for name in path[:-1]:
        race = race[name]
    race[path[-1]] = value
    return json.dumps(answer).encode()


def fields_of(value, path=()):
    """The paths of all fields in an object, at any depth."""
    for name, inner in value.items():
        yield (*path, name)
        if isinstance(inner, dict):
            yield from fields_of(inner, (*path, name))


NESTED = json.loads("[" * 900 + "]" * 900)
WRONG = [
    None,
    1,
    -1.5,
    True,
    [],
    {},
    ["x"],
    {"x": "y"},
    "",
    "\ud800",
    "\x00",
    "x" * 2000,
    "a\nb",
    10**400,
    NESTED,
]


@pytest.mark.long
def test_any_wrong_type_in_a_calendar_is_one_line_that_names_the_place_or_is_left_out(api, behind):
    calendar = json.loads(api.answer("/ergast/f1/2023/races.json?limit=2000")[2])
    race = calendar["MRData"]["RaceTable"]["Races"][8]
    content, refused = changed(behind, RENAMED).read_bytes(), 0
    for path in fields_of(race):
        for value in random.sample(WRONG, 3):
            api.paths.clear()
            body = with_wrong(json.dumps(calendar).encode(), path, value)
            api.faults = {1: lambda _, body=body: (200, {}, body)}
            try:
                refreshed(behind, api.url)
            except LoadError as error:
                said = str(error)
                assert said.startswith(api.url) and (
                    "; expected" in said or "does not have" in said
                )
                assert len(said) < 400 and "\n" not in said
                assert behind.read_bytes() == content
                refused += 1
            behind.write_bytes(content)
    assert refused


def test_a_driver_who_is_twice_in_a_session_is_refused_with_the_place(complete, behind, tmp_path):
    twice = changed(
        Path(shutil.copy(complete, tmp_path / "twice.db")),
        "UPDATE qualifying SET DRIVER(alonso) WHERE RACE(2023/18) AND DRIVER(stroll)",
    )
    place = "2023, United States Grand Prix, qualifying, record 19"
    said = f"{place}: 'alonso' appears twice; expected once"
    with served(answers_of(client(twice))) as server, pytest.raises(LoadError, match=said):
        refreshed(behind, server.url)


@pytest.mark.parametrize(
    ("number", "right", "wrong", "said"),
    [
        (0, b'"season":"2021"', b'"season":"20x1"', "expected years"),
        (
            1,
            b'"Austrian Grand Prix"',
            b'"British Grand Prix"',
            "two races have the same raceName; expected no two",
        ),
        (1, b'"round":"9"', b'"round":"10"', "two races have the same round; expected no two"),
        (
            1,
            b'"round":"9"',
            b'"round":"x"',
            "a race named 'Austrian Grand Prix' in round 'x'; expected text",
        ),
        (
            1,
            b'"season":"2023","round":"9"',
            b'"season":"2022","round":"9"',
            "a race of season '2022'; expected '2023'",
        ),
        (
            2,
            b'"Austrian Grand Prix"',
            b'"Styrian Grand Prix"',
            "'Styrian Grand Prix' in round '9'; expected a race of the calendar",
        ),
        (
            2,
            b'"round":"9"',
            b'"round":"8"',
            "'Austrian Grand Prix' in round '8'; expected a race of the calendar",
        ),
        (
            6,
            b'"season":"2023","round":"18","url"',
            b'"season":"2023","round":"8","url"',
            "round '8'; expected",
        ),
    ],
)
def test_answers_that_do_not_fit_together_are_refused(api, behind, number, right, wrong, said):
    before = state(behind.parent)

    def replaced(body):
        assert right in body
        return 200, {}, body.replace(right, wrong)

    api.faults = {number: replaced}
    with pytest.raises(LoadError) as caught:
        refreshed(behind, api.url)
    assert said in str(caught.value)
    assert str(caught.value).startswith(api.url)
    assert state(behind.parent) == before


@pytest.mark.parametrize(
    ("season", "status", "said"),
    [
        ("2022", 1, "no season 2022; it has 1957 to 2023; nothing was changed\n"),
        *[
            (text, 2, f"{text!r}; expected a year from 1950 to 2999\n")
            for text in ("current", "23", "0000", "2023/1")
        ],
    ],
)
def test_an_unknown_season_is_refused(api, behind, season, status, said):
    ended = run(behind, api.url, "--season", season)
    assert (ended.returncode, ended.stdout) == (status, "")
    assert ended.stderr.endswith(said)


def test_a_refresh_that_ended_before_the_database_was_replaced_is_made_up_for_by_the_next(
    api, behind, complete, tmp_path
):
    old = behind.read_bytes()
    refreshed(behind, api.url)
    behind.write_bytes(old)
    assert refreshed(behind, api.url)[0][-1].startswith(f"{behind}: new data")
    assert rows_of(behind) == rows_of(complete)


def test_the_service_names_the_api_and_its_licence_and_what_it_gave(api, behind):
    refreshed(behind, api.url)
    dump, source = client(behind).get("/healthz").json["sources"]
    assert (dump["name"], dump["licence"]) == ("dump", "CC BY-NC-SA 4.0")
    assert (source["name"], source["licence"]) == (api.url, "not stated by 127.0.0.1")
    assert source["gave"].startswith(
        "results of 1 race (2023), fastest laps of 1 race (2023), qualifying of 1 race (2023), "
    )


def test_an_api_with_an_error_that_is_corrected_here_brings_nothing_new(
    current, complete, tmp_path, finished
):
    corrections = tmp_path / "corrections.csv"
    corrections.write_text(
        "table,key,column,wrong,right,source\ndrivers,leclerc,number,61,16,a test\n"
    )
    edits = {
        "drivers": lambda row: row | {"number": "61"} if row["driverRef"] == "leclerc" else row
    }
    erring = built(edited(finished, tmp_path / "dump", **edits), tmp_path / "api.db")
    with served(answers_of(client(erring))) as server:
        options = ["--corrections", str(corrections)]
        assert "nothing new" in run(current, server.url, *options).stdout
        assert "new data" in run(current, server.url, "--corrections", "none").stdout
        assert "new data" in run(current, server.url, *options).stdout
    assert rows_of(current) == rows_of(complete)


# The command.


def run(database, url, *arguments):
    command = [*REFRESH, database, "--from", url, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def test_the_command_says_what_it_did_and_ends_with_0_for_new_data_and_for_nothing_new(
    api, behind, complete
):
    for said in ("new data", "nothing new"):
        ended = run(behind, api.url)
        assert (ended.returncode, ended.stderr) == (0, "")
        assert f"{behind}: {said} after " in ended.stdout
        assert rows_of(behind) == rows_of(complete)


def test_the_command_ends_with_1_and_a_line_if_anything_fails(api, behind):
    api.faults = {3: FAULTS["html"]}
    ended = run(behind, api.url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"racedata refresh: {api.url}/2023/qualifying.json?limit=2000&offset=0: "
        "b'<!doctype html><title>Sign in to the net'; expected JSON; nothing was changed\n"
    )


def test_a_full_stdout_fails_the_command_but_not_the_refresh(api, behind, complete):
    with open("/dev/full", "w") as full:
        command = [*REFRESH, behind, "--from", api.url]
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    said = f"racedata refresh: stdout: No space left on device; {behind} was written\n"
    assert (ended.returncode, ended.stderr) == (1, said)
    assert rows_of(behind) == rows_of(complete)


def test_what_another_program_stores_meanwhile_is_not_noted_as_refreshed(
    api, behind, complete, monkeypatch
):
    refreshed(behind, api.url)
    before = read_refreshes(behind)[api.url]

    @contextmanager
    def locked(folder, wait):
        shutil.copy(complete, behind)  # while this one waits for the lock
        yield

    monkeypatch.setattr(notes, "locked", locked)
    refreshed(behind, api.url)
    after = read_refreshes(behind)[api.url]
    assert after["database"] == before["database"] != checksum_at_end(behind)


def test_a_folder_that_is_gone_or_has_changed_since_the_start_fails_with_a_line(current, tmp_path):
    folder = shutil.copytree(F1DB, tmp_path / "f1db")
    refresh = Refresh(str(current), [str(folder)], None, None, lambda text: None, lambda text: None)
    shutil.rmtree(folder)
    with pytest.raises(LoadError, match="not found"):
        refresh.run()
    shutil.copytree(SAMPLE, folder)
    assert refresh.run() == 0


def test_a_source_without_races_has_no_season():
    with pytest.raises(LoadError, match="x: no season 2023; it has no races"):
        check_season(2023, [], "x")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda path: path.unlink(), f"is missing; to build it, run: {COMMAND} load SOURCE"),
        (
            lambda path: path.write_bytes(path.read_bytes()[:-32] + bytes(32)),
            "is damaged (checksum mismatch)",
        ),
        (lambda path: path.write_bytes(b""), "is not an SQLite database"),
        (
            lambda path: changed(path, "PRAGMA user_version = 9"),
            f"has schema version 9, newer than this program's, {SCHEMA_VERSION}",
        ),
    ],
    ids=["no file", "damaged", "empty", "a newer version"],
)
def test_a_database_that_cannot_be_refreshed_is_left_alone(api, behind, change, said):
    change(behind)
    before = state(behind.parent)
    ended = run(behind, api.url)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert state(behind.parent) == before
    assert api.paths == []


def test_make_refresh_passes_its_variables(api, behind, complete):
    variables = [f"FROM={api.url}", "SEASON=2023", f"DATABASE={behind}", f"PYTHON={sys.executable}"]
    command = ["make", "--silent", "refresh", *variables]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert rows_of(behind) == rows_of(complete)


def assert_ends_at_once(follow):
    follow.terminate()
    assert (follow.communicate(timeout=20), follow.returncode) == (("", ""), 0)


def test_follow_says_a_line_if_a_round_is_stored_and_sigterm_ends_it_at_once(api, behind, complete):
    with following(behind, "--from", api.url) as follow:
        line = follow.stdout.readline()
        assert "; results 165 rows (+20); " in line and f"; {behind}: new data after" in line
        assert rows_of(behind) == rows_of(complete)
        assert read_refreshes(behind)[api.url]["refreshedAt"]
        assert_ends_at_once(follow)


@pytest.mark.parametrize("is_there", [False, True], ids=["no database", "only the sample"])
def test_follow_first_loads_the_configured_sources_if_there_is_no_database_of_its_own(
    api, behind_file, complete, sample_database, tmp_path, is_there
):
    database = tmp_path / "racedata.db"
    if is_there:
        shutil.copy(sample_database, database)
    dump = str(behind_file.parent / "dump")
    with following(database, "--from", api.url, RACEDATA_SOURCE=dump) as follow:
        assert (
            follow.stdout.readline()
            == f"{database}: 1957 to 2023 (4 seasons, 28 races) from {dump}\n"
        )
        assert f"{database}: new data" in follow.stdout.readline()
        assert rows_of(database) == rows_of(complete)
        assert_ends_at_once(follow)


def test_follow_goes_on_with_what_it_has_if_a_change_of_the_configured_sources_cannot_be_loaded(
    api, behind, complete
):
    with following(
        behind, "--from", api.url, RACEDATA_SOURCE="http://127.0.0.1:1/dump.zip"
    ) as follow:
        assert re.search(
            r"dump.zip: .*Connection refused; .*; next try at ", follow.stderr.readline()
        )
        assert "new data" in follow.stdout.readline()
        assert_ends_at_once(follow)
    assert rows_of(behind) == rows_of(complete)


def test_follow_asks_nothing_if_it_cannot_read_the_database(api, behind):
    changed(behind, "PRAGMA user_version = 9")
    before = state(behind.parent)
    with following(
        behind, "--from", api.url, "--from", str(F1DB), RACEDATA_SOURCE=str(SAMPLE)
    ) as follow:
        line = follow.stderr.readline()
        assert (
            f"has schema version 9, newer than this program's, {SCHEMA_VERSION}; " in line
            and "; next try at " in line
        )
        assert_ends_at_once(follow)
    assert (state(behind.parent), api.paths) == (before, [])


def test_a_followed_api_has_news_until_they_are_stored_and_again_if_a_result_changes(
    api, behind, complete, finished, tmp_path
):
    def asked(url, kind, is_stored):
        refresh = Refresh(
            str(behind), [url], None, CORRECTIONS, lambda text: None, lambda text: None, hurried
        )
        expected = Expected(2023, 18, "race", kind, datetime(2023, 10, 22, tzinfo=UTC), is_stored)
        return refresh.has_news(refresh.sources[0], [expected])

    assert asked(api.url, "results", False)
    assert not asked(api.url, "sessions", False)  # an API has no list of them
    refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)
    assert not asked(api.url, "results", True)
    with served(answers_of(client(with_a_penalty(finished, tmp_path, 18)))) as later:
        assert asked(later.url, "results", True)


def test_a_refresh_with_new_data_keeps_since_when_its_source_is_followed(api, behind, complete):
    since = "2023-10-22T20:30:00Z"
    refreshes_path(behind).write_text(json.dumps({api.url: {"followedSince": since}}))
    refreshed(behind, api.url)
    assert rows_of(behind) == rows_of(complete)
    assert read_refreshes(behind)[api.url]["followedSince"] == since


def test_a_link_to_a_database_stays_a_link(api, behind, complete, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(behind)
    refreshed(link, api.url)
    assert link.is_symlink()
    assert rows_of(behind) == rows_of(complete)


@pytest.mark.long(20)
@pytest.mark.parametrize(
    "start", [datetime(2023, 10, 10, 12), datetime(2023, 10, 22, 12)], ids=["quiet", "race day"]
)
def test_for_weeks_a_followed_api_is_asked_daily_and_at_each_race(
    behind, behind_file, complete, start
):
    """The results of round 18 are published three hours after its start; those of the rounds after
    it never.
    """
    time = SimulatedTime(start.replace(tzinfo=UTC), datetime(2023, 11, 8, tzinfo=UTC))
    published = datetime(2023, 10, 22, 22, tzinfo=UTC)
    before, after = answers_of(client(behind_file)), answers_of(client(complete))
    limited = LimitedApi(time, lambda path: (after if time.now >= published else before)(path))
    with served(limited.answer) as server:
        assert follow_source(behind, server.url, time) == []
    assert {each.status for each in limited.answered} == {200}
    times = [start.replace(tzinfo=UTC), *(each.time for each in limited.answered), time.end]
    assert max(later - earlier for earlier, later in pairwise(times)) < timedelta(
        hours=24, minutes=10
    )
    laps = [each.time for each in limited.answered if "/2023/18/laps" in each.path]
    assert laps[0] - published < timedelta(minutes=25)
    assert rows_of(behind)["lap_times"] == rows_of(complete)["lap_times"]


def test_a_followed_api_that_allows_two_requests_per_second_is_asked_at_its_pace(behind, complete):
    time = SimulatedTime(datetime(2023, 11, 1, tzinfo=UTC), datetime(2023, 11, 1, 1, tzinfo=UTC))
    limited = LimitedApi(time, answers_of(client(complete, max_limit=100)), limits=[(2, 1)])
    with served(limited.answer) as server:
        assert follow_source(behind, server.url, time) == []
    paths = [each.path for each in limited.answered if each.status == 200]
    assert len(paths) == len({*paths}) < len(limited.answered)  # nothing is fetched twice
    assert rows_of(behind) == rows_of(complete)


def test_a_follower_waits_until_another_program_has_replaced_the_database(api, behind, complete):
    with following(behind, "--from", api.url) as follow:
        with locked(behind.parent, wait=True):
            until(lambda: len(api.paths) == 11)
        assert "new data" in follow.stdout.readline()
        assert_ends_at_once(follow)
    assert rows_of(behind) == rows_of(complete)


def test_what_another_refresh_of_the_source_has_stored_meanwhile_is_not_replaced(
    behind, complete, finished, tmp_path
):
    """While the laps are fetched, there is a penalty, and another program stores it."""
    penalty = with_a_penalty(finished, tmp_path, 18)
    before, after = answers_of(client(complete)), answers_of(client(penalty))
    others = []

    def answer(path):
        if "/laps" in path and not others:
            others.append(None)
            others.append(run(behind, server.url))
        return (after if len(others) == 1 else before)(path)

    expected = "expected no other load or refresh of this source$"
    said = rf"has stored records of http://\S+ meanwhile; {expected}"
    with served(answer) as server, pytest.raises(LoadError, match=said):
        refreshed(behind, server.url)
    assert "new data" in others[1].stdout
    assert rows_of(behind) == rows_of(penalty) != rows_of(complete)


# Several sources.


def zip_of(folder):
    """A release of f1db with the files in a folder."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, path.name)
    return content.getvalue()


def answers_of_release(folder):
    """What a server answers that has this release."""
    content = zip_of(folder)

    def answer(path):
        if path.endswith("checksums_sha256.txt"):
            return 200, {}, f"{hashlib.sha256(content).hexdigest()}  f1db-csv.zip\n".encode()
        return 200, {}, content

    return answer


@pytest.fixture
def release():
    """The base address of a server that has a small release of f1db, and the server."""
    with served(answers_of_release(F1DB)) as server:
        yield server


LAS_VEGAS = '1147,2025,22,"2025-11-23","04:00","las-vegas","las-vegas"'
EMPTY = "," * 12
# What is said, and a line in place of the last race of f1db's calendar.
HOSTILE = {
    "column date: '2025-02-30'; expected a date": LAS_VEGAS.replace("2025-11-23", "2025-02-30"),
    "column date: ''; expected a date": LAS_VEGAS.replace("2025-11-23", ""),
    "the date of 2025/22 Las Vegas Grand Prix is '9999-12-31'; expected": LAS_VEGAS.replace(
        "2025-11-23", "9999-12-31"
    ),
    "the date of 2999/22 Las Vegas Grand Prix is '2025-11-23'; expected": LAS_VEGAS.replace(
        ",2025,", ",2999,"
    ),
    "column year: '20255'; expected a year": LAS_VEGAS.replace(",2025,", ",20255,"),
    "column time: '25:00'; expected a time": LAS_VEGAS.replace("04:00", "25:00"),
    "column circuitId: '../../etc'; expected an id": LAS_VEGAS.replace(
        ',"las-vegas"', ',"../../etc"'
    ).replace('"../../etc","../../etc"', '"las-vegas","../../etc"'),
    "column grandPrixId: 'a\\x00b'; expected an id": LAS_VEGAS.replace(
        '"las-vegas","', '"a\x00b","'
    ),
    "column round: '100'; expected a whole number from 1 to 99": LAS_VEGAS.replace(",22,", ",100,"),
    "column round: '100000000000000000'; expected a whole": LAS_VEGAS.replace(
        ",22,", f",{10**17},"
    ),
    "column round: '-1'; expected a whole": LAS_VEGAS.replace(",22,", ",-1,"),
    "column year, round: '2025, 20' appears twice": LAS_VEGAS.replace(",22,", ",20,"),
    "column id: '1145' appears twice": LAS_VEGAS.replace("1147", "1145"),
    "column id: '1147' appears twice": f"{LAS_VEGAS}{EMPTY}\n{LAS_VEGAS}",
    "2025/22 and 2025/23 have the same name; expected no two": f"{LAS_VEGAS}{EMPTY}\n"
    + LAS_VEGAS.replace("1147,2025,22", "1148,2025,23"),
    "2025/20 and 2025/22 have the same circuit and date; expected": LAS_VEGAS.replace(
        '"2025-11-23","04:00","las-vegas","las-vegas"', '"2025-10-26",,"las-vegas","mexico-city"'
    ),
}


@pytest.mark.long
def test_a_hostile_calendar_in_a_release_is_one_line_of_the_follower_and_changes_nothing(
    release, tmp_path
):
    (tmp_path / "data").mkdir()
    database = built(F1DB, tmp_path / "data" / "racedata.db")
    before = state(database.parent)
    hostile = shutil.copytree(F1DB, tmp_path / "hostile")
    text = (F1DB / "f1db-races.csv").read_text(encoding="utf-8")
    for said, line in HOSTILE.items():
        (hostile / "f1db-races.csv").write_text(text.replace(LAS_VEGAS, line), encoding="utf-8")
        release.answer = answers_of_release(hostile)
        with following(database, "--from", f"{release.url}/f1db-csv.zip") as follow:
            complaint = follow.stderr.readline()
            follow.terminate()
            assert follow.communicate(timeout=20) == ("", "")
        assert complaint.startswith(f"racedata refresh: {release.url}/f1db-csv.zip: "), complaint
        assert said in complaint and "; next try at " in complaint
        assert len(complaint) < 400
        assert state(database.parent) == before


def test_a_release_that_lacks_a_race_is_read_again_after_a_day_and_then_the_race_is_gone(
    release, tmp_path
):
    """A release does not change, so it is not downloaded again without a reason."""
    database, url = built(F1DB, tmp_path / "x.db"), f"{release.url}/f1db-csv.zip"
    without_one = shutil.copytree(F1DB, tmp_path / "cancelled")
    for path in without_one.glob("f1db-races*.csv"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        path.write_text(
            "".join(line for line in lines if not line.startswith("1147,")), encoding="utf-8"
        )
    release.answer = answers_of_release(without_one)
    for hours, races, downloads in (
        (0, 2, 1),
        (1, 2, 0),
        (11, 2, 0),
        (24, 1, 1),
        (25, 1, 0),
        (72, 1, 0),
    ):
        release.paths.clear()
        refreshed(database, url, now=NOW + hours * HOUR)
        assert select(database, "SELECT count(*) FROM races WHERE year = 2025") == [(races,)]
        assert release.paths.count("f1db-csv.zip") == downloads


def origins_of(database, round):
    """The names of the sources of a race of 2023, by kind."""
    sql = f"""SELECT kind, sources.name
              FROM origins JOIN sources USING (sourceId) JOIN races USING (raceId)
              WHERE year = 2023 AND round = {round}"""
    found = select(database, sql)
    return {kind: Path(name).name if name.startswith("/") else name for kind, name in found}


def test_f1db_fills_in_until_the_api_has_the_records_and_then_those_are_taken(
    behind, behind_file, complete
):
    with served(answers_of(client(behind_file))) as late:
        said, _ = refreshed(behind, late.url, str(F1DB))
    assert "results                        165 rows (+20)" in said
    assert {*origins_of(behind, 18).values()} == {"dump", "f1db"}
    points = """SELECT driverRef, points FROM results JOIN drivers USING (driverId)
                WHERE raceId = 67 ORDER BY 1"""
    assert select(behind, points) == select(complete, points)
    of_f1db = {"practice", "sprint_qualifying"}
    with served(like_jolpica(complete)) as now:
        refreshed(behind, now.url, str(F1DB))
        origins = origins_of(behind, 18)
        assert {kind for kind, source in origins.items() if source == "f1db"} == of_f1db
        of_api = {kind for kind, source in origins.items() if source == now.url}
        assert of_api == {"races", *RECORDS, "fastest_laps"} - of_f1db
        same = (
            "results",
            "qualifying",
            "sprint_results",
            "pit_stops",
            "lap_times",
            "driver_standings",
        )
        assert {name: rows_of(behind)[name] for name in same} == {
            name: rows_of(complete)[name] for name in same
        }
        assert all("nothing new" in line for line in refreshed(behind, now.url, str(F1DB))[0][-1:])


def test_the_first_source_is_preferred_and_nothing_flips_back_and_forth(api, behind):
    refreshed(behind, str(F1DB), api.url)
    before = rows_of(behind), origins_of(behind, 18)
    assert before[1]["results"] == before[1]["qualifying"] == "f1db"
    assert before[1]["lap_times"] == api.url
    said, _ = refreshed(behind, str(F1DB), api.url)
    assert [line.partition(" after ")[0] for line in said if "nothing new" in line] == [
        f"{behind}: nothing new"
    ] * 2
    assert (rows_of(behind), origins_of(behind, 18)) == before


def test_what_a_dump_gave_stays_if_f1db_has_it_too(current, complete):
    refreshed(current, str(F1DB))
    kept = ("results", "qualifying", "sprint_results", "pit_stops", "driver_standings")
    assert {name: rows_of(current)[name] for name in kept} == {
        name: rows_of(complete)[name] for name in kept
    }


def test_a_source_that_fails_does_not_keep_the_others_from_being_used(api, behind, complete):
    with pytest.raises(
        LoadError, match=r"^http://127\.0\.0\.1:1/ergast/f1/seasons\.json\S+ Connection refused"
    ):
        refreshed(behind, "http://127.0.0.1:1/ergast/f1", api.url)
    assert rows_of(behind) == rows_of(complete)


def test_a_release_is_downloaded_once_and_refused_if_its_checksum_is_wrong(api, release, behind):
    url = f"{release.url}/f1db-csv.zip"
    for expected in (
        ["checksums_sha256.txt", "checksums_sha256.txt", "f1db-csv.zip"],
        ["checksums_sha256.txt"],
    ):
        release.paths.clear()
        refreshed(behind, url)
        assert release.paths == expected
        refreshed(behind, api.url)  # what another source changes is no reason to download it again
    release.faults = dict.fromkeys((0, 1), lambda body: (200, {}, b"0" * 64 + b"  f1db-csv.zip"))
    release.paths.clear()
    before = state(behind.parent)
    with pytest.raises(
        LoadError, match=f"f1db-csv.zip: its SHA-256 is [0-9a-f]{{64}}; expected {'0' * 64}, as "
    ):
        refreshed(behind, url)
    assert state(behind.parent) == before


def test_checksums_that_do_not_come_are_given_up_soon(behind, monkeypatch):
    assert f1db_release.CHECKSUMS_SECONDS == 30
    monkeypatch.setattr(f1db_release, "CHECKSUMS_SECONDS", 0.1)
    with (
        hanging() as server,
        pytest.raises(LoadError, match=r"checksums_sha256.txt: not complete in 0.1 seconds"),
    ):
        refreshed(behind, f"{server.url}/f1db-csv.zip")


def test_a_release_that_cannot_be_used_is_downloaded_a_few_times_a_day_and_a_later_one_at_once(
    behind,
):
    """The checksum is wrong until a later release, 40 minutes after the second day has begun."""
    time = SimulatedTime(
        datetime(2023, 10, 22, 20, 30, tzinfo=UTC), datetime(2023, 10, 24, tzinfo=UTC)
    )
    later = datetime(2023, 10, 23, 21, 10, tzinfo=UTC)
    content, downloads = zip_of(F1DB), []

    def answer(path):
        if path.endswith("checksums_sha256.txt"):
            checksum = hashlib.sha256(content).hexdigest() if time.now >= later else "0" * 64
            return 200, {}, f"{checksum}  f1db-csv.zip\n".encode()
        downloads.append(time.now)
        return 200, {}, content

    with served(answer) as server:
        complaints = follow_source(behind, f"{server.url}/f1db-csv.zip", time)
    assert "its SHA-256 is" in complaints[0]
    assert complaints[1].endswith(
        "f1db-csv.zip: this release could not be used; next download in 55 minutes; "
        "expected a newer release"
    )
    assert len([each for each in downloads if each < later]) == 6
    assert timedelta() < downloads[6] - later < timedelta(minutes=61)
    assert len(downloads) == 7
    assert origins_of(behind, 18)["results"] == "f1db"


def test_a_clock_that_was_ahead_does_not_make_records_immune_to_later_dumps(
    behind, complete, finished, tmp_path
):
    with served(answers_of(client(with_a_penalty(finished, tmp_path, 9)))) as server:
        refreshed(behind, server.url, now=datetime(2099, 1, 1, tzinfo=UTC).timestamp())
    assert rows_of(behind)["results"] != rows_of(complete)["results"]
    load([str(finished)], str(behind), CORRECTIONS, lambda text: None)
    assert rows_of(behind)["results"] == rows_of(complete)["results"]
    assert "2099" not in str(
        select(behind, "SELECT readAt FROM sources UNION ALL SELECT fetchedAt FROM origins")
    )


@pytest.mark.parametrize("limit", [30, 100, 2000])
def test_the_estimate_of_requests_is_not_too_low(finished, tmp_path, limit):
    """All races of the sample that were run are fetched, but those of its first season."""

    def only(ids, *tables):
        return {name: lambda row: row if row["raceId"] in ids else None for name in tables}

    run = {row["raceId"] for row in csv_rows(finished, "results")}
    dump = edited(finished, tmp_path / "run", **only(run, "races", *RECORDS))
    first = edited(dump, tmp_path / "first", **only(race_ids(SAMPLE, 1957).values(), *RECORDS))
    before, complete = built(first, tmp_path / "racedata.db"), built(dump, tmp_path / "complete.db")
    with served(answers_of(client(complete, max_limit=limit))) as server:
        said, requests = refreshed(before, server.url)
    about = int(re.search(r"about ([0-9,]+) requests", said[0])[1].replace(",", ""))
    assert requests <= about
    assert (", at most 500 in 60 minutes; loading a dump first is quicker" in said[0]) == (
        about > 499
    )


def test_records_of_fewer_drivers_replace_none_unless_a_season_is_named(
    api, current, complete, finished, tmp_path
):
    def one_less(row):
        return (
            None
            if row["raceId"] == race_ids(SAMPLE, 2023)[18] and row["positionOrder"] == "20"
            else row
        )

    fewer = built(edited(finished, tmp_path / "fewer", results=one_less), tmp_path / "fewer.db")
    with served(answers_of(client(fewer))) as server:
        assert "nothing new" in refreshed(current, server.url)[0][-1]
        assert rows_of(current)["results"] == rows_of(complete)["results"]
        refreshed(current, server.url, season=2023)
    assert rows_of(current)["results"] == rows_of(fewer)["results"]


def test_a_season_that_is_not_here_gets_its_calendar_from_f1db(behind, tmp_path):
    further = shutil.copytree(F1DB, tmp_path / "f1db")
    for path in further.glob("f1db-races*.csv"):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace(",2023,", ",2024,").replace('"2023-', '"2024-'), encoding="utf-8"
        )
    refreshed(behind, str(further))
    found = select(behind, "SELECT round, name, time FROM races WHERE year = 2024 ORDER BY round")
    assert [(round, name) for round, name, _ in found] == [
        (9, "Austrian Grand Prix"),
        (18, "United States Grand Prix"),
    ]
    assert origins_of(behind, 18).get("results") is None


def test_a_season_that_a_dump_lacks_is_refused(behind):
    with pytest.raises(LoadError, match=f"^{F1DB}: no season 2030; it has 1957 to 2025$"):
        refreshed(behind, str(F1DB), season=2030)


@pytest.mark.parametrize(
    "fault", [FAULTS[name] for name in ("html", "broken off", "an error", "nothing")]
)
def test_a_fault_at_any_download_changes_nothing_and_the_next_refresh_works(release, behind, fault):
    url = f"{release.url}/f1db-csv.zip"
    for number in range(3):  # the checksums, twice, and the release
        release.paths.clear()
        release.faults = {number: fault}
        before = state(behind.parent)
        with pytest.raises(LoadError, match=r"^http://127\.0\.0\.1:[^\n]+$"):
            refreshed(behind, url)
        assert len(release.paths) == number + 1
        assert state(behind.parent) == before
    release.faults = {}
    refreshed(behind, url)
    assert origins_of(behind, 18)["results"] == "f1db"


def test_what_was_fetched_before_and_not_taken_is_no_news(current, finished, tmp_path):
    def one_less(row):
        return (
            None
            if row["raceId"] == race_ids(SAMPLE, 2023)[9] and row["positionOrder"] == "20"
            else row
        )

    fewer = built(edited(finished, tmp_path / "fewer", results=one_less), tmp_path / "fewer.db")
    with served(answers_of(client(fewer))) as server:
        for rounds in ("rounds 9, 18", "round 18"):
            said, _ = refreshed(current, server.url)
            assert said[0] == f"2023: fetched the calendar (22 races) and {rounds}"
            assert "nothing new" in said[-1]


def test_a_release_under_another_name_is_the_same_source(api, behind, tmp_path):
    renamed = shutil.make_archive(str(tmp_path / "renamed"), "zip", F1DB)
    refreshed(behind, renamed, api.url)
    said, _ = refreshed(behind, renamed, api.url)
    assert [line.partition(" after ")[0] for line in said if "nothing new" in line] == [
        f"{behind}: nothing new"
    ] * 2


def test_a_refresh_leaves_a_loaded_source_its_address(source, tmp_path):
    release, database = shutil.copytree(F1DB, tmp_path / "release"), tmp_path / "x.db"
    load([str(source), str(release)], str(database), None, lambda text: None)
    refreshed(database, str(shutil.copytree(F1DB, tmp_path / "newer")))
    assert select(database, "SELECT address FROM sources WHERE name = 'f1db'") == [(str(release),)]


@pytest.fixture
def followed(monkeypatch):
    """Returns what `--follow` would follow: the sources, and what prepares the database."""
    found = []

    def followed(database, *arguments):
        def follow_in_processes(path, sources, preparation, parent):
            found[:] = [make(lambda seconds: None) for _, make in sources], preparation.prepare

        monkeypatch.setattr(refresh, "follow_in_processes", follow_in_processes)
        refresh.main(["--follow", "--database", str(database), *arguments])
        return tuple(found)

    return followed


def expected(kind, is_stored):
    """Records of 2023/18, as follow.py asks for them."""
    return Expected(2023, 18, "race", kind, datetime(2023, 10, 22, 19, tzinfo=UTC), is_stored)


def test_follow_asks_the_preferred_source_last_as_a_refresh_does(api, behind, followed):
    sources, _ = followed(behind, "--from", api.url, "--from", str(F1DB))
    assert ["lap_times" in each.source.kinds for each in sources] == [False, True]


def test_an_api_has_news_if_it_has_missing_records_or_other_results(
    api, behind, complete, followed
):
    (source,), _ = followed(behind, "--from", f"{api.url}/")
    assert {"results", "lap_times"} < {*source.source.kinds}
    assert source.has_news([expected("results", False)])
    assert "results 165 rows (+20)" in source.refresh()
    assert rows_of(behind) == rows_of(complete)
    assert not source.has_news([expected("results", True)])
    changed(behind, "UPDATE results SET points = '99' WHERE raceId = 67")
    assert source.has_news([expected("results", True)])


def test_a_release_has_news_if_its_checksum_is_new(release, behind, followed):
    (source,), _ = followed(behind, "--from", f"{release.url}/f1db-csv.zip")
    assert "lap_times" not in source.source.kinds
    assert source.has_news([])
    assert "new data" in source.refresh()
    assert not source.has_news([])
    assert source.refresh() == ""


def test_follow_and_one_season_do_not_go_together(behind, capsys):
    with pytest.raises(SystemExit):
        refresh.main(["--follow", "--season", "2023", "--database", str(behind)])
    assert capsys.readouterr().err.endswith("--follow and --season: expected one of them\n")
