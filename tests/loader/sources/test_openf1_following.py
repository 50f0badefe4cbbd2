"""racedata.loader.sources.openf1, followed with other sources: a weekend, minute by minute."""

import shutil
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from support.answers import client
from support.apis import answers_of, served
from support.loads import loader_settings, select
from support.openf1 import (
    GIVEN,
    RECORDS,
    RESULT,
    TOO_MANY,
    OpenF1Server,
    facts,
    provisional,
    repair_laps,
    without_records,
)
from support.refreshes import F1DB, NOT_SERVED_BY_JOLPICA
from support.releases import file_of_release, released, zip_of
from support.season import LimitedApi, SeasonOver, SimulatedTime

from racedata.loader.existing import expected_records, open_read_only
from racedata.loader.follow import CheckLoop, followed_source
from racedata.loader.refresh import Refresh
from racedata.loader.sources import Pace
from racedata.loader.sources.openf1 import LIMITS
from racedata.model import KINDS

JOLPICA_AFTER = {"qualifying": 3, "sprint": 3, "results": 6, "laps": 30}  # hours after the start


F1DB_AFTER = timedelta(hours=7)


START = {
    "fp1": datetime(2023, 10, 20, 17, 30, tzinfo=UTC),
    "quali": datetime(2023, 10, 20, 21, tzinfo=UTC),
    "sq": datetime(2023, 10, 21, 17, 30, tzinfo=UTC),
    "sprint": datetime(2023, 10, 21, 22, tzinfo=UTC),
    "race": datetime(2023, 10, 22, 19, tzinfo=UTC),
}


SESSION_OF = {kind: KINDS[kind].sessions[0] for kind in GIVEN}


HALF, WEEK = timedelta(minutes=30), timedelta(days=7)


class Weekend:
    """The weekend in Austin: a database without it, and three sources that publish it."""

    def __init__(self, database, whole, folder, rows):
        self.database = database
        self.time = SimulatedTime(START["fp1"] - timedelta(hours=12), START["race"] + WEEK)
        self.ends = {
            row["session_key"]: datetime.fromisoformat(row["date_end"]) for row in rows["sessions"]
        }
        self.starts = {
            row["session_key"]: datetime.fromisoformat(row["date_start"])
            for row in rows["sessions"]
        }
        self.seen: list[tuple[datetime, dict[str, str]]] = []  # what a client saw, and since when
        self.complaints: list[str] = []
        unchanged = shutil.copy(database, folder / "before.db")
        # with pages as small as Jolpica's
        self.before, self.after = (
            answers_of(client(each, max_limit=100)) for each in (unchanged, whole)
        )
        self.openf1 = LimitedApi(
            self.time, OpenF1Server(rows, self.is_live, self.is_published).answer, LIMITS, TOO_MANY
        )
        self.jolpica = LimitedApi(self.time, self.of_jolpica)
        self.releases = [zip_of(F1DB, without=["1097"]), zip_of(F1DB)]
        self.f1db = LimitedApi(self.time, self.of_f1db)

    def is_live(self):
        return any(
            start - HALF <= self.time.now < self.ends[key] + HALF
            for key, start in self.starts.items()
        )

    def is_published(self, endpoint, row):
        if endpoint == "sessions":
            return True
        return self.time.now >= self.ends[row["session_key"]] + timedelta(minutes=5)

    def of_jolpica(self, path):
        if "practice" in path or "sprintqualifying" in path:
            return NOT_SERVED_BY_JOLPICA
        for name, hours in JOLPICA_AFTER.items():
            session = {"qualifying": "quali", "sprint": "sprint"}.get(name, "race")
            if f"/{name}." in path:
                is_out = self.time.now >= START[session] + timedelta(hours=hours)
                return (self.after if is_out else self.before)(path)
        is_out = self.time.now >= START["race"] + timedelta(hours=JOLPICA_AFTER["results"])
        return (self.after if is_out else self.before)(path)

    def of_f1db(self, file):
        return file_of_release(self.releases[self.time.now >= START["race"] + F1DB_AFTER], file)

    def play(self, *addresses):
        """Follows the sources until the end, as the command does."""
        new_pace = partial(Pace, self.time.seconds, self.time.sleep, self.time.seconds)

        def following(number):
            refresh = Refresh(
                loader_settings(self.database), addresses, None, lambda text: None, new_pace
            )
            return followed_source(refresh, refresh.sources[number])

        def expected():
            with closing(open_read_only(self.database)) as db:
                return expected_records(db)

        each = [following(number) for number in reversed(range(len(addresses)))]
        loop = CheckLoop(
            expected,
            self.time.utc,
            self.time.sleep,
            self.note,
            lambda error, due: self.complaints.append(f"{self.time.now:%a %H:%M} {error}"),
        )
        with suppress(SeasonOver):
            while True:
                loop.check(min(each, key=lambda one: one.due))

    def note(self, line):
        origins = select(
            self.database,
            """SELECT kind, sources.name FROM origins JOIN sources USING (sourceId)
               JOIN races USING (raceId) WHERE year = 2023 AND round = 18""",
        )
        self.seen.append((self.time.now, dict(origins)))

    def since(self, kind):
        """The sources that a client saw a kind from, and since when."""
        found: list[tuple[datetime, str]] = []
        for time, origins in self.seen:
            if kind in origins and (not found or found[-1][1] != origins[kind]):
                found.append((time, origins[kind]))
        return found


@pytest.fixture
def weekend(database, sample_database, tmp_path, rows):
    repair_laps(rows, sample_database)
    return Weekend(
        without_records(database, *RECORDS, rounds=(18,)), sample_database, tmp_path, rows
    )


@pytest.mark.long(30)
def test_a_weekend_of_three_sources_is_known_within_half_an_hour_and_ends_with_the_preferred(
    weekend, sample_database
):
    with (
        served(weekend.jolpica.answer) as jolpica,
        released(weekend.f1db.answer) as f1db,
        served(weekend.openf1.answer) as openf1,
    ):
        weekend.play(jolpica.url, f"{f1db.url}/f1db-csv.zip", f"openf1:{openf1.url}")
    order = [jolpica.url, "f1db", "openf1"]
    for kind in GIVEN:
        steps = weekend.since(kind)
        names = [name for _, name in steps]
        assert names[0] == "openf1", kind
        # Nothing goes back to a less preferred source.
        assert sorted(names, key=order.index, reverse=True) == names, (kind, names)
        end = max(
            weekend.ends[key]
            for key, start in weekend.starts.items()
            if start == START[SESSION_OF[kind]]
        )
        assert steps[0][0] <= end + HALF + HALF, kind  # free half an hour after the session
    assert provisional(weekend.database) == {}
    for kind, columns in {
        "results": f"{RESULT}, points, grid, status, rank",
        "sprint_results": f"{RESULT}, points, grid, status",
        "qualifying": "position, q1, q2, q3",
        "pit_stops": "stop, lap, milliseconds",
        "lap_times": "lap, position, classified.time",
    }.items():
        new, old = (facts(each, kind, columns, 18) for each in (weekend.database, sample_database))
        assert new == old
    # One line for each series of refusals, at most one per session.
    assert all("status 401" in line for line in weekend.complaints)
    assert len(weekend.complaints) <= len(START)
    assert len(weekend.openf1.answered) < 60
    assert len(weekend.jolpica.answered) <= 300
