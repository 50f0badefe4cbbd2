"""racedata.loader.sources.openf1, followed with other sources: a weekend, minute by minute."""

import shutil
from datetime import datetime, timedelta

import pytest
from support.apis import served
from support.loads import select
from support.openf1 import (
    GIVEN,
    RESULT,
    TOO_MANY,
    OpenF1Server,
    facts,
    in_austin,
    provisional,
    repair_laps,
)
from support.releases import released
from support.season import LimitedApi, SimulatedTime, follow_source
from support.three_sources import ThreeSources

from racedata.loader.sources.openf1 import LIMITS
from racedata.model import KINDS

HALF, DAY = timedelta(minutes=30), timedelta(days=1)
# OpenF1's names of the sessions of a weekend with a sprint.
SESSIONS = {
    "Practice 1": "fp1",
    "Qualifying": "quali",
    "Sprint Shootout": "sq",
    "Sprint": "sprint",
    "Race": "race",
}
COMPARED = {
    "results": f"{RESULT}, points, grid, status, rank",
    "sprint_results": f"{RESULT}, points, grid, status",
    "qualifying": "position, q1, q2, q3",
    "pit_stops": "stop, lap, milliseconds",
    "lap_times": "lap, position, classified.time",
}


class Austin(ThreeSources):
    """The weekend in Austin, in simulated time, with the limits of the sources."""

    def __init__(self, folder, sample_database):
        super().__init__(folder)
        repair_laps(self.rows, sample_database)
        sessions = in_austin(self.rows, "sessions")
        self.spans = {
            SESSIONS[row["session_name"]]: [
                datetime.fromisoformat(row[f"date_{name}"]) for name in ("start", "end")
            ]
            for row in sessions
        }
        begin, end = self.spans["fp1"][0] - DAY / 2, self.spans["race"][0] + 7 * DAY
        self.time = SimulatedTime(begin, end)
        self.asked_api, self.asked_f1db = (
            LimitedApi(self.time, self.at_once(answer)) for answer in (self.api, self.f1db)
        )
        openf1 = OpenF1Server(self.rows, self.is_live, self.is_over)
        self.asked_openf1 = LimitedApi(self.time, self.at_once(openf1.answer), LIMITS, TOO_MANY)

    def at_once(self, answer):
        """What a source answers at the simulated time."""

        def answered(path):
            self.now = self.time.now
            return answer(path)

        return answered

    def is_live(self):
        return any(start - HALF <= self.now < end + HALF for start, end in self.spans.values())


@pytest.mark.long(30)
def test_a_weekend_of_three_sources_is_known_within_half_an_hour_and_ends_with_the_preferred(
    sample_database, tmp_path
):
    austin, seen = Austin(tmp_path, sample_database), {kind: [] for kind in GIVEN}
    database, complete = shutil.copy(tmp_path / "9.db", tmp_path / "x.db"), tmp_path / "18.db"

    def note(line):
        """Notes from which sources a client sees the records, and since when."""
        sql = """SELECT kind, sources.name FROM origins JOIN sources USING (sourceId)
                 JOIN races USING (raceId) WHERE year = 2023 AND round = 18"""
        for kind, name in select(database, sql):
            if kind in seen and [each for each, _ in seen[kind]][-1:] != [name]:
                seen[kind].append((name, austin.time.now))

    with (
        served(austin.asked_api.answer) as api,
        released(austin.asked_f1db.answer) as f1db,
        served(austin.asked_openf1.answer) as openf1,
    ):
        addresses = api.url, f"{f1db.url}/f1db-csv.zip", f"openf1:{openf1.url}"
        complaints = follow_source(database, austin.time, *addresses, note=note)
    order = [api.url, "f1db", "openf1"]
    for kind, steps in seen.items():
        names = [name for name, _ in steps]
        assert names[0] == "openf1", kind
        # Nothing goes back to a less preferred source.
        assert sorted(names, key=order.index, reverse=True) == names, (kind, names)
        end = austin.spans[KINDS[kind].sessions[0]][1]
        assert steps[0][1] <= end + HALF + HALF, kind  # free half an hour after the session
    assert provisional(database) == {}
    for kind, columns in COMPARED.items():
        assert facts(database, kind, columns, 18) == facts(complete, kind, columns, 18)
    # One line for each series of refusals, at most one per session.
    assert all("status 401" in line for line in complaints)
    assert len(complaints) <= len(austin.spans)
    assert len(austin.asked_openf1.answered) < 60
    assert len(austin.asked_api.answered) <= 300
