"""What every endpoint does with a request: 304, cache, page of records, format of the answer.

What an endpoint serves is in endpoints.py, SQL in queries.py, the JSON objects in serializers.py.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import falcon
import orjson

from racedata.service import calendars, serializers, spreadsheets
from racedata.service.addresses import CSV, ICS, JSON, Rules
from racedata.service.caching import Body, Cache, Validators, accepts_gzip, compressed, decompressed
from racedata.service.catalogue import Catalogue, NoLastRound, Selection
from racedata.service.queries import Filters
from racedata.service.request import ParsedRequest
from racedata.service.serializers import Json
from racedata.service.settings import Settings
from racedata.service.snapshot import Snapshot

CONTENT_TYPES = {
    JSON: falcon.MEDIA_JSON,
    CSV: spreadsheets.CONTENT_TYPE,
    ICS: calendars.CONTENT_TYPE,
}

# the number of all records that match, and the objects of the page
TotalAndPage = tuple[int, list[Json]]


class Endpoint(ABC):
    """An endpoint under the base address: the last word of an address is its name."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line, for the page at `/docs` and the OpenAPI document
    rules: ClassVar[Rules]
    table: ClassVar[str]  # in MRData: `RaceTable`
    objects: ClassVar[str]  # in the table: `Races`
    # If `key` is empty, each object is a record; else each has a list of records under `key`.
    # Schemas: openapi.json.
    key: ClassVar[str] = ""
    schema: ClassVar[str]  # of a record
    container: ClassVar[str] = ""  # the schema of an object without its records
    not_echoed: ClassVar[frozenset[str]] = frozenset()  # filters that the table does not repeat

    def __init__(
        self,
        data: Snapshot,
        catalogue: Catalogue,
        settings: Settings,
        validators: Validators,
        cache: Cache,
    ) -> None:
        self.data, self.catalogue, self.settings = data, catalogue, settings
        self.validators, self.cache = validators, cache
        self.spreadsheet = spreadsheets.Spreadsheet(self.schema, self.container, self.key)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        request: ParsedRequest = req.context.request
        try:
            if self.validators.match(req.env):
                # A `last` that does not exist is a 404 even if the client's tag is current.
                self.catalogue.select(request.address)
                self.validators.send_not_modified(resp)
                return
            body = self.cache.find(request) or self.make_body(request)
        except NoLastRound as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        ending = request.address.ending
        if ending != JSON:  # which has it in the envelope
            resp.set_header("x-total-count", str(body.total))
        content = body.content if accepts_gzip(req.env) else decompressed(body.content)
        self.validators.send(resp, content, CONTENT_TYPES[ending])

    on_head = on_get

    def make_body(self, request: ParsedRequest) -> Body:
        """Makes a body and caches it. Raises NoLastRound."""
        selection = self.catalogue.select(request.address)
        total, objects = self.select_page(selection, request)
        body = Body(compressed(self.write(request, selection, total, objects)), total)
        self.cache.put(request, body)
        return body

    def write(
        self, request: ParsedRequest, selection: Selection, total: int, objects: list[Json]
    ) -> bytes:
        """The answer as text, in the format that the ending of the address names.

        The grammar lets an ending through only if its endpoint has it.
        """
        if request.address.ending == CSV:
            return self.spreadsheet.write(objects)
        answer = orjson.dumps(self.envelope(request, selection, total, objects))
        # A copy for the cache: orjson's own object occupies 4 KB, even for an answer of 145 bytes.
        return bytes(memoryview(answer))

    def answer(self, request: ParsedRequest) -> Json:
        """The whole answer, as JSON. Raises NoLastRound."""
        selection = self.catalogue.select(request.address)
        return self.envelope(request, selection, *self.select_page(selection, request))

    def select_page(self, selection: Selection, request: ParsedRequest) -> TotalAndPage:
        """The page that a request selects."""
        if selection.filters is None:
            return 0, []
        return self.page(selection.filters, request.limit, request.offset)

    def envelope(
        self, request: ParsedRequest, selection: Selection, total: int, objects: list[Json]
    ) -> Json:
        """The envelope of an answer, with its table and the objects of its page."""
        address, limit, offset, base_url, _ = request
        echoed = {
            name: value for name, value in address.filters.items() if name not in self.not_echoed
        }
        table = {**self.echo(selection, echoed), self.objects: objects}
        url = f"{base_url}/{address.path}.json"
        return serializers.mrdata(
            self.settings.series, url, limit, offset, total, **{self.table: table}
        )

    @abstractmethod
    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        """One page of the records that match."""

    def echo(self, selection: Selection, filters: Filters) -> Json:
        """The part of the table that repeats the request, before the list."""
        return serializers.echo(selection.season, selection.round, filters)


def page_of(objects: list[Json], limit: int, offset: int) -> TotalAndPage:
    """One page of a complete list."""
    return len(objects), objects[offset : offset + limit]
