"""The resources of endpoints, and the formats in which they write answers.

endpoints.py finds the content of an answer, a module for each format writes it, and caching.py
sends it.
"""

from functools import cached_property

import falcon

from racedata.service import calendars, feed, serializers, spreadsheets
from racedata.service.addresses import ATOM, CSV, ICS, JSON
from racedata.service.caching import Answers, Body
from racedata.service.content import Content, Served
from racedata.service.endpoints import Endpoint
from racedata.service.request import FORMATS, ParsedRequest
from racedata.service.selection import NoLastRound, select

MANY = 100  # a `limit` above it makes an answer slow, as environment.py says


class Resource:
    """The resource of an endpoint: 304 or cache, else selection, page and format."""

    def __init__(self, endpoint: Endpoint, served: Served, answers: Answers) -> None:
        self.endpoint = endpoint
        self.served = served
        self.answers = answers

    @cached_property
    def calendars(self) -> calendars.Calendars:
        data, catalogue, settings = self.served
        return calendars.Calendars(data, catalogue, settings.series)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        request: ParsedRequest = req.context.request
        try:
            # A `last` that does not exist is a 404 even if the client's tag is current.
            if request.address.round == "last":
                select(self.served.catalogue, request.address)
        except NoLastRound as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        ending = request.address.ending
        self.answers.respond(
            req,
            resp,
            FORMATS[ending].content_type,
            key=request.key,
            make=lambda: self.make_body(request),
            # 2,000 records take as long as a hundred usual answers, a calendar of all races as long
            # as a thousand.
            is_slow=request.limit > MANY or FORMATS[ending].is_slow,
        )

    on_head = on_get

    def make_body(self, request: ParsedRequest) -> Body:
        """The plain body of an answer. JSON has the total in its envelope."""
        content = self.endpoint.find(self.served, request)
        total = None if request.address.ending == JSON else content.total
        return Body(self.written(request, content), total)

    def written(self, request: ParsedRequest, content: Content) -> bytes:
        """The content in the format that the ending of the address names."""
        ending, served = request.address.ending, self.served
        if ending == CSV:
            sources = served.catalogue.sources_compared
            return spreadsheets.write(self.endpoint, sources, content.objects)
        if ending == ICS:
            parameters = dict(request.parameters)
            return self.calendars.write(content.objects, request.address, parameters)
        if ending == ATOM:
            url = f"{request.base_url}/{request.address.path}{ATOM}"
            return feed.write(content.objects, served, url)
        return serializers.json_bytes(self.endpoint.in_envelope(served, request, content))
