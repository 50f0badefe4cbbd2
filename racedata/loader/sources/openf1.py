"""OpenF1 as a source: the records of a session within the hour, until another source has them.

It decides when to ask, and what for. openf1_rows.py knows the meaning of the rows.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

from racedata.formats import counted, timestamp
from racedata.loader.delivery import Delivery
from racedata.loader.errors import LoadError, NotYet, Progress
from racedata.loader.existing import LAST_SEASON
from racedata.loader.http import WrongStatus
from racedata.loader.schedule import Expected
from racedata.loader.sources.api_client import answer_of, digest_of, parsed_json
from racedata.loader.sources.history import History
from racedata.loader.sources.openf1_rows import (
    CIRCUITS,
    CONSTRUCTORS,
    Entrants,
    OpenF1Row,
    Undecided,
    WrongValue,
)
from racedata.loader.sources.openf1_weekend import SESSION_NAMES, WantedRace, Weekend
from racedata.loader.sources.own_calendar import RowsByTable, with_our_calendar
from racedata.loader.sources.pace import Pace
from racedata.loader.sources.source import Source, Task
from racedata.loader.stage import Stage
from racedata.loader.store import StoredSource

NAME = "openf1"
LICENCE = "not stated by OpenF1"
OPENF1_URL = "https://api.openf1.org/v1"
LIMITS = ((3, 1), (30, 60))  # requests, and in how many seconds

CLASSIFIED = ("practice", "qualifying", "sprint_qualifying", "sprint_results", "results")
# How long a race is fetched again: OpenF1 repairs laps and stops late. Then, once in such a time.
REPAIRED = timedelta(days=31)
WEEKEND = timedelta(days=4)
SESSIONS_HOLD = timedelta(hours=12)  # how long a season's list of sessions is used

FIRST = 2023  # the first season that OpenF1 has


class OpenF1(Source):
    """The API of OpenF1, or a copy of it: `openf1:` and its address."""

    licence = LICENCE

    kinds = (*CLASSIFIED, "pit_stops", "lap_times")
    publishes_after_race = False
    is_provisional = True
    after_end = timedelta(minutes=15)

    @classmethod
    def accepts(cls, address: str) -> bool:
        return address.partition(":")[0] == NAME

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address.partition(":")[2].rstrip("/") or OPENF1_URL, pace)
        self.name = NAME
        pace.limits = LIMITS
        # The sessions by season, and when they were fetched.
        self.meetings: dict[int, tuple[float, list[OpenF1Row]]] = {}
        # The digests of the rows that refreshes have found, by query.
        self.seen: dict[str, str] = {}

    def read(self, stage: Stage) -> None:
        what = "has no calendar and no history; use it with: racedata refresh --from openf1"
        raise LoadError(f"{NAME}: {what}")

    # Requests.

    def rows(self, progress: Progress, query: str) -> list[OpenF1Row]:
        """The rows of an answer; none if OpenF1 has nothing yet."""
        url = f"{self.address}/{query}"
        progress(f"{query}: {counted(self.pace.requests, 'request')}")
        try:
            body = answer_of(url, progress, self.pace)
        except WrongStatus as error:
            if error.status == 401:
                raise NotYet(
                    f"{url}: status 401: OpenF1 refuses requests during a Formula One session; "
                    "try again later"
                ) from None
            if error.status != 404:
                raise
            if error.type == "application/json":
                return []
            hint = f"; is it openf1:URL with the base address, such as {OPENF1_URL}?"
            raise LoadError(f"{error}{hint}") from None
        try:
            objects = parsed_json(body)
        except ValueError as error:
            raise LoadError(f"{url}: {error}") from None
        if not (isinstance(objects, list) and all(isinstance(row, dict) for row in objects)):
            raise LoadError(f"{url}: {body[:40]!r}; expected a list of objects")
        return [OpenF1Row(row, self.address, query) for row in objects]

    def sessions_of(self, progress: Progress, year: int) -> list[OpenF1Row]:
        """The sessions of a season, asked for twice a day."""
        since, rows = self.meetings.get(year, (0.0, []))
        if not rows or not 0 <= self.pace.clock() - since <= SESSIONS_HOLD.total_seconds():
            query = f"sessions?year={year}"
            rows = self.rows(progress, query)
            if any(row.number("year") != year for row in rows):
                raise LoadError(
                    f"{self.address}/{query}: a session of another season; expected {year}"
                )
            self.meetings[year] = self.pace.clock(), rows
        return rows

    # Checks.

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        races = {(race.year, race.round): race for race in self.races_to_ask(history)}
        # first missing results, then missing laps and stops, then changed results; the latest first
        newest = sorted(expected, key=lambda records: records.starts, reverse=True)
        order = sorted(
            newest, key=lambda records: (records.is_stored, records.kind not in CLASSIFIED)
        )
        for question in order:
            race = races.get((question.year, question.round))
            if not race:
                continue
            if race.year not in self.meetings:
                return True
            try:
                weekend = self.weekend(progress, race)
            except Undecided:
                continue
            session = weekend.get(question.session)
            if not session:
                continue
            query = f"session_result?meeting_key={session['meeting_key']}"
            if question.kind not in CLASSIFIED:
                endpoint = "laps" if question.kind == "lap_times" else "pit"
                query = f"{endpoint}?session_key={session['session_key']}"
                if query in self.seen:
                    continue
            rows = self.rows(progress, query)
            return bool(rows) and digest_of(rows) != self.seen.get(query)
        return False

    # Races and sessions.

    def is_long_ago(self, day: object) -> bool:
        """Whether a race that was last asked for on this day is asked for again in any case."""
        return not isinstance(day, str) or day <= f"{self.pace.time() - REPAIRED:%Y-%m-%d}"

    def races_to_ask(self, history: History, task: Task | None = None) -> list[WantedRace]:
        """The races of which OpenF1 may have a wanted kind. A kind is wanted as long as no other
        source has given it.
        """
        season = task.season if task else None
        last_asked = history.notes.get("asked", {})
        races = []
        with history.database() as old:
            unfinished = old.first_season([])
            if task:
                unfinished = min(unfinished, task.first)
            first = season or max(FIRST, unfinished)
            for id, year, round, name, circuit, date in old.db.execute(
                """SELECT raceId, year, round, races.name, circuitRef, date
                   FROM races JOIN circuits USING (circuitId) WHERE year BETWEEN ? AND ?
                   ORDER BY year, round""",
                (first, season or LAST_SEASON),
            ).fetchall():
                day = datetime.fromisoformat(f"{date}T00:00:00+00:00")
                age = self.pace.time() - day
                is_due = season or age < REPAIRED or self.is_long_ago(last_asked.get(date))
                if age < -WEEKEND or not is_due:
                    continue
                origins = old.db.execute(
                    """SELECT kind, name FROM origins JOIN sources USING (sourceId)
                       WHERE raceId = ?""",
                    (id,),
                )
                sources = dict(origins.fetchall())
                kinds = [
                    kind
                    for kind in (*self.kinds, "fastest_laps")
                    if sources.get(kind, NAME) == NAME
                ]
                if kinds:
                    races.append(WantedRace(year, round, name, circuit, day, kinds))
        return races

    def weekend(self, progress: Progress, race: WantedRace) -> dict[str, OpenF1Row]:
        """The sessions of a race by name. Raises Undecided unless OpenF1 has one such race."""
        rows = self.sessions_of(progress, race.year)
        meetings = []
        for row in rows:
            starts = row.moment("date_start")
            if (
                row.get("session_name") == "Race"
                and not row.get("is_cancelled")
                and CIRCUITS.get(row.number("circuit_key")) == race.circuit
                and starts
                and abs(starts.date() - race.date.date()) <= timedelta(days=1)
            ):
                meetings.append(row.number("meeting_key"))
        if len(meetings) != 1:
            what = "no race" if not meetings else f"{len(meetings)} races"
            raise Undecided(f"OpenF1 has {what} at {race.circuit} on {race.date:%Y-%m-%d}")
        return {
            SESSION_NAMES[name]: row
            for row in rows
            if row.get("meeting_key") == meetings[0]
            and (name := str(row.get("session_name"))) in SESSION_NAMES
            and not row.get("is_cancelled")
            and row.number("session_key")
        }

    # Refreshes.

    def bring(self, task: Task) -> str:
        before = self.pace.requests
        races = self.races_to_ask(task.history, task)
        years = sorted({race.year for race in races})
        # the day when each race was asked for last, by the date of the race
        last_asked = dict(task.history.notes.get("asked", {}))
        faults: list[str] = []
        for year in years:
            of_year = [race for race in races if race.year == year]
            faults += self.bring_season(task, year, of_year, last_asked)
        if faults:
            raise LoadError("; ".join(dict.fromkeys(faults)))
        return f" after {counted(self.pace.requests - before, 'request')} to {self.address}"

    def bring_season(
        self, task: Task, year: int, races: Sequence[WantedRace], last_asked: dict[str, str]
    ) -> list[str]:
        """Stores the records of these races, and adds to `last_asked`. Returns what went wrong."""
        fetched: list[tuple[WantedRace, RowsByTable]] = []
        remarks: list[str] = []
        faults: list[str] = []
        asked_so_far = dict(last_asked)
        has_failed = False  # the race before
        with task.history.database() as old:
            entrants = Entrants(old.db, year)
        try:
            for race in races:
                try:
                    rows = self.of_race(task.progress, race, entrants, remarks)
                except NotYet:
                    raise
                except LoadError as error:
                    faults.append(str(error))
                    if has_failed:  # two failures in a row: the cause is not a single race
                        break
                    has_failed = True
                else:
                    has_failed = False
                    fetched.append((race, rows))
                    last_asked[f"{race.date:%Y-%m-%d}"] = f"{self.pace.time():%Y-%m-%d}"
        finally:
            # What was fetched is stored even if the next race fails.
            for remark in remarks:
                task.say(remark)
            if any(rows for _, rows in fetched) or last_asked != asked_so_far:
                self.deliver(task, year, fetched, last_asked)
        return faults

    def deliver(
        self,
        task: Task,
        year: int,
        fetched: list[tuple[WantedRace, RowsByTable]],
        last_asked: dict[str, str],
    ) -> None:
        with task.history.database() as old:
            of_rounds = [(race.round, rows) for race, rows in fetched]
            calendar, parts, lists = with_our_calendar(
                old, year, of_rounds, {"circuit": CIRCUITS, "constructor": CONSTRUCTORS}
            )
        at = timestamp(self.pace.time())
        source = StoredSource(
            name=NAME,
            address=self.address,
            licence=LICENCE,
            checksum=None,
            read_at=at,
            is_provisional=True,
        )
        # An old day says no more than none.
        recent = {key: day for key, day in last_asked.items() if not self.is_long_ago(day)}
        of_parts = [(part, at) for part in parts]
        task.deliver(Delivery(source, [calendar], of_parts, lists, {"asked": recent}))

    def of_race(
        self, progress: Progress, race: WantedRace, entrants: Entrants, remarks: list[str]
    ) -> RowsByTable:
        """The rows of a race, by table. Omitted records become remarks with the reason."""
        try:
            weekend = self.weekend(progress, race)
        except Undecided as why:
            if self.pace.time() > race.date + timedelta(days=1):
                remarks.append(f"{NAME}: {race.label} is left out: {why}")
            return {}
        meeting = int(next(iter(weekend.values()))["meeting_key"])
        results = self.rows_of(progress, meeting, "session_result", None)
        if not results:
            return {}
        rows_of = partial(self.rows_of, progress, meeting)
        work = Weekend(rows_of, race, weekend, results, entrants)
        rows = work.fetch()
        remarks += [f"{NAME}: {remark}" for remark in work.remarks]
        return rows

    def rows_of(
        self, progress: Progress, meeting: int, endpoint: str, session: int | None
    ) -> list[OpenF1Row]:
        """The rows of a meeting, or of one session of it."""
        query = f"{endpoint}?" + (f"session_key={session}" if session else f"meeting_key={meeting}")
        rows = self.rows(progress, query)
        for row in rows:
            key = row.number("session_key")
            if row.get("meeting_key") != meeting or (session and key != session):
                raise WrongValue(f"{self.address}/{query}: a row of another session; expected none")
        if rows:
            self.seen[query] = digest_of(rows)
        return rows
