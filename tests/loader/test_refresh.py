"""racedata.loader.refresh and refresh_command: the command, the order of the sources, and calendars
that lack races.
"""

import re
import shutil
import signal
import time
from functools import partial

import pytest
from support import SAMPLE, spoiling
from support.answers import client
from support.apis import FAULTS, answers_of, hurried, refreshed, served
from support.loads import (
    RECORDS,
    built,
    edited,
    file_of_corrections,
    loader_settings,
    race_ids,
    racedata,
    remembered,
    rows_of,
    select,
    signals_kept,
)
from support.refreshes import (
    F1DB,
    NOW,
    like_jolpica,
    origins_of,
    run_refresh,
    state,
    with_a_penalty,
)
from support.releases import zip_of

from racedata.database import OLDEST_VERSION
from racedata.hints import COMMAND
from racedata.loader import refresh_command
from racedata.loader.corrections import CORRECTIONS
from racedata.loader.errors import LoadError
from racedata.loader.follow import Follower
from racedata.loader.refresh import Refresh
from racedata.loader.sources import Pace
from racedata.loader.threads import Threads


def test_nothing_new_leaves_every_file_as_it_is(api, behind, complete):
    ended = run_refresh(behind, api.url)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert f"{behind}: new data after " in ended.stdout
    assert rows_of(behind) == rows_of(complete)
    before, requests = state(behind.parent), len(api.paths)
    ended = run_refresh(behind, api.url)
    asked = len(api.paths) - requests
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.endswith(f"{behind}: nothing new after {asked} requests to {api.url}\n")
    assert state(behind.parent) == before


def rounds_gone(source, folder, *rounds):
    """A database like a dump without some rounds of 2023, as if they had never been."""
    gone = {race_ids(source, 2023)[round] for round in rounds}
    edits = dict.fromkeys(("races", *RECORDS), lambda row: None if row["raceId"] in gone else row)
    name = "-".join(map(str, rounds)) or "none"
    return built(edited(source, folder / name, **edits), folder / f"{name}.db")


def test_a_calendar_that_lacks_a_race_with_results_is_not_used(current, tmp_path, finished):
    """With SEASON, it is deleted."""
    stale, before = rounds_gone(finished, tmp_path, 9, 22), rows_of(current)
    with served(answers_of(client(stale))) as server:
        said, _ = refreshed(current, server.url)
        lacks = "the calendar of 2023, which lacks Austrian Grand Prix"
        assert f"{lacks}: the database has results of that race; not used" in said
        assert rows_of(current) == before
        refreshed(current, server.url, season=2023)
    assert rows_of(current)["races"] == rows_of(stale)["races"]
    assert rows_of(current)["lap_times"] == rows_of(stale)["lap_times"]


# A calendar that lacks races without results: it is incomplete, or they are cancelled.


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


def test_an_api_with_a_corrected_error_brings_nothing_new(current, complete, tmp_path, finished):
    corrections = file_of_corrections(tmp_path, "drivers,leclerc,number,61,16,a test")
    edits = {
        "drivers": lambda row: row | {"number": "61"} if row["driverRef"] == "leclerc" else row
    }
    erring = built(edited(finished, tmp_path / "dump", **edits), tmp_path / "api.db")
    with served(answers_of(client(erring))) as server:
        options = ["--corrections", str(corrections)]
        assert "nothing new" in run_refresh(current, server.url, *options).stdout
        assert "new data" in run_refresh(current, server.url, "--corrections", "none").stdout
        assert "new data" in run_refresh(current, server.url, *options).stdout
    assert rows_of(current) == rows_of(complete)


def test_the_command_ends_with_1_and_a_line_if_anything_fails(api, behind, capsys):
    api.faults = {3: FAULTS["html"]}
    ended = run_refresh(behind, api.url)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == (
        f"racedata refresh: {api.url}/2023/qualifying.json?limit=2000&offset=0: "
        "b'<!doctype html><title>Sign in to the net'; expected JSON; nothing was changed\n"
    )
    with pytest.raises(SystemExit):
        refresh_command.main(["--follow", "--season", "2023", "--database", str(behind)])
    assert capsys.readouterr().err.endswith("--follow and --season: expected only one of them\n")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoiling.missing, f"is missing; to build it, run: {COMMAND} load SOURCE"),
        (spoiling.truncated, "is damaged (its size has changed since it was built)"),
        (spoiling.version(OLDEST_VERSION - 1), "has schema version 10, which is older than this"),
    ],
)
def test_a_database_that_cannot_be_refreshed_is_left_alone(api, behind, spoil, said):
    spoil(behind)
    before = state(behind.parent)
    ended = run_refresh(behind, api.url)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert state(behind.parent) == before
    assert api.paths == []


def test_records_that_another_refresh_has_stored_meanwhile_are_not_replaced(
    behind, complete, finished, tmp_path
):
    """While the laps are fetched, there is a penalty, and another program stores it."""
    penalty = with_a_penalty(finished, tmp_path, 18)
    before, after = answers_of(client(complete)), answers_of(client(penalty))
    others = []

    def answer(path):
        if "/laps" in path and not others:
            others.append(None)
            others.append(refreshed(behind, server.url)[0][-1])
        return (after if len(others) == 1 else before)(path)

    said = r"has stored records from http://\S+ in the meantime; try again$"
    with served(answer) as server, pytest.raises(LoadError, match=said):
        refreshed(behind, server.url)
    assert "new data" in others[1]
    assert rows_of(behind) == rows_of(penalty) != rows_of(complete)


# A dump at a URL that does not say what it is.


@pytest.fixture
def threads():
    with signals_kept():
        yield Threads(None)
        signal.set_wakeup_fd(-1)


def test_a_dump_of_the_list_is_read_again_after_a_day_or_for_a_season(source, tmp_path):
    database, now = built(source, tmp_path / "x.db"), time.time()
    grid = edited(source, tmp_path / "new", results=lambda row: row | {"grid": "7"})
    shutil.copy(grid / "results.csv", source)

    def said(season, hours):
        pace = partial(hurried, lambda: now + hours * 3600)
        settings, lines = loader_settings(database), []
        refresh = Refresh(settings, [str(source)], season, lambda text: None, pace, is_named=False)
        refresh.run(lines.append)
        return lines[-1]

    assert f"nothing new: {source} was read " in said(None, 23)
    assert "new data after reading" in said(2023, 23)
    shutil.copy(SAMPLE / "results.csv", source)
    assert f"nothing new: {source} was read " in said(None, 23)
    assert "new data after reading" in said(None, 25)


def test_a_dump_at_a_url_is_known_by_the_name_that_only_its_files_have(
    source, tmp_path, monkeypatch, threads
):
    database = built(source, tmp_path / "x.db")
    with served(lambda path: (200, {}, zip_of(F1DB))) as server:
        url = f"{server.url}/copy.zip"
        monkeypatch.setenv("RACEDATA_SOURCES", f"{source} {url}")
        for _ in range(2):  # the first one loads it
            said = racedata("refresh", "--database", database).stdout
            assert f"nothing new: {url} was read " in said and len(server.paths) == 1
        Follower(loader_settings(database), [str(source), url], False, threads).make_complete()
    facts = remembered(database)
    assert url not in facts and facts["f1db"].keys() == {"refreshedAt", "followedSince"}


def test_f1db_fills_in_until_the_api_has_the_records_and_then_those_are_taken(
    behind, behind_file, complete
):
    """An API comes before dumps, and nothing flips back and forth. Records of the dump stay."""
    with served(answers_of(client(behind_file))) as late:
        said, _ = refreshed(behind, late.url, str(F1DB))
    assert "results                        165 rows (+20)" in said
    assert {*origins_of(behind, 18).values()} == {late.url, "f1db"}
    points = """SELECT driverRef, points FROM results JOIN drivers USING (driverId)
                WHERE raceId = 67 ORDER BY 1"""
    assert select(behind, points) == select(complete, points)
    of_f1db = {"practice", "sprint_qualifying"}
    with served(like_jolpica(complete)) as now:
        refreshed(behind, str(F1DB), now.url)
        origins = origins_of(behind, 18)
        assert {kind for kind, source in origins.items() if source == "f1db"} == of_f1db
        of_api = {kind for kind, source in origins.items() if source == now.url}
        assert of_api == {"races", *RECORDS, "fastest_laps"} - of_f1db
        before, expected = rows_of(behind), rows_of(complete)
        kept = {*RECORDS} - of_f1db - {"constructor_standings"}
        assert {name: before[name] for name in kept} == {name: expected[name] for name in kept}
        said, _ = refreshed(behind, str(F1DB), now.url)
        nothing = [line for line in said if line.startswith(f"{behind}: nothing new after ")]
        assert len(nothing) == 2
        assert (rows_of(behind), origins_of(behind, 18)) == (before, origins)


def test_sources_that_fail_do_not_keep_the_others_from_being_used(api, behind, complete):
    deep = b'{"MRData":{"limit":' + b"[" * 1000 + b"]" * 1000 + b"}}"  # too deep for a message
    said = r"^maximum recursion .*; http://127\.0\.0\.1:1/ergast/f1/seasons\S+ Connection refused"
    with (
        served(lambda path: (200, {}, deep)) as server,
        pytest.raises(LoadError, match=said),
    ):
        refreshed(behind, "http://127.0.0.1:1/ergast/f1", server.url, api.url)
    assert rows_of(behind) == rows_of(complete)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3600", 3601), ("9" * 18, 86_401), ("Fri, 31 Dec 9999 23:59:59 GMT", 86_401)],
)
def test_a_source_at_its_limit_is_asked_only_once(behind, complete, header, seconds):
    """The exit status is that of a temporary failure: 75. One that refuses for years is asked again
    after a day.
    """
    with served(lambda path: (429, {"Retry-After": header}, b"")) as server:
        first = run_refresh(behind, server.url)
        server.answer = answers_of(client(complete))
        second = run_refresh(behind, server.url)
        assert len(server.paths) == 1
        assert re.fullmatch(r"\S+: status 429: try again in [\d,]+ seconds\n", first.stdout)
        assert re.fullmatch(r"\S+: refuses requests until \S+Z; try again then\n", second.stdout)
        assert {(run.returncode, run.stderr) for run in (first, second)} == {(75, "")}
        later = time.time() + seconds
        assert "new data" in refreshed(behind, server.url, now=later)[0][-1]


def test_the_requests_of_a_refresh_count_for_the_next_one(api, behind):
    def pace_with_limit(slept):
        pace = Pace(clock=lambda: 0, sleep=slept.append, now=lambda: NOW)
        pace.limits = ((12, 3600),)  # one request more than the first refresh needs
        return pace

    waits = []
    for _ in range(2):
        slept = []
        refresh = Refresh(
            loader_settings(behind, CORRECTIONS),
            [api.url],
            None,
            lambda text: None,
            partial(pace_with_limit, slept),
        )
        refresh.run(lambda line: None)
        waits.append(sum(slept))
    assert waits[0] == 0 < waits[1]


def test_a_missing_season_gets_its_calendar_from_f1db(behind, tmp_path):
    with pytest.raises(LoadError, match=f"^{F1DB}: no season 2030; it has 1957 to 2025$"):
        refreshed(behind, str(F1DB), season=2030)
    further = shutil.copytree(F1DB, tmp_path / "f1db")
    for path in further.glob("f1db-races*.csv"):
        text = path.read_text(encoding="utf-8")
        path.write_text(
            text.replace(",2023,", ",2024,").replace('"2023-', '"2024-'), encoding="utf-8"
        )
    refreshed(behind, str(further))
    found = select(behind, "SELECT round, name FROM races WHERE year = 2024 ORDER BY round")
    assert found == [(9, "Austrian Grand Prix"), (18, "United States Grand Prix")]
    assert origins_of(behind, 18).get("results") is None
