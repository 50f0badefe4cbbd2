"""racedata.loader.follow: what a source publishes is soon stored, with few requests; and a signal ends the loop."""

import signal
from collections import Counter
from datetime import UTC, datetime, timedelta
from statistics import median

import pytest
from support.season import Season, SimulatedApi, SimulatedF1db

from racedata.loader.errors import LoadError
from racedata.loader.follow import Loop, Source, follow, wait
from racedata.loader.replacement import END_SIGNALS, interrupt
from racedata.loader.schedule import DAY, FIRST_LOOK, HOUR, OFTEN_UNTIL, Expected

NOON = datetime(2023, 1, 1, 12, tzinfo=UTC)
HALF_AN_HOUR, TWO_MINUTES = timedelta(minutes=30), timedelta(minutes=2)  # the requests of a look take up to the latter


@pytest.mark.parametrize("names", [("api", "f1db"), ("api",), ("f1db",)], ids="+".join)
@pytest.mark.parametrize(
    ("database", "year"), [("sample_database", 2023), ("dump_database", 2023), ("dump_database", 2025)]
)
def test_a_season_is_soon_stored_with_few_requests(request, database, year, names):
    moves = {5: (3 * DAY, 7 * DAY), 12: (5 * DAY, -DAY), 14: (DAY, DAY)} if "api" in names else {}
    season = Season(request.getfixturevalue(database), year, moves)
    races = season.races()
    outages = [
        (races[7], races[7] + 9 * HOUR),
        (races[13] - 15 * DAY, races[13] - 5 * DAY),
        (races[16] + 2 * HOUR, races[16] + 4 * HOUR),
    ]
    make = {"api": lambda: SimulatedApi(season, outages, late={3, 9}), "f1db": lambda: SimulatedF1db(season)}
    sources = [make[name]() for name in names]
    season.play(sources)

    lateness = []
    for key, starts in season.starts.items():
        if published := [each.available(each.versions[key][0], HOUR) for each in sources if each.versions.get(key)]:
            waited = max(timedelta(), min(published) - starts - FIRST_LOOK)
            lateness.append(season.stored[key] - starts - FIRST_LOOK - waited)
            assert lateness[-1] <= (HALF_AN_HOUR if waited < OFTEN_UNTIL else HOUR + TWO_MINUTES), key
    print(f"\n{year} {database} {names}: records {median(lateness)} late, at most {max(lateness)}")

    for source in sources:
        for key, versions in source.versions.items():
            for published, fetched in zip(versions[1:], source.fetched[key][1:], strict=True):
                available = source.available(published, DAY)
                is_awaited = available < season.starts[key] + FIRST_LOOK + DAY - HOUR and key[2] == "results"
                assert fetched - available <= (HOUR if is_awaited else DAY + HOUR) + TWO_MINUTES, key

        weeks = Counter(time.isocalendar()[:2] for time in source.requests)
        for starts in season.starts.values():
            for time in (starts, starts + DAY):  # a Monday has looks too
                weeks.pop(time.isocalendar()[:2], None)
        days = Counter(time.date() for time in source.requests)
        weekends = [sum(days[(race + n * DAY).date()] for n in range(-2, 2)) for race in races.values()]
        print(
            f"  {type(source).__name__}: {len(source.requests)} requests, {max(weeks.values())} in a quiet week, "
            f"{median(weekends)} in a race weekend, at most {max(weekends)}; "
            f"{source.in_vain} of {source.questions} questions in vain"
        )
        assert max(weeks.values()) <= 400 and max(weekends) <= 300


class Clock:
    """A clock that passes only by waiting. After some hours, it ends the loop."""

    def __init__(self, hours):
        self.now, self.end = NOON, NOON + hours * HOUR

    def wait(self, seconds):
        self.now += timedelta(seconds=seconds)
        if self.now > self.end:
            raise KeyboardInterrupt


def said(hours, sources, load=None, expected=()):
    """What the loop says in some hours, with the time; for a failure, the time of the next try."""
    clock, lines = Clock(hours), []

    def say(text, due=None):
        lines.append(f"{clock.now:%H:%M} {text}" + (f" {due:%H:%M}" if due else ""))

    with pytest.raises(KeyboardInterrupt):
        Loop(lambda: list(expected), lambda: clock.now, clock.wait, say, say).run(sources, load)
    return lines


def failing(times, text):
    """A function that fails so often, and then returns the text."""
    faults = iter([LoadError("down")] * times)

    def work():
        if fault := next(faults, None):
            raise fault
        return text

    return work


def source(refresh, *kinds, has_news=lambda asked: False):
    return Source(kinds, has_news, refresh)


def missing(kind, hours=2):
    """Records of a session that began some hours ago."""
    return Expected(2023, 1, "race", kind, NOON - hours * HOUR, False)


def test_after_a_failure_the_waits_double_up_to_an_hour():
    waits = "12:00 down 12:05|12:05 down 12:15|12:15 down 12:35|12:35 down 13:15|13:15 down 14:15|14:15 new"
    assert said(8, [source(failing(5, "new"))]) == waits.split("|")


def test_a_failure_never_delays_a_look_at_what_is_missing():
    waits = "12:00 down 12:05|12:05 down 12:15|12:15 down 12:35|12:35 down 12:55|12:55 new"
    assert said(0.99, [source(failing(4, "new"), "results")], None, [missing("results")]) == waits.split("|")


def test_a_source_that_fails_delays_no_other():
    has_news = iter([False, False, True, False]).__next__
    other = source(lambda: "new", "results", has_news=lambda asked: has_news())
    down = source(failing(99, ""), "lap_times")
    lines = said(1.2, [down, other], None, [missing("results"), missing("lap_times")])
    assert [line for line in lines if "down" not in line] == ["12:00 new", "13:00 new"]


def test_a_source_without_news_is_refreshed_once_a_day_and_says_nothing_if_nothing_changed():
    texts = iter(["first", "", "third"])
    assert said(71, [source(lambda: next(texts))]) == ["12:00 first", "12:00 third"]


def test_questions_do_not_delay_the_daily_refresh():
    texts = iter(["first", "second"])
    lines = said(47, [source(lambda: next(texts), "results")], None, [missing("results", hours=52.2)])
    assert lines == ["12:00 first", "12:00 second"]


def test_a_source_is_asked_only_for_kinds_that_it_publishes():
    asked = []
    one = source(lambda: "", "results", "pit_stops", has_news=lambda each: asked.append([*each]))
    said(1, [one], None, [missing("results"), missing("practice")])
    assert asked == [[missing("results")]] * 3
    asked.clear()
    said(20, [one], None, [missing("practice")])
    assert asked == []


def test_without_a_database_the_configured_sources_are_loaded_first_until_that_succeeds():
    lines = said(5, [source(lambda: "new")], failing(2, "loaded"))
    assert lines == ["12:00 down 12:05", "12:05 down 12:15", "12:15 loaded", "12:15 new"]


@pytest.fixture
def handlers():
    before = {number: signal.getsignal(number) for number in END_SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", END_SIGNALS)
def test_a_signal_ends_it_in_the_middle_of_a_refresh(handlers, database, number):
    follow(str(database), [source(lambda: signal.raise_signal(number))], None)


def test_a_failure_is_one_line_with_the_next_try(handlers, tmp_path, capsys):
    database = str(tmp_path / "missing.db")
    follow(database, [source(failing(1, "")), source(lambda: signal.raise_signal(signal.SIGTERM))], None)
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1) and err.startswith("racedata refresh: down; next try at ")


def test_a_signal_that_arrives_just_before_a_wait_ends_it(handlers):
    signal.signal(signal.SIGTERM, interrupt)
    signal.pthread_sigmask(signal.SIG_BLOCK, END_SIGNALS)
    signal.raise_signal(signal.SIGTERM)  # is pending until the wait
    with pytest.raises(KeyboardInterrupt):
        wait(600)
