"""The steps that all endpoints share: 304, cache, page of records, format of the answer.

The endpoints themselves are in endpoints.py, SQL in queries.py, the JSON objects in serializers.py.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import ClassVar, NamedTuple

import falcon

from racedata.formats import Json
from racedata.service import calendars, serializers, spreadsheets
from racedata.service.addresses import CSV, ICS, JSON, Rules
from racedata.service.caching import Body, CachedAnswers, compressed
from racedata.service.catalogue import Catalogue, NoLastRound, Selection
from racedata.service.queries import Filters
from racedata.service.request import ParsedRequest
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

# the number of all records that match, and the objects of the page
TotalAndPage = tuple[int, list[Json]]


class Content(NamedTuple):
    """The content of an answer, before it is written in a format."""

    request: ParsedRequest
    selection: Selection
    total: int  # the number of all records that match
    objects: list[Json]  # the objects of the page


class Endpoint(ABC):
    """An endpoint under the base address: the last word of an address is its name."""

    name: ClassVar[str]
    summary: ClassVar[str]  # one line, for the page at `/docs` and the OpenAPI document
    rules: ClassVar[Rules]
    table: ClassVar[str]  # its key in MRData: `RaceTable`
    objects: ClassVar[str]  # their key in the table: `Races`
    # If `key` is empty, each object is a record; else each has a list of records under `key`.
    key: ClassVar[str] = ""
    # Names of schemas in openapi.json: of a record, and of an object without its records.
    schema: ClassVar[str]
    container: ClassVar[str] = ""
    not_echoed: ClassVar[frozenset[str]] = frozenset()  # filters that the table does not repeat

    def __init__(
        self,
        data: Snapshot,
        catalogue: Catalogue,
        settings: Settings,
        answers: CachedAnswers,
    ) -> None:
        self.data = data
        self.catalogue = catalogue
        self.settings = settings
        self.answers = answers
        self.spreadsheet = spreadsheets.Spreadsheet(self.schema, self.container, self.key)

    @cached_property
    def calendar_writer(self) -> calendars.Calendars:
        return calendars.Calendars(self.data, self.catalogue, self.settings.series)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        request: ParsedRequest = req.context.request
        try:
            # A `last` that does not exist is a 404 even if the client's tag is current.
            if request.address.round == "last":
                self.catalogue.select(request.address)
        except NoLastRound as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        content_type = FORMATS[request.address.ending].content_type
        self.answers.respond(
            req, resp, content_type, key=request.key, make=lambda: self.make_body(request)
        )

    on_head = on_get

    def make_body(self, request: ParsedRequest) -> Body:
        content = self.content(request)
        text = FORMATS[request.address.ending].write(self, content)
        # JSON has the total in its envelope.
        total = None if request.address.ending == JSON else content.total
        return Body(compressed(text), total)

    def content(self, request: ParsedRequest) -> Content:
        """The content of the answer to a request. Raises NoLastRound."""
        selection = self.catalogue.select(request.address)
        return Content(request, selection, *self.select_page(selection, request))

    def select_page(self, selection: Selection, request: ParsedRequest) -> TotalAndPage:
        """The page that a request selects."""
        if selection.filters is None:
            return 0, []
        return self.page(selection.filters, request.limit, request.offset)

    def write_json(self, content: Content) -> bytes:
        return serializers.written(self.envelope(content))

    def write_csv(self, content: Content) -> bytes:
        return self.spreadsheet.write(content.objects)

    def write_ics(self, content: Content) -> bytes:
        """Writes races: the grammar accepts the ending only for them."""
        request = content.request
        return self.calendar_writer.write(content.objects, request.address, request.sessions)

    def answer(self, request: ParsedRequest) -> Json:
        """The whole answer, as JSON. Raises NoLastRound."""
        return self.envelope(self.content(request))

    def envelope(self, content: Content) -> Json:
        """The envelope of an answer, with its table and the objects of its page."""
        request, selection, total, objects = content
        address, limit, offset, base_url, _ = request
        echoed = {
            name: value for name, value in address.filters.items() if name not in self.not_echoed
        }
        table = {**self.echo(selection, echoed), self.objects: objects}
        url = f"{base_url}/{address.path}.json"
        return serializers.mrdata(
            self.settings.series,
            url,
            limit=limit,
            offset=offset,
            total=total,
            **{self.table: table},
        )

    @abstractmethod
    def page(self, filters: Filters, limit: int, offset: int) -> TotalAndPage:
        """One page of the records that match."""

    def echo(self, selection: Selection, filters: Filters) -> Json:
        """The part of the table that repeats the request, before the list."""
        return serializers.echo(selection.season, selection.round, filters)


class Format(NamedTuple):
    """A format of answers: its media type, and the method that writes it."""

    content_type: str
    write: Callable[[Endpoint, Content], bytes]


# By the ending of the address.
FORMATS: Mapping[str, Format] = {
    JSON: Format(falcon.MEDIA_JSON, Endpoint.write_json),
    CSV: Format(spreadsheets.CONTENT_TYPE, Endpoint.write_csv),
    ICS: Format(calendars.CONTENT_TYPE, Endpoint.write_ics),
}


def page_of(objects: list[Json], limit: int, offset: int) -> TotalAndPage:
    """One page of a complete list."""
    return len(objects), objects[offset : offset + limit]
