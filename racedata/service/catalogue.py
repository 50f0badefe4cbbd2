"""The catalogue: objects that many answers use, and the numbers that the database gives them.

They are made once per database. selection.py finds what an address selects among them.
"""

from collections.abc import Callable, Mapping
from functools import cached_property
from sqlite3 import Row
from typing import Any

from racedata.formats import Json, without_accents
from racedata.model import STANDINGS, TABLE_BY_NAME
from racedata.service import queries, serializers
from racedata.service.serializers import Objects
from racedata.service.snapshot import Snapshot

# How the lists of ids are sorted in answers (D24).
ORDERS: Mapping[str, Callable[[Row], Any]] = {
    "circuits": lambda row: row["circuitRef"].lower(),
    "constructors": lambda row: row["constructorRef"].lower(),
    "drivers": lambda row: (without_accents(row["surname"]), row["driverRef"].lower()),
}


class Catalogue:
    """The JSON objects that many answers use: by id, in the order of answers."""

    def __init__(self, data: Snapshot) -> None:
        self.data = data
        seasons = rows_by_id(data, "seasons", "year")
        self.seasons = {year: serializers.season(row) for year, row in seasons.items()}
        # Lists in answers are in the order of these dicts.
        self.lists: dict[str, Objects] = {"seasons": self.seasons}
        self.ids: dict[str, dict[str, int]] = {}  # Ids in addresses are case-insensitive.
        for name, order in ORDERS.items():
            table = TABLE_BY_NAME[name]
            rows = rows_by_id(data, name, table.id_key)
            in_order = sorted(rows.items(), key=lambda item: order(item[1]))
            self.lists[name] = {id: serializers.shared(table, row) for id, row in in_order}
            self.ids[name] = {row[f"{table.singular}Ref"].lower(): id for id, row in rows.items()}
        self.circuits, self.constructors, self.drivers = (self.lists[name] for name in ORDERS)
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
        self.lists["races"] = self.calendar
        self.orders = {
            name: {id: place for place, id in enumerate(objects)}
            for name, objects in self.lists.items()
        }
        self.id_of_round = {(row["year"], row["round"]): id for id, row in self.race_rows.items()}
        self.rounds: dict[int, list[int]] = {}  # by season, in order
        for year, number in self.id_of_round:
            self.rounds.setdefault(year, []).append(number)
        # By table and season: the raceId of the latest race with rows.
        self.latest_with = {table: self.latest(data, table) for table in ("results", *STANDINGS)}
        # The last race with results, and the races after it: raceIds in order.
        _, self.last_race = max(self.latest_with["results"].items())
        self.coming = [*self.races][self.orders["races"][self.last_race] + 1 :]
        # The season of the next race; of the last one with results if no later race is known.
        next_or_last = [*self.coming, self.last_race][0]
        self.calendar_season: int = self.race_rows[next_or_last]["year"]

    @cached_property
    def sources_compared(self) -> tuple[str, ...]:
        """The sources that disagree about something, the most trusted first."""
        return tuple(queries.sources_compared(self.data))

    def latest(self, data: Snapshot, table: str) -> dict[int, int]:
        """The raceId of the latest race with rows in `table`, by season."""
        with_rows = {id for (id,) in data.rows(f"SELECT DISTINCT raceId FROM {table}")}
        # the rows are in order, so the latest race of a season replaces the others
        return {row["year"]: id for id, row in self.race_rows.items() if id in with_rows}


def rows_by_id(data: Snapshot, table: str, id: str) -> dict[Any, Row]:
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
