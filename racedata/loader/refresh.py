"""Brings the database up to date from an API in Ergast's format: `racedata refresh`.

It fetches the calendar of the latest season, and the races that are new, have changed, or are among the last three run:
penalties change them later. What it fetches goes into the overlay (overlay.py) and into a new database, which is
built from the old one's own tables and replaces it. If nothing has changed, the old database stays.

What to fetch is decided here.
"""

import argparse
import re
import urllib.parse
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import zip_longest
from pathlib import Path

from racedata.database import is_older
from racedata.loader import overlay, values
from racedata.loader.api import JOLPICA, Api
from racedata.loader.api_rows import Json, rows_of
from racedata.loader.build import build, load_or_rebuild
from racedata.loader.corrections import add_corrections_argument
from racedata.loader.errors import LoadError, Progress
from racedata.loader.overlay import CalendarRace, Season
from racedata.loader.replacement import add_database_argument, replacement, run
from racedata.loader.sources import JOLPICA_LICENCE, earlier
from racedata.loader.tables import RACE_TABLES, TABLES, Table
from racedata.loader.values import Value

LICENCES = {"api.jolpi.ca": JOLPICA_LICENCE}  # of the data, by host

LAST_RUN = 3  # races that are fetched again each time
NEW_RECORDS = 30  # more than a race adds to a list of its season


class NothingNew(Exception):
    """The new database would have the same rows as the old one."""


class OldDatabase:
    """The database that is refreshed, read only. Raises LoadError if it is damaged."""

    def __init__(self, path: Path) -> None:
        self.db = earlier.open_checked(path)

    def close(self) -> None:
        self.db.close()

    def newest(self) -> str:
        """The date of the latest race with results."""
        (found,) = self.db.execute("SELECT max(date) FROM results JOIN races USING (raceId)").fetchone()
        return found or ""

    def waits_for(self, season: str) -> bool:
        """Whether it has results of races of this season, but not of all, and none of a later season."""
        later, races, run = self.db.execute(
            """SELECT count(*) FILTER (WHERE year > ?1 AND run), count(*) FILTER (WHERE year = ?1),
                   count(*) FILTER (WHERE year = ?1 AND run)
               FROM (SELECT year, raceId IN (SELECT raceId FROM results) AS run FROM races)""",
            (int(season),),
        ).fetchone()
        return not later and 0 < run < races

    def calendar(self, season: str) -> list[CalendarRace]:
        return overlay.stored_calendar(self.db, "main", season)

    def races_with_results(self, season: str) -> list[tuple[int, int, str]]:
        """The `(raceId, round, name)` of races of a season, by round."""
        return self.db.execute(
            """SELECT raceId, round, name FROM races
               WHERE year = ? AND raceId IN (SELECT raceId FROM results) ORDER BY round""",
            (season,),
        ).fetchall()

    def count(self, table: Table, race_id: int | None) -> int:
        """How many rows of a table a race has."""
        (rows,) = self.db.execute(f"SELECT count(*) FROM {table.name} WHERE raceId = ?", (race_id,)).fetchone()
        return int(rows)

    def rows(self, table: Table, race_id: int | None) -> list[dict[str, Value]]:
        """The rows of a race in a classification, as api_rows.py makes them: references and texts instead of ids."""
        names = list(table.paths)
        texts = {"driverId": "driverRef", "constructorId": "constructorRef", "statusId": "status"}
        found = self.db.execute(
            f"""SELECT {", ".join(texts.get(name) or f"classified.{name}" for name in names)}
                FROM {table.name} AS classified
                JOIN drivers USING (driverId) JOIN constructors USING (constructorId)
                {"LEFT JOIN status USING (statusId)" * ("statusId" in names)} WHERE raceId = ?""",
            (race_id,),
        )
        return [dict(zip(names, row)) for row in found]

    def statuses(self) -> set[Value]:
        return {text for (text,) in self.db.execute("SELECT status FROM status")}

    def differences(self, path: Path) -> list[str]:
        """A line for each table that has other rows in the database at `path`."""
        lines = []
        with closing(earlier.open_read_only(path)) as new:
            for table in TABLES:
                before, now = (db.execute(f"SELECT count(*) FROM {table.name}").fetchone()[0] for db in (self.db, new))
                rows = zip_longest(*(db.execute(f"SELECT * FROM {table.name}") for db in (self.db, new)))
                changed = sum(old != other for old, other in rows)
                if now != before:
                    lines.append(f"{table.name:<22}{now:>12,} rows ({now - before:+,})")
                elif changed:
                    lines.append(f"{table.name:<22}{now:>12,} rows, {changed:,} changed")
        return lines


@dataclass(eq=False)
class FetchedRace:
    """A race of a calendar that was fetched, and what was fetched of it."""

    facts: Json
    id: int | None  # the raceId in the old database; None if the race is new
    records: dict[str, list[Json]] = field(default_factory=dict)  # by endpoint

    @property
    def name(self) -> str:
        return str(self.facts["raceName"])

    @property
    def round(self) -> str:
        return str(self.facts["round"])


class SeasonFetch:
    """Fetches a season: `whole`, or only what is new."""

    def __init__(self, api: Api, old: OldDatabase, facts: Json, calendar: Sequence[Json], whole: bool) -> None:
        self.api, self.old, self.facts, self.whole = api, old, facts, whole
        self.year = str(facts["season"])
        ids = overlay.match_races(overlay.fetched_calendar(calendar), old.calendar(self.year))
        self.races = [FetchedRace(race, ids.get(race["raceName"])) for race in calendar]
        self.by_name = {race.name: race for race in self.races}
        self.completed: list[FetchedRace] = []  # races that have results
        self.chosen: list[FetchedRace] = []  # races whose records are taken

    def fetch(self) -> None:
        """Fetches the lists of the season, then the other records of the races that are chosen."""
        if not self.whole:
            self.check_calendar()
        start = 0 if self.whole else self.first_race()
        first = self.fetch_list("results", start)
        self.fetch_list("qualifying", start)
        if any("Sprint" in race.facts for race in self.races[start:]):
            self.fetch_list("sprint", start)
        self.completed = [
            race
            for index, race in enumerate(self.races)
            if "results" in race.records or (index < first and self.old.count(RACE_TABLES["results"], race.id))
        ]
        latest = self.completed[-LAST_RUN:]
        self.chosen = [
            race for race in self.races if race.records and (self.whole or race in latest or self.changed(race))
        ]
        for race in self.chosen:
            if "results" in race.records:
                self.fetch_details(race)

    def check_calendar(self) -> None:
        """Raises LoadError if the calendar lacks a race that has results here. Such a race was not cancelled."""
        ids = {race.id for race in self.races}
        for race_id, round, name in self.old.races_with_results(self.year):
            if race_id not in ids:
                what = f"no {self.year}/{round} {name}, which has results here; expected an API that is not behind"
                raise LoadError(f"{self.api.address(f'{self.year}/races')}: {what}")

    def first_race(self) -> int:
        """The index of the first race to fetch: the third-last with results here or, if earlier, the first without."""
        completed = [bool(self.old.count(RACE_TABLES["results"], race.id)) for race in self.races]
        indexes = [index for index, has_results in enumerate(completed) if has_results]
        return min([*indexes[-LAST_RUN:], *(index for index, has in enumerate(completed) if not has)], default=0)

    def fetch_list(self, endpoint: str, start: int) -> int:
        """Fetches records from race `start` on; or all, if they fit on a page. Returns the index of the first race."""
        path = f"{self.year}/{endpoint}"
        stored = [self.old.count(RACE_TABLES[endpoint], race.id) for race in self.races]
        # Begin one record before race `start`: if it belongs to an earlier race, no record of `start` is missed.
        offset = max(0, sum(stored[:start]) - 1)
        if sum(stored) + NEW_RECORDS <= self.api.limit:
            offset = 0
        records = self.api.records(path, offset)
        if offset and not (records and self.race(records[0][0], path) in self.races[:start]):
            offset, records = 0, self.api.records(path)
        first = start if offset else 0
        for facts, record in records:
            race = self.race(facts, path)
            if race in self.races[first:]:
                race.records.setdefault(endpoint, []).append(record)
        return first

    def race(self, facts: Json, path: str) -> FetchedRace:
        """The race that an answer is about. Raises LoadError if the calendar does not have it."""
        race = self.by_name.get(str(facts.get("raceName")))
        if not race or facts.get("round") != race.round:
            what = f"{facts.get('raceName')!r} in round {facts.get('round')!r}; the calendar does not have that race"
            raise LoadError(f"{self.api.address(path)}: {what}")
        return race

    def changed(self, race: FetchedRace) -> bool:
        """Whether the records of a race differ from those stored."""
        return any(
            Counter(tuple(row.values()) for row in self.rows(race, endpoint))
            != Counter(tuple(row.values()) for row in self.old.rows(RACE_TABLES[endpoint], race.id))
            for endpoint in race.records
        )

    def rows(self, race: FetchedRace, endpoint: str) -> list[dict[str, Value]]:
        """The fetched records of a race as rows, like OldDatabase.rows."""
        place = f"{self.api.url}, {self.year}, {race.name}"
        return list(rows_of(race.records[endpoint], RACE_TABLES[endpoint], place))

    def fetch_details(self, race: FetchedRace) -> None:
        """Fetches what no list of the season has: pit stops, standings, laps."""
        for endpoint in (table.endpoint for table in RACE_TABLES.values()):
            if not endpoint or endpoint.of_season or (endpoint.name == "laps" and not self.needs_laps(race)):
                continue
            path = f"{self.year}/{race.round}/{endpoint.name}"
            found = self.api.records(path)
            for parent, *_ in found:
                if parent.get("round") != race.round:
                    what = f"round {parent.get('round')!r}; expected that of the address"
                    raise LoadError(f"{self.api.address(path)}: {what}")
            if endpoint.name == "laps":
                records = [{"lap": lap.get("number"), **timing} for _, lap, timing in found]
            else:
                records = [record for _, record in found]
            if records:  # an API without laps of a race does not delete those here
                race.records[endpoint.name] = records

    def needs_laps(self, race: FetchedRace) -> bool:
        """Whether to fetch laps, which take many requests: if few are stored, or a driver drove another number."""
        stored = self.old.count(RACE_TABLES["laps"], race.id)
        # Penalties change times and positions, not laps.
        here, there = (
            Counter((row["driverId"], row["laps"]) for row in rows)
            for rows in (self.old.rows(RACE_TABLES["results"], race.id), self.rows(race, "results"))
        )
        return self.whole or stored <= self.api.limit or here != there

    def to_season(self) -> Season:
        """What was fetched, for the overlay."""
        now = datetime.fromtimestamp(self.api.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        # If the clock is wrong: not before any race that has results.
        dates = [*(str(race.facts.get("date")).strip(" ") for race in self.completed), self.old.newest()]
        fetched_at = max([now, *(f"{date}T00:00:00Z" for date in dates)])
        host = urllib.parse.urlsplit(self.api.url).hostname or ""
        return Season(
            facts=self.facts,
            source=self.api.url,
            licence=LICENCES.get(host, f"not stated by {host}"),
            fetched_at=fetched_at,
            calendar=[race.facts for race in self.races],
            statuses=self.fetch_statuses(),
            races={
                race.name: {
                    endpoint: {"fetched_at": fetched_at, "records": records}
                    for endpoint, records in race.records.items()
                }
                for race in self.chosen
            },
        )

    def fetch_statuses(self) -> dict[str, str]:
        """The ids of statuses that are new here, by text."""
        used = {
            row["statusId"]
            for race in self.chosen
            for endpoint in ("results", "sprint")
            if endpoint in race.records
            for row in self.rows(race, endpoint)
        }
        new = used - self.old.statuses() - {None}
        if not new:
            return {}
        found = [status for (status,) in self.api.records(f"{self.year}/status")]
        ids = {str(status.get("status")).replace("_", " "): str(status.get("statusId")) for status in found}
        return {text: id for text, id in ids.items() if text in new}

    def report(self) -> str:
        rounds = [race.round for race in self.chosen]
        return f"{self.year}: fetched the calendar ({len(self.races)} races) and {overlay.rounds_text(rounds)}"


def fetch_calendar(api: Api, year: str) -> list[Json]:
    """The races of a season, by round. Raises LoadError if two have the same name or round."""
    path = f"{year}/races"
    races = [race for (race,) in api.records(path)]
    place = api.address(path)
    for race in races:
        name, round = race.get("raceName"), race.get("round")
        if race.get("season") != year:
            raise LoadError(f"{place}: a race of season {race.get('season')!r}; expected {year!r}")
        if not (isinstance(name, str) and isinstance(round, str) and re.fullmatch("[1-9][0-9]?", round, re.ASCII)):
            raise LoadError(f"{place}: a race named {name!r} in round {round!r}; expected texts such as '18'")
    for key in ("raceName", "round"):
        if len({race[key] for race in races}) < len(races):
            raise LoadError(f"{place}: two races have the same {key}; expected no two")
    return sorted(races, key=lambda race: int(race["round"]))


def fetch(api: Api, old: OldDatabase, season: str | None) -> list[SeasonFetch]:
    """Fetches `season` whole; or what is new in the latest one, and in the one before if that may have news too."""
    seasons = {str(found.get("season")): found for (found,) in api.records("seasons")}
    if not seasons or not all(map(values.year.fullmatch, seasons)):
        what = f"seasons {', '.join(seasons)[:80]!r}; expected years from 1950"
        raise LoadError(f"{api.address('seasons')}: {what}")

    def fetched(year: str, whole: bool = False) -> SeasonFetch | None:
        calendar = fetch_calendar(api, year)
        if not calendar:
            return None
        season_fetch = SeasonFetch(api, old, seasons[year], calendar, whole)
        season_fetch.fetch()
        return season_fetch

    if season:
        if season not in seasons:
            what = f"no season {season}; it has {min(seasons)} to {max(seasons)}"
            raise LoadError(f"{api.address('seasons')}: {what}")
        found = fetched(season, whole=True)
        if not found:
            raise LoadError(f"{api.address(f'{season}/races')}: no races; expected the calendar of {season}")
        return [found]
    # In winter, an API may list the next season before its calendar is known.
    latest = next(filter(None, map(fetched, sorted(seasons, reverse=True))), None)
    if not latest:
        raise LoadError(f"{api.url}: no races in any season; expected the calendar of at least one")
    before = str(int(latest.year) - 1)
    if before in seasons and (not latest.completed or old.waits_for(before)):
        return [*filter(None, [fetched(before)]), latest]
    return [latest]


def merge(old: Season | None, new: Season) -> Season:
    """What the overlay has of a season, and what was fetched now. Races that the new calendar lacks are dropped."""
    if old is None:
        return new
    names = overlay.match_races(overlay.fetched_calendar(new.calendar), overlay.fetched_calendar(old.calendar))
    races = {
        race["raceName"]: {**old.races.get(names.get(race["raceName"], ""), {}), **new.races.get(race["raceName"], {})}
        for race in new.calendar
    }
    races = {name: fetched for name, fetched in races.items() if fetched}
    licence = overlay.joined(old.licence, [new.licence])
    return new._replace(licence=licence, statuses={**old.statuses, **new.statuses}, races=races)


def refresh(database: str, api: Api, season: str | None, corrections: Path | None, progress: Progress) -> list[str]:
    """Refreshes the database. Returns lines for a report. Raises LoadError, sqlite3.Error or OSError."""
    path, folder = Path(database), overlay.folder_beside(database)
    lines = []
    if is_older(path):
        # First its source, which may have tables that the earlier version of racedata did not load.
        lines.append(load_or_rebuild(database, corrections, progress)[-1])
    with suppress(NothingNew), replacement(database) as new:
        with closing(OldDatabase(path)) as old:
            seasons = {stored.year: stored for stored in overlay.read_seasons(folder)}
            fetches = fetch(api, old, season)
            for fetched in fetches:
                seasons[fetched.year] = merge(seasons.get(fetched.year), fetched.to_season())
                lines.append(fetched.report())
            in_order = [seasons[year] for year in sorted(seasons)]
            build(new, lambda stage: earlier.read(old.db, stage), corrections, in_order, progress)
            changes = old.differences(new)
        lines += [
            *changes,
            f"{database}: {'new data' if changes else 'nothing new'} after {api.requests} requests to {api.url}",
        ]
        if not changes:
            raise NothingNew  # `replacement` then removes the new file, and the old one stays
        overlay.write_seasons(folder, [seasons[fetched.year] for fetched in fetches])
    return lines


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="racedata refresh", description="Bring the database up to date from an API in Ergast's format."
    )
    parser.add_argument("--from", dest="url", default="", help=f"base address of the API (default: {JOLPICA})")
    parser.add_argument(
        "--season",
        default="",
        metavar="YEAR",
        help="fetch this season whole; otherwise, what is new in the latest season",
    )
    add_database_argument(parser)
    add_corrections_argument(parser)
    parsed = parser.parse_args(arguments)

    def work(progress: Progress) -> list[str]:
        api = Api(parsed.url or JOLPICA, progress)
        return refresh(parsed.database, api, parsed.season, parsed.corrections, progress)

    run("refresh", parsed.database, work)
