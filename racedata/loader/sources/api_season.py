"""Fetches a season from an API in Ergast's format: its calendar, its lists, and the details of
races with new records.

It decides what to fetch, by what the database has.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from racedata.formats import Json, counted, plural, timestamp
from racedata.licences import SHARED_ALIKE
from racedata.loader.delivery import Delivery
from racedata.loader.errors import LoadError
from racedata.loader.http import host_of
from racedata.loader.matching import calendar_races, match_with_earlier
from racedata.loader.parts import Row
from racedata.loader.sources.api_client import Api, NotServed, digest_of
from racedata.loader.sources.api_rows import SeasonParts, row_of, rows_of
from racedata.loader.sources.history import OldDatabase
from racedata.loader.sql import calendar
from racedata.loader.store import StoredSource
from racedata.model import KIND_BY_ENDPOINT, KINDS, STANDINGS, TABLE_BY_NAME, Table
from racedata.values import Value

LICENCES = {"api.jolpi.ca": SHARED_ALIKE}  # the licence of the data, by host


def licence_of(url: str) -> str:
    host = host_of(url)
    return LICENCES.get(host, f"not stated by {host}")


LATE = 3  # how many of the latest races may still get laps


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
    """Fetches a season. Details of races are fetched for all, or only for new and changed ones."""

    def __init__(
        self,
        api: Api,
        old: OldDatabase,
        facts: Json,
        races: Sequence[Json],
        all_details: bool,
        notes: Mapping[str, Any],
    ) -> None:
        """`notes` are those of the last delivery."""
        self.api = api
        self.old = old
        self.facts = facts
        self.all_details = all_details
        # the digests of the lists that were fetched before, by race and endpoint
        self.seen: Mapping[str, str] = notes.get("seen", {})
        self.year = int(facts["season"])
        known = {name: old.references(name) for name in ("drivers", "constructors")}
        self.parts = SeasonParts(self.year, f"{api.url}, {self.year}", known)
        self.calendar = self.parts.calendar(races)
        fetched, stored = calendar_races(self.calendar.races), calendar(old.db, "main", self.year)
        ids = match_with_earlier(fetched, stored)
        self.races = [FetchedRace(race, ids.get(at)) for at, race in enumerate(races)]
        # Races with records that this API replaces: another source's, and provisional ones.
        self.provisional = old.provisional([kind for kind in KINDS if KINDS[kind].is_in_every_api])
        self.filled_in = {*old.without_laps(also_from_apis=False), *self.provisional}
        self.by_name = {race.name: race for race in self.races}
        self.completed: list[FetchedRace] = []  # races that have results
        self.chosen: list[FetchedRace] = []  # races whose records are stored
        # races whose places, points or drivers are not the stored ones
        self.reclassified: list[FetchedRace] = []
        # The endpoints that the API lacks. A season that is fetched whole asks again: the API may
        # have learned one.
        self.not_served = set[str]() if all_details else {*notes.get("notServed", [])}

    def fetch(self) -> None:
        """Fetches the lists of the season, then the other records of the races that are chosen."""
        for kind in KINDS.values():
            # An API without sprints in this season need not be asked for them.
            is_possible = kind.has_every_race or any("Sprint" in race.facts for race in self.races)
            if kind.is_fetched_by_season and is_possible:
                self.fetch_list(kind.endpoint)
        self.digests = {
            f"{self.year}/{race.round}/{endpoint}": digest_of(records)
            for race in self.races
            for endpoint, records in race.records.items()
        }
        results = KIND_BY_ENDPOINT["results"]
        self.completed = [
            race
            for race in self.races
            if "results" in race.records or self.old.count(results, race.id)
        ]
        self.chosen = self.choose()
        for race in self.chosen:
            if "results" in race.records:
                self.fetch_details(race)

    def choose(self) -> list[FetchedRace]:
        """The races whose records are stored, by what the lists have."""
        changed = [
            race
            for race in self.races
            if race.records and (self.all_details or self.has_news(race))
        ]
        self.reclassified = [race for race in changed if self.is_reclassified(race)]
        # What changes the standings after a race changes them after each later one too. Laps may
        # come a race later.
        reclassified = [
            index for index, race in enumerate(self.completed) if race in self.reclassified
        ]
        first = min(reclassified, default=len(self.completed) - 1)
        without_laps = {*self.old.without_laps(also_from_apis=True)}
        late = [
            race for race in self.completed[-LATE:] if race.id in without_laps | self.provisional
        ]
        again = [*self.completed[first:], *late]
        return [race for race in self.races if race in changed or (race in again and race.records)]

    def fetch_list(self, endpoint: str) -> None:
        """Fetches the records of all races."""
        path = f"{self.year}/{endpoint}"
        for facts, record in self.api.records(path):
            race = self.by_name.get(str(facts.get("raceName")))
            if not race or facts.get("round") != race.round:
                what = f"{shown(facts.get('raceName'))} in round {shown(facts.get('round'))}"
                raise LoadError(
                    f"{self.api.address(path)}: {what}; expected a race of the calendar"
                )
            race.records.setdefault(endpoint, []).append(record)

    def has_news(self, race: FetchedRace) -> bool:
        """Whether the records of a race differ from the stored ones and from the last fetched ones.

        Records that were fetched before may differ from the stored ones because of corrections or
        another source.
        """
        return any(
            self.seen.get(f"{self.year}/{race.round}/{endpoint}") != digest_of(records)
            and (
                race.id in self.filled_in
                or is_changed(
                    self.rows(race, endpoint), self.old.rows(KIND_BY_ENDPOINT[endpoint], race.id)
                )
            )
            for endpoint, records in race.records.items()
        )

    def is_reclassified(self, race: FetchedRace) -> bool:
        """Whether places, points or drivers of a race differ from the stored ones.

        Other words for a status, or a corrected time, change no standings, stops or laps. Nor do
        the letters of drivers without a place: sources differ about `R` and `W`.
        """

        def place(row: dict[str, Value]) -> Value:
            return row["positionText"] if str(row["positionText"]).isdigit() else None

        def classification(rows: Sequence[dict[str, Value]]) -> Counter[tuple[Value, ...]]:
            return Counter((row["driverId"], place(row), row["points"]) for row in rows)

        return any(
            classification(self.rows(race, endpoint))
            != classification(self.old.rows(KIND_BY_ENDPOINT[endpoint], race.id))
            for endpoint in race.records
            if endpoint in ("results", "sprint")
        )

    def rows(self, race: FetchedRace, endpoint: str) -> list[dict[str, Value]]:
        """The fetched records of a race as rows, like OldDatabase.rows."""
        place = f"{self.parts.place}, {race.name}"
        return list(rows_of(race.records[endpoint], KIND_BY_ENDPOINT[endpoint], place))

    def fetch_details(self, race: FetchedRace) -> None:
        """Fetches records that are listed per race: practice, pit stops, standings, laps, …"""
        for kind in KINDS.values():
            endpoint = kind.endpoint
            if (
                not endpoint
                or kind.is_fetched_by_season
                or not self.needs(kind, race)
                or (not kind.has_every_race and "Sprint" not in race.facts)
                or endpoint in self.not_served
            ):
                continue
            path = f"{self.year}/{race.round}/{endpoint}"
            try:
                chains = self.api.records(path)
            except NotServed:
                if kind.is_in_every_api:
                    raise
                self.not_served.add(endpoint)
                continue
            for parent, *_ in chains:
                if parent.get("round") != race.round:
                    what = f"round {shown(parent.get('round'))}; expected {race.round!r}"
                    raise LoadError(f"{self.api.address(path)}: {what}")
            if endpoint == "laps":
                records = [{"lap": lap.get("number"), **timing} for _, lap, timing in chains]
            else:
                records = [record for _, record in chains]
            if records:  # an API without laps of a race does not delete stored ones
                race.records[endpoint] = records

    def needs(self, kind: Table, race: FetchedRace) -> bool:
        """Whether to fetch the records of a kind that is listed per race: if they are missing or
        provisional, or if the results of the race have changed.
        """
        if self.all_details or race.id in self.old.provisional([kind.name]):
            return True
        if kind.name == "lap_times":
            return self.needs_laps(race)
        # another source's records are replaced together
        changed = race in self.reclassified or race.id in self.filled_in
        if kind.name in STANDINGS:
            completed = self.completed[: self.completed.index(race) + 1]
            changed |= any(earlier in self.reclassified for earlier in completed)
        return changed or not self.old.count(KIND_BY_ENDPOINT[kind.endpoint], race.id)

    def needs_laps(self, race: FetchedRace) -> bool:
        """Whether to fetch laps, which take many requests: if few are stored, or the number of laps
        of a driver has changed.
        """
        stored = self.old.count(KIND_BY_ENDPOINT["laps"], race.id)
        # Penalties change times and positions, not laps.
        stored_laps, laps_of_api = (
            Counter((row["driverId"], row["laps"]) for row in rows)
            for rows in (
                self.old.rows(KIND_BY_ENDPOINT["results"], race.id),
                self.rows(race, "results"),
            )
        )
        return stored <= self.api.limit or stored_laps != laps_of_api

    def delivery(self) -> Delivery:
        """What was fetched."""
        fetched_at = timestamp(self.api.pace.time())
        source = StoredSource(
            name=self.api.url,
            address=self.api.url,
            licence=licence_of(self.api.url),
            checksum=None,
            read_at=fetched_at,
        )
        for race in self.races:
            for endpoint, records in race.records.items():
                self.parts.add_entrants(race.facts, endpoint, records)
                if race in self.chosen:
                    self.parts.add_records(race.facts, endpoint, records)
        (url,) = row_of(self.facts, TABLE_BY_NAME["seasons"], self.parts.place).values()
        lists: dict[str, Sequence[Row]] = {
            **{name: list(rows.values()) for name, rows in self.parts.lists.items()},
            "seasons": [{"year": self.year, "url": url}],
        }
        parts = [(part, fetched_at) for part in self.parts.parts]
        notes = {"seen": self.digests, "notServed": sorted(self.not_served)}
        return Delivery(source, [self.calendar], parts, lists, notes)

    def report(self) -> str:
        rounds = [race.round for race in self.chosen]
        what = f"{plural('round', len(rounds))} {', '.join(rounds)}" if rounds else "no round"
        return f"{self.year}: fetched the calendar ({counted(len(self.races), 'race')}) and {what}"


def fetch_calendar(api: Api, year: int) -> list[Json]:
    """The races of a season, by round. Raises LoadError if two have the same name or round."""
    place = api.address(f"{year}/races")
    races = [race for (race,) in api.records(f"{year}/races")]
    for race in races:
        season = row_of(race, TABLE_BY_NAME["races"], place)["year"]
        if season != year:
            raise LoadError(f"{place}: a race of season {season}; expected {year}")
    for key in ("raceName", "round"):
        if len({race[key] for race in races}) < len(races):
            raise LoadError(f"{place}: two races have the same {key}; expected different ones")
    return sorted(races, key=lambda race: int(race["round"]))


def shown(value: object) -> str:
    """A value of an answer, as an error shows it."""
    return repr(value)[:80]


def is_changed(new: Sequence[dict[str, Value]], old: Sequence[dict[str, Value]]) -> bool:
    """Whether rows of a race differ from those stored, whatever their order."""
    return Counter(tuple(row.values()) for row in new) != Counter(
        tuple(row.values()) for row in old
    )
