"""Asks the endpoints for the facts of the HTML pages, with an address as a client does.

So these pages know neither SQL nor database ids, and show the same facts as the answers.
"""

from racedata.formats import Json, public_name
from racedata.service import queries
from racedata.service.addresses import Grammar
from racedata.service.endpoints import ENDPOINTS, Content, Served
from racedata.service.request import ParsedRequest

ALL = 1000  # more than any list on a page has


class Ask:
    """Asks an endpoint: `ask("/current/last/results", limit)` returns the objects in its answer."""

    def __init__(self, served: Served, grammar: Grammar) -> None:
        self.served = served
        self.grammar = grammar
        self.endpoints = {endpoint.name: endpoint for endpoint in ENDPOINTS}

    def __call__(self, address: str, limit: int) -> list[Json]:
        return self.content(address, limit).objects

    def records(self, address: str, limit: int) -> list[Json]:
        """The records of one race, such as its results; none if the race has none."""
        key = self.endpoints[self.grammar.parse(address).endpoint].key
        return [record for race in self(address, limit) for record in race[key]]

    def total(self, address: str) -> int:
        """The number of records that match."""
        return self.content(address, limit=0).total

    def content(self, address: str, limit: int) -> Content:
        request = ParsedRequest(self.grammar.parse(address), limit, offset=0, base_url="")
        return self.endpoints[request.address.endpoint].content(self.served, request)

    def provisional_source(self, race: Json) -> str | None:
        """The source of the result of a race; None if the result is not provisional."""
        id = self.served.catalogue.id_of_round[int(race["season"]), int(race["round"])]
        source = queries.provisional_source(self.served.data, id)
        return source and public_name(source)
