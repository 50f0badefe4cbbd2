"""racedata.loader.sources.openf1, own_calendar: when it asks, what for, and when another source
replaces it.
"""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.answers import client
from support.apis import FAULTS, refreshed, served
from support.loads import loader_settings, rows_of, select
from support.openf1 import (
    GIVEN,
    RACE,
    SUNDAY,
    TOO_MANY,
    OpenF1Server,
    in_austin,
    json_answer,
    provisional,
    refresh,
    rounds_with,
)

from racedata.loader.errors import LoadError
from racedata.loader.load import load
from racedata.loader.refresh import Refresh
from racedata.loader.schedule import Expected
from racedata.loader.sources import History, Pace, source_at


def test_a_weekend_takes_at_most_eight_requests(filled):
    assert Counter(request.partition("?")[0] for request in filled.requests) == {
        "sessions": 1,
        **dict.fromkeys(("session_result", "drivers", "starting_grid", "pit"), 2),
        "laps": 4,  # of the races, and of their sprints
    }


def test_it_replaces_nothing_that_another_source_gave(database, openf1, rows):
    before = rows_of(database)
    for row in rows["session_result"]:
        row["number_of_laps"] = 7
    refreshed(database, f"openf1:{openf1.url}", season=2023, now=SUNDAY)
    assert rows_of(database) == before
    assert provisional(database) == {}


def test_its_records_are_asked_for_again_for_a_month_and_then_once_a_month(copied, openf1, rows):
    for row in rows["session_result"]:
        if row["session_key"] == RACE and row["driver_number"] == 1:
            row["points"] = 25.0
    url, asked = f"openf1:{openf1.url}", []
    for days in (3, 20, 40, 51, 52):
        openf1.paths.clear()
        refreshed(copied, url, now=SUNDAY + days * 86400)
        of_austin = [path for path in openf1.paths if "=1222" in path or f"={RACE}" in path]
        asked.append(sorted(path.partition("?")[0] for path in of_austin))
    everything = ["drivers", "laps", "pit", "session_result", "starting_grid"]
    # Nothing is final: later, everything is asked for again once in a month.
    assert asked == [everything, everything, [], everything, []]


@pytest.mark.parametrize("fault", ["html", "broken off"])
def test_a_broken_answer_is_one_line_and_what_came_before_is_stored(openf1, lacking, fault):
    openf1.faults = {8: FAULTS[fault]}  # the drivers of the second weekend
    with pytest.raises(LoadError) as error:
        refresh(lacking, openf1)
    assert "\n" not in str(error.value)
    assert "/drivers?meeting_key=1222: " in str(error.value)
    assert rounds_with(lacking, "results") == {9}
    openf1.faults = {}
    refresh(lacking, openf1)
    assert rounds_with(lacking, "results") == {9, 18}


def test_an_answer_that_stays_broken_keeps_only_its_own_race_from_being_stored(openf1, lacking):
    openf1.faults = {2: FAULTS["html"]}  # the drivers of the first weekend
    with pytest.raises(LoadError, match=r"/drivers\?meeting_key=1213: .*expected JSON"):
        refresh(lacking, openf1)
    assert rounds_with(lacking, "results") == {18}


def test_after_429_it_waits_for_a_minute_and_asks_again(openf1, lacking):
    openf1.faults = {1: lambda body: TOO_MANY}
    slept: list[float] = []
    pace = Pace(clock=lambda: 0, sleep=slept.append, now=lambda: SUNDAY)
    url = f"openf1:{openf1.url}"
    Refresh(loader_settings(lacking), [url], 2023, lambda text: None, lambda: pace).run(print)
    assert 60 in slept
    assert rounds_with(lacking, "results") == {9, 18}


@pytest.mark.parametrize("nothing", [None, json_answer(200, [])], ids=["404", "an empty list"])
def test_missing_records_are_not_a_fault(lacking, rows, nothing):
    found = OpenF1Server({"sessions": rows["sessions"]})

    def answer(path):
        answered = found.answer(path)
        return nothing if nothing and answered[0] == 404 else answered

    with served(answer) as server:
        said = refresh(lacking, server)
        assert len(server.paths) == 3  # one more for each weekend
    assert not any("left out" in line for line in said)
    assert provisional(lacking) == {}


@pytest.mark.parametrize(
    "change",
    [{"is_cancelled": True}, {"circuit_key": 39}, {"date_start": "2023-11-05T19:00:00+00:00"}],
    ids=["cancelled", "at another circuit", "at another time"],
)
def test_a_race_that_is_not_where_and_when_the_calendar_says_is_left_out(
    openf1, rows, lacking, change
):
    for row in in_austin(rows, "sessions"):
        row |= change
    said, _ = refreshed(lacking, f"openf1:{openf1.url}", season=2023, now=SUNDAY + 86400)
    line = "is left out: OpenF1 has no race at americas on 2023-10-22"
    assert f"openf1: 2023/18 United States Grand Prix {line}" in said
    assert all(18 not in rounds_with(lacking, kind) for kind in GIVEN)
    assert 9 in rounds_with(lacking, "results")


def test_the_service_says_which_records_are_provisional(copied):
    base, *_, openf1 = client(copied).get("/healthz").json["sources"]
    assert (openf1["name"], openf1["provisional"]) == ("openf1", True)
    assert openf1["licence"] == "not stated by OpenF1"
    assert openf1["gave"].startswith("results of 2 races (2023), qualifying of 2 races (2023)")
    assert "provisional" not in base


def test_it_adds_only_what_its_records_name(filled, lacking_file):
    """The lists repeat ours. Its ids are those of the calendar's circuits and its ten teams."""
    lists = "SELECT * FROM {} ORDER BY 1"
    for name in ("drivers", "circuits", "races", "sessions"):
        before, after = (
            select(each, lists.format(name)) for each in (lacking_file, filled.database)
        )
        assert before == after
    ids = "SELECT kind, count(DISTINCT reference) FROM ids WHERE source = 'openf1' GROUP BY kind"
    assert select(filled.database, ids) == [("circuit", 22), ("constructor", 10)]


def test_load_refuses_it(tmp_path):
    with pytest.raises(LoadError, match="openf1: has no calendar and no history; use it with"):
        load(["openf1"], loader_settings(tmp_path / "racedata.db"), lambda text: None)


HTML = {"Content-Type": "text/html"}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        # a web server's own: the base address is wrong, or OpenF1 is being repaired
        (
            (404, HTML, b"<h1>Not Found</h1>"),
            "status 404 Not Found; expected an answer from an API; is it ",
        ),
        ((200, {}, b'["Austin"]'), ".*expected a list of objects"),
        ((200, {}, b'[{"year": 2022}]'), "a session of another season; expected 2023"),
    ],
)
def test_an_answer_that_is_not_openf1s_is_one_line(lacking, answer, said):
    said = rf"/sessions\?year=2023: {said}"
    with served(lambda path: answer) as server, pytest.raises(LoadError, match=said):
        refresh(lacking, server)


@pytest.mark.parametrize(
    ("round", "kind", "table"),
    [(18, "lap_times", "laps"), (18, "pit_stops", "pit"), (18, "results", "session_result")],
)
def test_records_are_news_as_soon_as_they_are_published(openf1, rows, lacking, round, kind, table):
    source = source_at(f"openf1:{openf1.url}", Pace(lambda: SUNDAY, lambda seconds: None))
    history = History(Path(lacking), source.name)
    start = datetime(2023, 10, 22, 19, tzinfo=UTC)
    asked = [Expected(2023, each, "race", kind, start, False) for each in (99, round)]

    def has_news():
        return source.has_news(asked, history, lambda text: None)

    assert has_news()  # the sessions of the season, at first
    source.sessions_of(lambda text: None, 2023)
    published, rows[table] = rows[table], []
    assert not has_news()
    rows[table] = published
    assert has_news()
