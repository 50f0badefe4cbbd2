"""The HTML pages: their routes, and what answers requests for them.

A page is a module that collects facts, and a template that shows them. Pages are outside the base
address, and work without scripts. The tables at the end have the routes: PAGES, CURRENT and FILES.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import quote

import falcon
from falcon.routing import BaseConverter

from racedata.formats import printable
from racedata.service import download
from racedata.service.addresses import Grammar, Round, parse_id
from racedata.service.caching import Answers, Body, Cache, Document
from racedata.service.pages import (
    all_time,
    career,
    circuit,
    data,
    differing_values,
    directory,
    find,
    home,
    interface,
    race,
    season,
    seasons,
)
from racedata.service.pages.ask import Ask
from racedata.service.pages.rendering import CARD, CONTENT_TYPE, HEADERS, ICON, MANIFEST, render
from racedata.service.snapshot import AskedAt
from racedata.values import ROUND, SEASON

# Of gzip. A page takes ten times as long to make as to compress, so it can be a tenth smaller.
LEVEL = 6
LONGEST_ID = 100
IN_QUERIES = "!$%&'()*+,/:;=?@[]"  # what a query may have besides letters and digits


class Page(NamedTuple):
    """A page, or one for each value of the parameters in its route."""

    route: str
    template: str
    facts: Callable[..., dict[str, Any]]  # `facts(ask, **parameters)`
    # Whether it says when refreshes last asked the sources: `facts` takes `shown_times`.
    has_times: bool = False
    # Whether it searches all names for what matches a query: `facts` takes `names` and `query`.
    has_query: bool = False


class Year(BaseConverter):
    """A season in a route. Others are no seasons, so the route does not match them."""

    PATTERN = SEASON

    def convert(self, value: str) -> int | None:
        return int(value) if re.fullmatch(self.PATTERN, value) else None


class Number(Year):
    """A round in a route."""

    PATTERN = ROUND


class Id(BaseConverter):
    """The id of a driver, constructor or circuit in a route, in small letters: case is ignored."""

    def convert(self, value: str) -> str | None:
        id = value.lower()
        return id if len(id) <= LONGEST_ID and parse_id.fullmatch(id) else None


CONVERTERS = {"year": Year, "number": Number, "id": Id}


class Pages:
    """The pages of one database."""

    def __init__(self, ask: Ask, grammar: Grammar, cache: Cache) -> None:
        self.ask, self.grammar, self.cache = ask, grammar, cache
        self.answers = self.answers_with({})
        # The times at which refreshes last asked the sources, and what answers until the next: one
        # attribute, because threads share it.
        self.latest: tuple[AskedAt, Answers] = {}, self.answers

    def add_to(self, app: falcon.App[falcon.Request, falcon.Response]) -> None:
        app.router_options.converters.update(CONVERTERS)
        for page in PAGES:
            app.add_route(page.route, PageResource(self, page))
        for route, round in CURRENT.items():
            app.add_route(route, Current(self, round))
        text = self.render("llms.txt", "/llms.txt", interface.llms(self.ask))  # https://llmstxt.org
        files = {**FILES, "/llms.txt": (text.encode(), "text/plain; charset=utf-8")}
        for route, (content, content_type) in files.items():
            app.add_route(route, Document(self.answers, content, content_type))
        app.add_sink(self.not_found)  # for all addresses without a route

    def with_times(self) -> tuple[AskedAt, Answers]:
        """The times at which refreshes last asked the sources, and what answers with them."""
        times = self.ask.data.asked_at()
        if times != self.latest[0]:
            self.latest = times, self.answers_with(times)
        return self.latest

    def answers_with(self, times: AskedAt) -> Answers:
        return Answers(
            self.ask.settings,
            self.ask.data,
            self.cache,
            *("the description", "the HTML pages"),
            max_age=0,
            level=LEVEL,
            asked_at=times,
        )

    def render(self, template: str, path: str, facts: dict[str, Any]) -> str:
        settings = self.ask.settings
        return render(
            template,
            path,
            # Not what the client asked: then each name of this host would be a page in the cache.
            site=settings.root_link,
            base=settings.base_link,
            contact=settings.contact,
            is_static=settings.is_static,
            default_limit=settings.usual_limit,
            max_limit=settings.max_limit,
            this_season=self.ask.catalogue.calendar_season,
            **facts,
        )

    def not_found(self, req: falcon.Request, resp: falcon.Response, **params: object) -> None:
        """Answers at an address without a route.

        If it ends with a slash, redirects to the address without it, which may have a route. The
        query stays.
        """
        path = req.path.rstrip("/")
        slashes = len(req.path) - len(path)
        location = "../" * slashes + quote(path.rpartition("/")[2])
        if req.query_string:  # as it is, but for what a header cannot have
            location += "?" + quote(req.query_string, IN_QUERIES, encoding="latin-1")
        if slashes:
            raise falcon.HTTPMovedPermanently(location)
        if path == download.PATH:
            self.send_not_found(req, resp, download.NOT_OFFERED, download.HOW_TO_OFFER)
        else:
            self.send_not_found(req, resp, "There is nothing at this address")

    def send_not_found(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        fault: str,
        detail: str | None = None,
        season: int = 0,
    ) -> None:
        """Sends browsers a page, and raises HTTPNotFound for programs.

        Programs get `detail` or, without it, the form of addresses. The page links to the season
        or, if that is not loaded, to the latest one.
        """
        resp.append_header("Vary", "Accept")
        if "text/html" not in req.accept:
            raise falcon.HTTPNotFound(description=detail or str(self.grammar.unknown(fault)))
        resp.status = falcon.HTTP_404
        resp.set_headers(HEADERS)
        resp.content_type = CONTENT_TYPE
        seasons = self.ask.catalogue.rounds
        facts = {"fault": fault, "season": season if season in seasons else max(seasons)}
        resp.text = self.render("not_found.html", req.path, facts)


class PageResource:
    """What answers requests for a page."""

    def __init__(self, pages: Pages, page: Page) -> None:
        self.pages, self.page, self.facts = pages, page, page.facts
        if page.has_query:
            # Not made at the first search: workers share what exists before they are forked.
            self.facts = partial(page.facts, names=find.AllNames(pages.ask))

    def on_get(self, req: falcon.Request, resp: falcon.Response, **parameters: Any) -> None:
        pages, page, answers = self.pages, self.page, self.pages.answers
        if fault := fault_of(pages.ask, **parameters):
            pages.send_not_found(req, resp, fault, season=parameters.get("season", 0))
            return
        if page.has_times:
            parameters["shown_times"], answers = pages.with_times()
        if page.has_query:  # its beginning; HTML cannot have control characters
            query = printable(req.get_param("q", default="")[: find.LONGEST])
            parameters["query"] = " ".join(query.split())

        def make() -> Body:
            facts = self.facts(pages.ask, **parameters)
            return Body(pages.render(page.template, req.path.lower(), facts).encode())

        resp.set_headers(HEADERS)
        key = page.route, repr(parameters)
        answers.respond(req, resp, CONTENT_TYPE, key, make, is_slow=True)

    on_head = on_get


def fault_of(ask: Ask, season: int | None = None, round: int | None = None, **ids: str) -> str:
    """Why there is no page of a season, of a race, or of what has an id; empty if there is one."""
    rounds = ask.catalogue.rounds
    if season is not None and season not in rounds:
        return f"Season {season} is not loaded"
    if season is not None and round is not None and round not in rounds[season]:
        return f"Season {season} has no round {round}"
    for kind, id in ids.items():
        if id not in ask.catalogue.ids[f"{kind}s"]:
            return f"No {kind} here has the id {id}"
    return ""


class Current:
    """Leads to the page of the current season, or of a race in it."""

    def __init__(self, pages: Pages, round: Round | None) -> None:
        self.pages, self.round = pages, round

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        found = self.pages.ask("races", "current", self.round)
        if not found:
            self.pages.send_not_found(req, resp, "No later race is loaded")
            return
        year, round = found[0]["season"], found[0]["round"]
        resp.status = falcon.HTTP_302
        resp.location = f"../{year}/{round}" if self.round else year

    on_head = on_get


PAGES = (
    Page("/", "home.html", home.facts, has_times=True),
    Page("/data", "data.html", data.facts, has_times=True),
    Page("/docs", "interface.html", interface.facts),
    Page("/find", "find.html", find.facts, has_query=True),
    Page("/{season:year}", "season.html", season.facts),
    Page("/{season:year}/{round:number}", "race.html", race.facts),
    Page("/{season:year}/discrepancies", "discrepancies.html", differing_values.discrepancies),
    Page("/seasons", "seasons.html", seasons.facts),
    Page("/records", "all_time.html", all_time.facts),
    Page("/drivers", "directory.html", directory.drivers),
    Page("/constructors", "directory.html", directory.constructors),
    Page("/circuits", "circuits.html", directory.circuits),
    Page("/discrepancies", "discrepancies.html", differing_values.discrepancies),
    Page("/changes", "changes.html", differing_values.changes),
    Page("/drivers/{driver:id}", "driver.html", career.driver),
    Page("/constructors/{constructor:id}", "constructor.html", career.constructor),
    Page("/circuits/{circuit:id}", "circuit.html", circuit.facts),
)

# The addresses that lead to other pages, with the round that they mean.
CURRENT: Mapping[str, Round | None] = {
    "/current": None,
    "/current/last": "last",
    "/current/next": "next",
}

FILES = {
    "/icon.svg": (ICON, "image/svg+xml"),
    "/manifest.webmanifest": (MANIFEST, "application/manifest+json"),
    "/card.png": (CARD, "image/png"),
}
