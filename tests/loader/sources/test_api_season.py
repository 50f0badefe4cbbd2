"""racedata.loader.sources.api_season, api_rows: what an API has that the database lacks is fetched
with few requests, or nothing is.
"""

import re
import shutil
from collections import Counter

import pytest
from support import SAMPLE
from support.answers import bodies, client
from support.apis import answers_of, refreshed, served
from support.loads import (
    RECORDS,
    built,
    changed,
    race_ids,
    rows_of,
    select,
    without,
)
from support.refreshes import DAY, NOW, like_jolpica, state, with_a_penalty

from racedata.loader.errors import LoadError
from racedata.model import KIND_BY_ENDPOINT


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


def test_an_api_without_practice_and_sprint_qualifying_is_asked_for_them_once(
    finished, complete, tmp_path
):
    before = built(without(finished, tmp_path / "dump", 2021, 10, 12), tmp_path / "racedata.db")
    with served(like_jolpica(complete)) as server:
        refreshed(before, server.url)
        asked = Counter(path.partition(".json")[0].rpartition("/")[2] for path in server.paths)
        assert (asked["pitstops"], asked["sprintqualifying"], asked["practice"]) == (2, 1, 1)
        server.paths.clear()
        refreshed(before, server.url)
        assert not any("practice" in path or "sprintq" in path for path in server.paths)
        refreshed(before, server.url, season=2023)  # it may have them by now
        assert sum("practice" in path for path in server.paths) == 1
    lacking = {table for table, rows in rows_of(complete).items() if rows_of(before)[table] != rows}
    assert lacking == {"practice", "row_counts"}


@pytest.mark.parametrize(
    ("table", "column", "theirs", "ours"),
    [("status", "status", "+1 Lap", "One lap behind"), ("results", "positionText", "R", "W")],
)
def test_other_words_for_a_status_bring_no_details(complete, table, column, theirs, ours, made):
    """Jolpica-F1 says `Lapped` where a dump of Ergast says `+1 Lap`, and `R` where it says `W`."""
    before = made("words", **{table: lambda row: row | {column: row[column].replace(theirs, ours)}})
    with served(answers_of(client(complete, max_limit=100))) as server:
        refreshed(before, server.url)
    # the sample has the laps of this race only
    assert not [path for path in server.paths if re.search("stops|standings|18/laps", path)]
    results = ["/ergast/f1/2023/18/results.json"]
    assert bodies(before, results) == bodies(complete, results)


def test_a_result_that_was_changed_later_comes_right(api, complete, finished, tmp_path):
    database = with_a_penalty(finished, tmp_path, 9)
    said, _ = refreshed(database, api.url)
    assert "results                        165 rows, 1 changed" in said
    assert rows_of(database) == rows_of(complete)


def test_after_a_penalty_the_standings_of_each_later_race_are_fetched_too(api, finished, tmp_path):
    refreshed(with_a_penalty(finished, tmp_path, 9), api.url)
    assert {path.partition(".json")[0] for path in api.paths if "standings" in path} == {
        f"2023/{round}/{whose}standings" for round in (9, 18) for whose in ("driver", "constructor")
    }
    assert not [path for path in api.paths if "18/pitstops" in path]


def test_new_facts_about_an_entrant_come_even_if_no_race_has_changed(current, complete, tmp_path):
    """De Vries drove only in a race before the latest one."""
    theirs = shutil.copy(complete, tmp_path / "theirs.db")
    answers = [answers_of(client(theirs))]
    with served(lambda path: answers[-1](path)) as server:
        refreshed(current, server.url, season=2023)
        changed(theirs, "UPDATE drivers SET forename = 'Hendrik' WHERE driverRef = 'de_vries'")
        answers.append(answers_of(client(theirs)))
        refreshed(current, server.url)
    sql = "SELECT forename FROM drivers WHERE driverRef = 'de_vries'"
    assert select(current, sql) == [("Hendrik",)]


def test_drivers_teams_circuits_and_statuses_that_are_new_appear(api, complete, made):
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
    behind = made("dump", **edits)
    refreshed(behind, api.url)
    paths = [
        *(f"2023/{round}/{kind}" for round in (9, 18) for kind in KIND_BY_ENDPOINT),
        *("2023/races", "2023/drivers", "2023/constructors", "2023/circuits"),
    ]
    addresses = [f"/ergast/f1/{path}.json?limit=2000" for path in paths]
    assert bodies(behind, addresses) == bodies(complete, addresses)
    statuses = "SELECT statusId FROM status WHERE status = 'Undertray'"
    assert select(behind, statuses) == [(140,)]  # Ergast's
    for table in ("status", "seasons", "circuits"):
        assert len(rows_of(behind)[table]) == len(rows_of(complete)[table])


def test_rounds_that_are_cancelled_renumbered_or_renamed_change_in_the_database(behind, made):
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

    changed = made("dump", races=race)
    with served(answers_of(client(changed))) as server:
        refreshed(behind, server.url)
        refreshed(behind, server.url, now=NOW + DAY)
        assert rows_of(behind) == rows_of(changed)
        assert "nothing new" in refreshed(behind, server.url)[0][-1]


def test_an_api_without_laps_and_pit_stops_does_not_delete_those_in_the_database(current, made):
    nothing = {"lap_times": lambda row: None, "pit_stops": lambda row: None}
    without_laps = made("dump", **nothing)
    with served(answers_of(client(without_laps))) as server:
        assert "nothing new" in refreshed(current, server.url)[0][-1]


def test_qualifying_appears_before_the_race_is_run(behind, complete, made):
    """The API has the results of round 9 only, but the qualifying of round 18."""
    id = race_ids(SAMPLE, 2023)[18]
    edit = {"results": lambda row: None if row["raceId"] == id else row}
    saturday = made("saturday", **edit)
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


@pytest.mark.parametrize("season", [None, 2023])
def test_an_api_without_results_of_a_race_does_not_delete_stored_ones(
    current, complete, behind_file, season
):
    with served(answers_of(client(behind_file))) as server:
        assert "nothing new" in refreshed(current, server.url, season=season)[0][-1]
    assert rows_of(current) == rows_of(complete)


@pytest.mark.parametrize(
    ("number", "right", "wrong", "said"),
    [
        (0, '"season":"2021"', '"season":"20x1"', "expected years"),
        (1, '"round":"9"', '"round":"x"', "round: 'x'; expected a whole number from 1 to 99"),
        (1, '"round":"9"', '"round":"10"', "two races have the same round; expected different one"),
        (1, '"2023","round":"9"', '"2022","round":"9"', "a race of season 2022; expected 2023"),
        (2, '"Austrian Gr', '"Styrian Gr', "'Styrian Grand Prix' in round '9'; expected a race of"),
        (6, '"2023","round":"18","url"', '"2023","round":"8","url"', "round '8'; expected"),
        (2, '"millis":"', '"millis":"x', "Austrian Grand Prix, results, record 1, Time.millis: 'x"),
        (2, '"driverId":"', '"driverId":"../', "Driver.driverId: '../"),
        (2, '"grid":"', '"grid":"²', "record 1, grid: '²"),
        (2, '"points":"', '"points":"1e', "points: '1e"),
        (2, '"Driver":{', '"Driver":"x","y":{', "record 1, Driver.driverId: missing"),
    ],
)
def test_answers_that_are_wrong_or_do_not_fit_together_are_refused_with_the_place(
    api, behind, number, right, wrong, said
):
    before = state(behind.parent)

    def replaced(body):
        assert right.encode() in body
        return 200, {}, body.replace(right.encode(), wrong.encode())

    api.faults = {number: replaced}
    with pytest.raises(LoadError) as caught:
        refreshed(behind, api.url)
    assert said in str(caught.value)
    assert str(caught.value).startswith(api.url)
    assert state(behind.parent) == before


def test_a_driver_who_is_twice_in_a_session_is_refused_with_the_place(complete, behind, tmp_path):
    twice = changed(
        shutil.copy(complete, tmp_path / "twice.db"),
        "UPDATE qualifying SET DRIVER(alonso) WHERE RACE(2023/18) AND DRIVER(stroll)",
    )
    place = "2023, United States Grand Prix, qualifying, record 19"
    said = f"{place}: 'alonso' appears twice; expected once"
    with served(answers_of(client(twice))) as server, pytest.raises(LoadError, match=said):
        refreshed(behind, server.url)


def test_records_that_were_fetched_before_and_not_stored_are_not_news(current, made):
    def one_less(row):
        return (
            None
            if row["raceId"] == race_ids(SAMPLE, 2023)[9] and row["positionOrder"] == "20"
            else row
        )

    fewer = made("fewer", results=one_less)
    with served(answers_of(client(fewer))) as server:
        for rounds in ("rounds 9, 18", "round 18"):
            said, _ = refreshed(current, server.url)
            assert said[0] == f"2023: fetched the calendar (22 races) and {rounds}"
            # the first time, it disagrees about the results
            new = [line.split()[0] for line in said[1:-1] if "row" in line]
            assert new == ["discrepancies", "discrepancy_values"] * (rounds == "rounds 9, 18")
