"""Asks the endpoints for the facts of the HTML pages, as a client does.

So the pages show the same facts as the answers. What no endpoint answers about races is here too:
from page_queries.py, where the SQL is, and from the catalogue.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from racedata.formats import Json, public_name
from racedata.service import queries, words
from racedata.service.addresses import Address, Round, Season, Value
from racedata.service.content import Content, Served, provenances
from racedata.service.endpoints import BY_NAME
from racedata.service.pages import page_queries
from racedata.service.request import ParsedRequest


class Ask:
    """Asks an endpoint for the objects in its answer.

    `ask("results", 10, 2023, results="1")` is for `/2023/results/1?limit=10`.
    """

    def __init__(self, served: Served) -> None:
        self.data, self.catalogue, self.settings = self.served = served
        self.endpoints = BY_NAME

    def __call__(
        self,
        endpoint: str,
        limit: int,
        season: Season | None = None,
        round: Round | None = None,
        own_parameters: Mapping[str, str] = {},
        /,
        **filters: Value,
    ) -> list[Json]:
        return self.content(endpoint, limit, season, round, own_parameters, **filters).objects

    def records(self, endpoint: str, limit: int, season: Season, round: Round) -> list[Json]:
        """The records of one race, such as its results; none if the race has none."""
        key = self.endpoints[endpoint].records_key
        return [record for race in self(endpoint, limit, season, round) for record in race[key]]

    def content(
        self,
        endpoint: str,
        limit: int,
        season: Season | None = None,
        round: Round | None = None,
        own_parameters: Mapping[str, str] = {},
        /,
        **filters: Value,
    ) -> Content:
        # Made of its parts: to parse a text would take a tenth of the time of a page.
        address = Address("", endpoint, season, round, filters)
        return self.endpoints[endpoint].find(
            self.served, ParsedRequest(address, limit, 0, "", tuple(own_parameters.items()))
        )

    def provisional_sources(self, race: Json) -> dict[str, str]:
        """The sources of the provisional records of a race, by kind."""
        id = self.catalogue.id_of_round[int(race["season"]), int(race["round"])]
        sources = page_queries.provisional_sources(self.data, id)
        return {kind: public_name(source) for kind, source in sources.items()}

    def provenances(self, races: Sequence[Json]) -> list[Json]:
        """Where the results of races are from, of those that have any."""
        rounds = [(int(race["season"]), int(race["round"])) for race in races]
        ids = [self.catalogue.id_of_round[round] for round in rounds]
        found = provenances(self.data, "results", ids)
        return [found[id] for id in ids if id in found]

    def leaders(self, season: int) -> dict[str, list[Json]]:
        """Who led the championship of the drivers after each round that has standings."""
        return self.leaders_by_season.get(season, {})

    @cached_property
    def leaders_by_season(self) -> dict[int, dict[str, list[Json]]]:
        leaders: dict[int, dict[str, list[Json]]] = {}
        for row in page_queries.leaders(self.data):
            race = self.catalogue.races[row["raceId"]]
            rounds = leaders.setdefault(int(race["season"]), {})
            rounds.setdefault(race["round"], []).append(self.catalogue.drivers[row["driverId"]])
        return leaders

    @cached_property
    def winners(self) -> dict[int, list[dict[str, int]]]:
        """The winners of each race, by raceId, in the order of races: `driverId, constructorId`.

        An endpoint, asked for the wins of a driver, leaves out who shared the car.
        """
        winners: dict[int, list[dict[str, int]]] = {}
        for row in page_queries.winners(self.data):
            winners.setdefault(row["raceId"], []).append(dict(row))
        return winners

    @cached_property
    def names(self) -> words.Names:
        """The names of drivers and constructors, by their ids."""
        return words.names_of(self.catalogue)

    def ids_to_search(self, kind: str, id: str) -> str:
        """The id of a driver, constructor or circuit, and what sources call it, as one text."""
        return " ".join([id, *self.ids_of_sources.get((kind, id), ())])

    @cached_property
    def ids_of_sources(self) -> dict[tuple[str, str], list[str]]:
        """What sources call a driver, constructor or circuit, by kind and own id; no numbers."""
        ids: dict[tuple[str, str], list[str]] = {}
        for row in queries.ids_of_sources(self.data):
            if not row["sourceId"].isdigit():
                ids.setdefault((row["kind"], row["id"]), []).append(row["sourceId"])
        return ids

    def races_of_name(self, name: str) -> Sequence[Json]:
        """All races with this name."""
        return self.races_by_name[name]

    @cached_property
    def races_by_name(self) -> dict[str, list[Json]]:
        races: dict[str, list[Json]] = {}
        for race in self.catalogue.races.values():
            races.setdefault(race["raceName"], []).append(race)
        return races
