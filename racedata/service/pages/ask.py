"""Asks the endpoints for the facts of the HTML pages, as a client does.

So the pages show the same facts as the answers. What no endpoint answers is in queries.sql and in
the catalogue.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.resources import files
from sqlite3 import Row

from racedata.formats import Json, public_name
from racedata.service import words
from racedata.service.addresses import Address, Round, Season, Value
from racedata.service.content import Content, Served, with_provenance
from racedata.service.endpoints import BY_NAME
from racedata.service.request import ALL, ParsedRequest

# The queries by name, each with its comment.
_, *PARAGRAPHS = (
    files(__package__).joinpath("queries.sql").read_text(encoding="utf-8").split("\n\n")
)
QUERIES = {each.removeprefix("-- ").partition(":")[0]: each for each in PARAGRAPHS}


class Ask:
    """Asks an endpoint for the objects in its answer.

    `ask("results", 2023, results="1")` is for all records of `/2023/results/1`.
    """

    def __init__(self, served: Served) -> None:
        self.data, self.catalogue, self.settings = self.served = served
        self.endpoints = BY_NAME

    def __call__(
        self,
        endpoint: str,
        season: Season | None = None,
        round: Round | None = None,
        /,  # else a type checker would think that any filter may be one of these
        **wanted: Value,
    ) -> list[Json]:
        return self.content(endpoint, season, round, wanted).objects

    def records_of_race(self, endpoint: str, season: Season, round: Round) -> list[Json]:
        """The records of one race, such as its results; none if the race has none."""
        key = self.endpoints[endpoint].records_key
        return [record for race in self(endpoint, season, round) for record in race[key]]

    def content(
        self,
        endpoint: str,
        season: Season | None = None,
        round: Round | None = None,
        wanted: Mapping[str, Value] = {},
        limit: int = ALL,
    ) -> Content:
        """The first `limit` records, and how many there are. `wanted` has filters, or a `state`."""
        # Made of its parts: to parse a text would take a tenth of the time of a page.
        address = Address("", endpoint, season, round, wanted)
        return self.endpoints[endpoint].find(self.served, ParsedRequest(address, limit, 0, ""))

    def rows(self, query: str, *values: str | int | None, **names: str) -> list[Row]:
        """The rows of a query in queries.sql; `names` are for its braces."""
        return self.data.rows(QUERIES[query].format(**names), values)

    def race(self, season: int, round: int) -> Json:
        return self.catalogue.races[self.catalogue.id_of_round[season, round]]

    def object(self, kind: str, id: str) -> Json:
        """A driver, constructor or circuit."""
        name = f"{kind}s"
        return self.catalogue.lists[name][self.catalogue.ids[name][id.lower()]]

    def provisional_sources(self, race: Json) -> dict[str, str]:
        """The sources of the provisional records of a race, by kind."""
        id = self.catalogue.id_of_round[int(race["season"]), int(race["round"])]
        return {kind: public_name(name) for kind, name in self.rows("provisional sources", id)}

    def provenances(self, races: Sequence[Json]) -> list[Json]:
        """Where the results of races are from, of those that have any."""
        found = with_provenance(self.served, "results", races)
        return [race["Provenance"] for race in found if "Provenance" in race]

    @cached_property
    def names(self) -> words.Names:
        """The names of drivers and constructors, by their ids."""
        return words.names_of(self.catalogue)

    @cached_property
    def ids_of_sources(self) -> dict[tuple[str, str], list[str]]:
        """What sources call a driver, constructor or circuit, by kind and own id; no numbers."""
        ids: dict[tuple[str, str], list[str]] = {}
        for row in self("ids"):
            if not row["sourceId"].isdigit():
                ids.setdefault((row["kind"], row["id"]), []).append(row["sourceId"])
        return ids
