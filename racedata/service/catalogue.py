"""The catalogue: objects that many answers use, and what an address selects.

The objects are made once per database. The words and ids of an address become numbers of the
database. The SQL of filters is in queries.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sqlite3 import Row
from typing import Any

from racedata.formats import Json, without_accents
from racedata.model import STANDINGS, TABLE_BY_NAME
from racedata.service import serializers
from racedata.service.addresses import ICS, Address, Round, Season, Value
from racedata.service.queries import Wanted
from racedata.service.serializers import Objects, Shared
from racedata.service.snapshot import Snapshot


class NoLastRound(LookupError):
    """`last` was requested for a season in which no race has results."""


@dataclass(frozen=True)
class Selection:
    """The season, the round and the records that an address selects.

    `wanted` is None if nothing can match, because an id or a round does not exist.
    """

    season: int | None
    round: int | None
    wanted: Wanted | None


class Catalogue:
    """The JSON objects that many answers use: by id, in the order of answers."""

    def __init__(self, data: Snapshot) -> None:
        circuits = rows_by_id(data, "circuits", "circuitId")
        constructors = rows_by_id(data, "constructors", "constructorId")
        drivers = rows_by_id(data, "drivers", "driverId")
        # Lists in answers are in the order of these dicts.
        self.seasons = {
            year: serializers.season(row)
            for year, row in rows_by_id(data, "seasons", "year").items()
        }
        self.circuits = in_order("circuits", circuits, lambda row: row["circuitRef"].lower())
        self.constructors = in_order(
            "constructors", constructors, lambda row: row["constructorRef"].lower()
        )
        self.drivers = in_order(
            "drivers",
            drivers,
            lambda row: (without_accents(row["surname"]), row["driverRef"].lower()),
        )
        self.lists: Mapping[str, Objects] = {
            "seasons": self.seasons,
            "circuits": self.circuits,
            "constructors": self.constructors,
            "drivers": self.drivers,
        }
        self.statuses = {
            id: row["status"] for id, row in rows_by_id(data, "status", "statusId").items()
        }
        self.race_rows = {
            row["raceId"]: row for row in data.rows("SELECT * FROM races ORDER BY year, round")
        }
        self.races = {
            id: serializers.race(row, self.circuits) for id, row in self.race_rows.items()
        }
        self.calendar = calendar_of(data, self.race_rows, self.races)
        self.race_order = {id: number for number, id in enumerate(self.races)}
        self.id_of_round = {(row["year"], row["round"]): id for id, row in self.race_rows.items()}
        self.rounds: dict[int, list[int]] = {}  # by season, in order
        for year, number in self.id_of_round:
            self.rounds.setdefault(year, []).append(number)
        # Ids in addresses are case-insensitive.
        self.ids = {
            "circuits": {row["circuitRef"].lower(): id for id, row in circuits.items()},
            "constructors": {row["constructorRef"].lower(): id for id, row in constructors.items()},
            "drivers": {row["driverRef"].lower(): id for id, row in drivers.items()},
        }
        # By table and season: the raceId of the latest race with rows.
        self.latest_with = {table: self.latest(data, table) for table in ("results", *STANDINGS)}
        # The last race with results, and the races after it: raceIds in order.
        _, self.last_race = max(self.latest_with["results"].items())
        self.coming = [*self.races][self.race_order[self.last_race] + 1 :]
        # The season of the next race; of the last one with results if no later race is known.
        next_or_last = [*self.coming, self.last_race][0]
        self.calendar_season: int = self.race_rows[next_or_last]["year"]

    def latest(self, data: Snapshot, table: str) -> dict[int, int]:
        """The raceId of the latest race with rows in `table`, by season."""
        with_rows = {id for (id,) in data.rows(f"SELECT DISTINCT raceId FROM {table}")}
        # the rows are in order, so the latest race of a season replaces the others
        return {row["year"]: id for id, row in self.race_rows.items() if id in with_rows}

    def select(self, address: Address) -> Selection:
        """The Selection of an address. Raises NoLastRound."""
        season, round = self.season_and_round(address.season, address.round)
        # In winter the season has no races left, so subscribers also get the following seasons.
        with_following = address.season == "current" and address.ending == ICS
        if address.season == "current" and lists_races(address) and not with_following:
            # D9: clients look for the next race in the current season, even in winter
            season = self.calendar_season
        wanted: dict[str, Value] = {}
        if season is not None and round is not None:
            race = self.id_of_round.get((season, round))
            if race is None:
                return Selection(season, round, None)  # an empty list, not an error (D6)
            wanted["race"] = race
        elif season is not None:
            wanted["from_season" if with_following else "season"] = season
        for name, value in address.filters.items():
            if name in self.ids:
                id = self.ids[name].get(str(value))
                if id is None:
                    return Selection(season, round, None)
                wanted[name] = id
            elif name != "fastest" or value != 0:  # D18: rank 0 is not a rank
                wanted[name] = value
        return Selection(season, round, wanted)

    def season_and_round(
        self, season: Season | None, round: Round | None
    ) -> tuple[int | None, int | None]:
        """Season and round as numbers. `current`, `last` and `next` depend only on the database."""
        last_races = self.latest_with["results"]
        year = max(last_races) if season == "current" else season
        if year is None:
            return None, None
        last = self.race_rows[last_races[year]]["round"] if year in last_races else 0
        if round == "last":
            if not last:
                # not round 1, which has no results (D10)
                raise NoLastRound(
                    f"Season {year} has no last round yet, because none of its races has results."
                )
            return year, last
        if round == "next":
            # Not `coming`: a season before the current one may have races without results too.
            ahead = [number for number in self.rounds.get(year, ()) if number > last]
            # The lowest round, even if one before it was cancelled (D11).
            # No season comes after 9999: an address has four digits.
            return (year, ahead[0]) if ahead else (min(year + 1, 9999), 1)
        return year, round

    def wanted_standings(self, table: str, wanted: Wanted) -> Wanted | None:
        """What chooses lists of standings: a race or `final` replaces the season.

        A season has many lists, one after each race. With a round, this chooses the list after that
        round; with only a season, the latest list; without a season, the `final` list of each
        finished season. None if the season has no standings.
        """
        if "race" in wanted:
            return wanted
        if "season" not in wanted:
            return {**wanted, "final": 1}  # of all seasons (D12)
        others = {name: value for name, value in wanted.items() if name != "season"}
        latest = self.latest_with[table].get(int(wanted["season"]))
        return None if latest is None else {**others, "race": latest}


def rows_by_id(data: Snapshot, table: str, id: str) -> dict[Any, Row]:
    """The rows of a table by their column `id`, in its order."""
    return {row[id]: row for row in data.rows(f"SELECT * FROM {table} ORDER BY {id}")}


def calendar_of(
    data: Snapshot, race_rows: Mapping[int, Row], races: Mapping[int, Json]
) -> dict[int, Json]:
    """The races with their sessions, by raceId."""
    sessions: dict[int, dict[str, Row]] = {id: {} for id in races}
    for row in data.rows("SELECT * FROM sessions"):
        sessions[row["raceId"]][row["session"]] = row
    sprints = data.rows(
        """SELECT raceId FROM sessions WHERE session = 'sprint' AND date IS NOT NULL
           UNION SELECT raceId FROM sprint_results"""
    )
    with_sprint = {id for (id,) in sprints}
    return {
        id: {
            **race,
            **serializers.schedule(race_rows[id]["year"], sessions[id], id in with_sprint),
        }
        for id, race in races.items()
    }


def lists_races(address: Address) -> bool:
    """Whether an address lists all races of a season, or those at a circuit."""
    return (
        address.endpoint == "races"
        and address.round is None
        and address.filters.keys() <= {"circuits"}
    )


def in_order(table: str, rows: Mapping[int, Row], key: Callable[[Row], Any]) -> dict[int, Shared]:
    """The objects of the rows of a list, by id, sorted by `key` (D24)."""
    return {
        id: serializers.shared(TABLE_BY_NAME[table], row)
        for id, row in sorted(rows.items(), key=lambda item: key(item[1]))
    }
