"""Answers requests for pages: `/`, `/2023`, `/2023/18`, `/current`, and any unknown address.

They are outside the base address, and work without scripts.
"""

import re
from collections.abc import Callable, Mapping
from urllib.parse import quote

import falcon

from racedata.service.answers import Body, CachedAnswers, Validators, compressed
from racedata.service.catalogue import Catalogue
from racedata.service.document import Document
from racedata.service.pages import home, race, season
from racedata.service.pages.ask import Ask
from racedata.service.pages.rendering import CONTENT_TYPE, HEADERS, render
from racedata.service.sources import RefreshNotes
from racedata.settings import Settings

LONGEST = 1000  # characters of an address; nginx refuses answers with very long headers


class HomePage:
    """The resource of `/`, made once per database and again when a refresh has asked a source.

    `html` and `validators` make the page and its Validators for the times of all refreshes.
    """

    def __init__(
        self,
        notes: RefreshNotes,
        html: Callable[[home.RefreshTimes], str],
        validators: Callable[[home.RefreshTimes], Validators],
    ) -> None:
        self.notes = notes
        self.html = html
        self.validators = validators
        self.cached = self.make({})

    def make(self, times: home.RefreshTimes) -> tuple[home.RefreshTimes, Document]:
        """The times at which refreshes last asked the sources, and the page, as a Document."""
        document = Document(self.validators(times), self.html(times), CONTENT_TYPE, HEADERS)
        return times, document

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        times_then, document = self.cached
        times = {
            name: notes["refreshedAt"]
            for name, notes in self.notes.read().items()
            if "refreshedAt" in notes
        }
        if times != times_then:
            _, document = self.cached = self.make(times)
        document.on_get(req, resp)

    on_head = on_get


class SeasonPages:
    """Answers all other requests, as sinks: a route would match `/2023x` and `/none`."""

    def __init__(
        self,
        catalogue: Catalogue,
        settings: Settings,
        ask: Ask,
        answers: CachedAnswers,
    ) -> None:
        self.settings = settings
        self.ask = ask
        self.answers = answers
        self.prefix = re.compile("/(?P<season>[1-9][0-9]{3})(?:/(?P<round>[1-9][0-9]{0,17}))?\\Z")
        self.current = re.compile("/current(?P<which>/last|/next)?\\Z")
        self.rounds: dict[int, list[int]] = {}  # by season, in order
        for year, number in catalogue.id_of_round:
            self.rounds.setdefault(year, []).append(number)

    def respond(self, req: falcon.Request, resp: falcon.Response, **numbers: str | None) -> None:
        year, number = int(numbers["season"] or 0), int(numbers["round"] or 0)
        if fault := self.fault(year, number):
            self.send_not_found(req, resp, fault, year=year)
            return
        if req.method == "OPTIONS":
            return
        resp.set_headers(HEADERS)
        self.answers.respond(
            req,
            resp,
            CONTENT_TYPE,
            key=(year, number),
            make=lambda: self.make_body(req.path, year, number),
        )

    def redirect(self, req: falcon.Request, resp: falcon.Response, **words: str | None) -> None:
        """Leads from `current`, `current/last` or `current/next` to the page they mean now."""
        which = words["which"] or ""
        found = self.ask(f"/current{which}", 1)
        if not found:
            self.send_not_found(req, resp, "No later race is loaded")
            return
        year, number = found[0]["season"], found[0]["round"]
        resp.status = falcon.HTTP_302
        resp.location = f"../{year}/{number}" if which else year

    def make_body(self, path: str, year: int, number: int) -> Body:
        name: str
        facts: Mapping[str, object]
        if number:
            rounds = self.rounds[year]
            name, facts = "race", race.facts(self.settings, self.ask, rounds, year, number)
        else:
            name = "season"
            facts = season.facts(self.settings, self.ask, sorted(self.rounds), year)
        html = render(f"{name}.html", path, facts, self.settings.contact)
        return Body(compressed(html.encode()))

    def fault(self, year: int, number: int) -> str:
        """The reason why there is no page; empty if there is one. Round 0 is the whole season."""
        if year not in self.rounds:
            return f"Season {year} is not loaded"
        if number and number not in self.rounds[year]:
            return f"Season {year} has no round {number}"
        return ""

    def not_found(self, req: falcon.Request, resp: falcon.Response, **params: object) -> None:
        """The sink for every address outside the base address that has no route.

        If it ends with a slash, redirects to the address without it, which may have a route.
        """
        path = req.path.rstrip("/")
        slashes = len(req.path) - len(path)
        location = "../" * slashes + quote(path.rpartition("/")[2])
        if slashes and len(location) < LONGEST:
            raise falcon.HTTPMovedPermanently(location)
        self.send_not_found(req, resp, "There is nothing at this address")

    def send_not_found(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        fault: str,
        detail: str | None = None,
        year: int = 0,
    ) -> None:
        """Sends browsers a page, and raises HTTPNotFound for programs.

        Programs get `detail` or, without it, the form of addresses. The page links to the season
        `year` or, if that is not loaded, to the latest one.
        """
        resp.append_header("Vary", "Accept")
        if "text/html" not in req.accept:
            raise falcon.HTTPNotFound(description=detail or str(self.ask.grammar.unknown(fault)))
        resp.status = falcon.HTTP_404
        resp.set_headers(HEADERS)
        resp.content_type = CONTENT_TYPE
        facts = {
            "fault": fault,
            "season": year if year in self.rounds else max(self.rounds),
        }
        resp.text = render("not_found.html", req.path, facts, self.settings.contact)
