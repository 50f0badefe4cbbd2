"""The resource of each endpoint: 304 or cache, selection, page, format.

The endpoints themselves are in endpoints.py.
"""

from functools import cached_property

import falcon

from racedata.service import calendars, serializers, spreadsheets
from racedata.service.addresses import CSV, ICS, JSON
from racedata.service.caching import Body, CachedAnswers, compressed
from racedata.service.catalogue import NoLastRound
from racedata.service.endpoints import Endpoint, Served
from racedata.service.request import ParsedRequest

CONTENT_TYPES = {
    JSON: falcon.MEDIA_JSON,
    CSV: spreadsheets.CONTENT_TYPE,
    ICS: calendars.CONTENT_TYPE,
}


class Resource:
    """Answers the requests for one endpoint."""

    def __init__(self, endpoint: Endpoint, served: Served, answers: CachedAnswers) -> None:
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
                self.served.catalogue.select(request.address)
        except NoLastRound as error:
            raise falcon.HTTPNotFound(description=str(error)) from None
        content_type = CONTENT_TYPES[request.address.ending]
        self.answers.respond(
            req, resp, content_type, key=request.key, make=lambda: self.make_body(request)
        )

    on_head = on_get

    def make_body(self, request: ParsedRequest) -> Body:
        """The body of an answer, in the format that the ending of its address names."""
        address = request.address
        if address.ending == JSON:
            answer = self.endpoint.answer(self.served, request)
            return Body(compressed(serializers.written(answer)))
        _, total, objects = self.endpoint.content(self.served, request)
        if address.ending == CSV:
            text = self.endpoint.spreadsheet.write(objects)
        else:  # only races have calendars
            text = self.calendars.write(objects, address, request.sessions)
        return Body(compressed(text), total)  # JSON has the total in its envelope
