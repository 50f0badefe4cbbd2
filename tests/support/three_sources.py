"""The season 2023 of the sample, as an API, f1db and OpenF1 publish it: a calendar, two weekends.

OpenF1 publishes a session soon after its end, the API its results hours later and its laps the next
day, f1db a release in between, which is before the API's results of the second weekend. The API's
first results of a race have an error, which it corrects after three days. In May, a race is
cancelled, which renumbers the later ones. Two years later, f1db has another season.
"""

import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from support.apis import Answer, refreshed, served
from support.loads import Row, built, csv_rows, edited, finished_sample, run_loader, without
from support.openf1 import Json, OpenF1Server, excerpt
from support.refreshes import F1DB, like_jolpica, with_a_penalty
from support.releases import file_of_release, released, zip_of

WEEKENDS = {9: "1088", 18: "1097"}  # the rounds with results, and f1db's ids of their races
LAST = 22  # the round with the final standings, without results
OF_2025 = ("1145,", "1147,")  # two races in f1db
SESSIONS = {"quali": "quali_", "sprint": "sprint_", "race": ""}  # columns begin so
BEGIN = datetime(2023, 1, 15, tzinfo=UTC)
CANCELLED = datetime(2023, 5, 17, tzinfo=UTC)
LATER = datetime(2025, 12, 1, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)

# How long after which session's start the API publishes what. What is not here is as the results.
API_AFTER = {
    "qualifying": ("quali", 3 * HOUR),
    "sprint": ("sprint", 3 * HOUR),
    "results": ("race", 5 * HOUR),
    "laps": ("race", 30 * HOUR),
}
LATE = {18: 5 * HOUR}  # how much later the API publishes all of a weekend
F1DB_AFTER, CORRECTED_AFTER = 7 * HOUR, 3 * DAY

Times = Mapping[str, datetime]


class ThreeSources:
    """What they answer at the time `now`.

    `api` and `openf1` are the `answer` of a Server, `f1db` that of a Release.
    """

    def __init__(self, folder: Path) -> None:
        self.now = BEGIN
        whole = finished_sample(folder / "whole")
        self.weekends = {
            int(row["round"]): starts_in(row)
            for row in csv_rows(whole, "races")
            if row["year"] == "2023" and int(row["round"]) in WEEKENDS
        }
        before = without(whole, folder / "before", 2023, *WEEKENDS, LAST)
        self.announced = with_imola(before, folder / "announced")
        # what the API answers, and since when, by the names in API_AFTER
        self.versions = [
            (at_once(BEGIN), self.answer_of(self.announced)),
            (at_once(CANCELLED), self.answer_of(before)),
        ]
        of_f1db = shutil.copytree(F1DB, folder / "f1db")
        for path in of_f1db.glob("f1db-races*.csv"):
            lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
            kept = "".join(line for line in lines if not line.startswith(OF_2025))
            path.write_text(kept, encoding="utf-8")
        self.releases = [(BEGIN, zip_of(of_f1db, without=WEEKENDS.values()))]
        for round, starts in self.weekends.items():
            later = [each for each in WEEKENDS if each > round]
            after = without(whole, folder / f"{round}", 2023, *later, LAST)
            wrong = with_a_penalty(after, folder / f"{round}-wrong", round)
            self.versions += [
                (published(starts, LATE.get(round, timedelta())), like_jolpica(wrong)),
                (at_once(starts["race"] + CORRECTED_AFTER), self.answer_of(after)),
            ]
            release = zip_of(of_f1db, without=[WEEKENDS[each] for each in later])
            self.releases.append((starts["race"] + F1DB_AFTER, release))
        self.releases.append((LATER, zip_of(F1DB)))
        self.rows = excerpt()
        self.ends = {
            row["session_key"]: datetime.fromisoformat(row["date_end"])
            for row in self.rows["sessions"]
        }

    def answer_of(self, dump: Path) -> Callable[[str], Answer]:
        return like_jolpica(built(dump, dump.with_suffix(".db")))

    def api(self, path: str) -> Answer:
        name = next((name for name in API_AFTER if f"/{name}." in path), "results")
        return [answer for times, answer in self.versions if times[name] <= self.now][-1](path)

    def f1db(self, file: str) -> Answer:
        return file_of_release([zip for time, zip in self.releases if time <= self.now][-1], file)

    def openf1(self, path: str) -> Answer:
        return OpenF1Server(self.rows, is_published=self.is_over).answer(path)

    def is_over(self, endpoint: str, row: Json) -> bool:
        return endpoint == "sessions" or self.ends[row["session_key"]] <= self.now

    def moments(self) -> Iterator[tuple[str, datetime]]:
        """When the sources are asked."""
        yield "announced", BEGIN + DAY
        yield "without-a-race", CANCELLED + 6 * HOUR
        yield "renumbered", CANCELLED + DAY
        for round, starts in self.weekends.items():
            yield f"{round}-qualifying", starts["quali"] + 2 * HOUR
            yield f"{round}-sprint", starts["sprint"] + 4 * HOUR
            for hours in (3, 6, 8, 31, 96):
                yield f"{round}-race-{hours}h", starts["race"] + hours * HOUR
        yield "two-years-later", LATER


def season_of_three(folder: Path) -> Iterator[tuple[str, Path]]:
    """A database, as it is after refreshes at some moments of the season, with their names."""
    database = folder / "racedata.db"
    sources = ThreeSources(folder)
    run_loader(sources.announced, database).check_returncode()
    with (
        served(sources.api) as api,
        released(sources.f1db) as f1db,
        served(sources.openf1) as openf1,
    ):
        addresses = (api.url, f"{f1db.url}/f1db-csv.zip", f"openf1:{openf1.url}")
        for name, time in sources.moments():
            sources.now = time
            refreshed(database, *addresses, now=time.timestamp())
            yield name, database


def starts_in(row: Row) -> Times:
    """When the sessions of a race start, in a dump."""
    return {
        session: datetime.fromisoformat(f"{row[f'{prefix}date']}T{row[f'{prefix}time']}Z")
        for session, prefix in SESSIONS.items()
    }


def published(starts: Times, late: timedelta) -> Times:
    """When the API publishes what, by the names in API_AFTER."""
    return {name: starts[session] + after + late for name, (session, after) in API_AFTER.items()}


def at_once(time: datetime) -> Times:
    return dict.fromkeys(API_AFTER, time)


def with_imola(dump: Path, folder: Path) -> Path:
    """A copy of a dump with the race in Imola, which was cancelled in May 2023."""

    def renumbered(row: Row) -> Row:
        is_later = row["year"] == "2023" and int(row["round"]) >= 6
        return row | {"round": str(int(row["round"]) + 1)} if is_later else row

    edited(dump, folder, races=renumbered)
    unknown = r",\N" * 10  # when its other sessions start
    with (folder / "races.csv").open("a", encoding="utf-8") as file:
        url = "https://en.wikipedia.org/wiki/2023_Emilia_Romagna_Grand_Prix"
        file.write(f"999,2023,6,11,Emilia Romagna Grand Prix,2023-05-21,13:00:00,{url}{unknown}\n")
    return folder
