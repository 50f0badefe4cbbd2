"""The HTML pages of a season, `/2023`, and of a race, `/2023/18`: winners, champions, results.
`/current`, `/current/last` and `/current/next` redirect to them. Also the page that browsers get at
an unknown address.

They are outside the base address and work without scripts. Their facts are answers of the endpoints
(ask.py).
"""

import re
from functools import partial
from html import escape
from urllib.parse import quote

import falcon

from racedata.formats import Json
from racedata.service.ask import ALL, Ask
from racedata.service.caching import Body, CachedAnswers, compressed
from racedata.service.catalogue import Catalogue, full_name, place_of
from racedata.service.html import (
    CHAMPIONSHIPS,
    CONTENT_TYPE,
    HEADERS,
    document,
    entrant,
    in_zone,
    position,
    provisional_note,
    sessions_table,
    standings_tables,
    start_of,
    table,
    time_element,
    time_or_status,
)
from racedata.settings import Settings

LONGEST = 1000  # characters of an address; nginx refuses answers with very long headers
# The letters that a result may have as its position.
LETTERS = {
    "R": "retired",
    "D": "disqualified",
    "E": "excluded",
    "W": "withdrawn",
    "F": "failed to qualify",
    "N": "not classified",
}


class SeasonPages:
    """Answers requests for these pages, as a sink: a route would match `/2023x` and `/none`."""

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
        self.depth = settings.season_pages.count("/")
        self.prefix = re.compile(
            f"/{settings.season_pages}(?P<season>[1-9][0-9]{{3}})(?:/(?P<round>[1-9][0-9]{{0,17}}))?\\Z"
        )
        self.current = re.compile(f"/{settings.season_pages}current(?P<which>/last|/next)?\\Z")
        self.rounds: dict[int, list[int]] = {}  # by season, in order
        for year, number in catalogue.id_of_round:
            self.rounds.setdefault(year, []).append(number)

    def respond(self, req: falcon.Request, resp: falcon.Response, **numbers: str | None) -> None:
        year, number = int(numbers["season"] or 0), int(numbers["round"] or 0)
        if fault := self.fault(year, number):
            self.send_not_found(req, resp, fault, season=year)
            return
        if req.method == "OPTIONS":
            return
        resp.set_headers(HEADERS)
        self.answers.respond(
            req,
            resp,
            CONTENT_TYPE,
            key=(year, number),
            make=lambda: self.make_body(year, number),
        )

    def redirect(self, req: falcon.Request, resp: falcon.Response, **words: str | None) -> None:
        """Leads from `current`, `current/last` or `current/next` to the page they mean now."""
        which = words["which"] or ""
        races = self.ask(f"/current{which}", 1)
        if not races:
            self.send_not_found(req, resp, "No later race is loaded")
            return
        (race,) = races
        resp.status = falcon.HTTP_302
        resp.location = f"../{race['season']}/{race['round']}" if which else race["season"]

    def make_body(self, season: int, round: int) -> Body:
        html = self.race_page(season, round) if round else self.season_page(season)
        return Body(compressed(html.encode()))

    def fault(self, season: int, round: int) -> str:
        """The reason why there is no page; empty if there is one. Round 0 is the whole season."""
        if season not in self.rounds:
            return f"Season {season} is not loaded"
        if round and round not in self.rounds[season]:
            return f"Season {season} has no round {round}"
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
        season: int = 0,
    ) -> None:
        """Sends browsers a page, and raises HTTPNotFound for programs.

        Programs get `detail` or, without it, the form of addresses. The page links to `season` or,
        if that is not loaded, to the latest one.
        """
        resp.append_header("Vary", "Accept")
        if "text/html" not in req.accept:
            raise falcon.HTTPNotFound(description=detail or str(self.ask.grammar.unknown(fault)))
        resp.status = falcon.HTTP_404
        resp.set_headers(HEADERS)
        resp.content_type = CONTENT_TYPE
        root = up(req.path.count("/") - 1)
        offered = season if season in self.rounds else max(self.rounds)
        resp.text = self.page(
            root,
            "Not found",
            f"""<p>{fault}.</p>
<p>Go to <a href="{root}">the latest race and all seasons</a>, to a season, such as
<a href="{root}{self.settings.season_pages}{offered}">{offered}</a>, or to
<a href="{root}docs">the interface for programs</a>.</p>""",
        )

    def season_page(self, season: int) -> str:
        front = f"/{season}"
        before, after = neighbours(sorted(self.rounds), season)
        winners = {race["round"]: race["Results"] for race in self.ask(f"{front}/results/1", ALL)}
        rows = (
            (
                race["round"],
                link_to_race(race),
                "<br>".join(entrant(each) for each in winners.get(race["round"], ())),
            )
            for race in self.ask(front, ALL)
        )
        return self.page(
            up(self.depth),
            f"Season {season}",
            f"""<nav aria-label="Seasons">
{link(before, f"← {before}", "prev")}{link(after, f"{after} →", "next")}</nav>
{table("Races and their winners", ("Round", "Race", "Winner"), rows)}
{self.championships(front)}
<p><a href="{escape(self.settings.base_link + front)}.ics">Calendar of the season</a>
for a calendar app.</p>
{self.records("season", front)}""",
        )

    def race_page(self, season: int, round: int) -> str:
        front = f"/{season}/{round}"
        names: dict[int | None, str] = {
            int(race["round"]): race["raceName"] for race in self.ask(f"/{season}", ALL)
        }
        before, after = neighbours(self.rounds[season], round)
        (race,) = self.ask(front, 1)
        results = self.ask(f"{front}/results", ALL)
        show = in_zone if "time" in race else time_element
        start = show(start_of(race))
        if results:
            note = provisional_note(self.ask.provisional_source(race))
            outcome = note + results_table("Result", results[0]["Results"])
        else:
            outcome = f"""<p>No result of the race is loaded.</p>
{sessions_table(race)}
<p><a href="{escape(self.settings.base_link + front)}.ics">Calendar of the race</a>
for a calendar app.</p>"""
        return self.page(
            up(self.depth + 1),
            f"{race['raceName']} {season}",
            f"""<p>Round {round} of {season}. {escape(place_of(race["Circuit"]))}. {start}.</p>
<nav aria-label="Races">
{link(before, f"← {names.get(before)}", "prev")}<a href="../{season}">Season {season}</a>
{link(after, f"{names.get(after)} →", "next")}</nav>
{outcome}
{self.other_sessions(front)}
{self.records("race", front)}""",
        )

    def championships(self, front: str) -> str:
        """The standings of a season after its latest race that has some."""
        tables = [
            html
            for endpoint in CHAMPIONSHIPS
            for standings in self.ask(f"{front}/{endpoint}", ALL)
            for html in standings_tables(endpoint, standings, self.settings.base_link)
        ]
        return '<div class="standings">' + "\n".join(tables) + "</div>"

    def other_sessions(self, front: str) -> str:
        """The results of qualifying, the sprint and its qualifying, if they are loaded."""
        tables = [
            make(caption, race[self.ask.endpoints[endpoint].key])
            for endpoint, caption, make in (
                ("qualifying", "Qualifying", qualifying_table),
                ("sprint", "Sprint", results_table),
                ("sprintqualifying", "Sprint qualifying", partial(qualifying_table, prefix="S")),
            )
            for race in self.ask(f"{front}/{endpoint}", ALL)
        ]
        return "\n".join(tables)

    def records(self, what: str, front: str) -> str:
        """A table of all records of a season or race that are loaded, with links."""
        # An endpoint with a key has records of races.
        endpoints = [endpoint for endpoint in self.ask.endpoints.values() if endpoint.key]
        totals = {endpoint: self.ask.total(f"{front}/{endpoint.name}") for endpoint in endpoints}
        rows = [
            (escape(endpoint.summary), f"{total:,}", self.links(f"{front}/{endpoint.name}", total))
            for endpoint, total in totals.items()
            if total
        ]
        heads = ("Records", "Number", "Addresses")
        return table(f"All records of this {what}", heads, rows) if rows else ""

    def links(self, address: str, total: int) -> str:
        """Links to the records at an address, in each format. `total` counts them."""
        most = self.settings.max_limit
        query = f"?limit={most}" if total > self.settings.usual_limit else ""
        link = escape(self.settings.base_link + address)
        links = (
            f'<a href="{link}.{format}{query}">{format.upper()}</a>' for format in ("json", "csv")
        )
        return " ".join(links) + (f" (the first {most:,})" if total > most else "")

    def page(self, root: str, title: str, body: str) -> str:
        """A whole page. `root` leads to the home page."""
        return document(
            f"{title} - racedata",
            f'<p><a href="{root}">racedata</a></p>\n<h1>{escape(title)}</h1>\n{body}',
            self.settings.contact,
        )


def results_table(caption: str, results: list[Json]) -> str:
    """The classification of a race or sprint, its fastest lap, and what letters and grid 0 mean."""
    winner = results[0].get("Time")
    rows = (
        (
            position(each),
            entrant(each),
            *(escape(each.get(name, "")) for name in ("grid", "laps")),
            time_or_status(each, winner),
            escape(each.get("points", "")),
        )
        for each in results
    )
    heads = ("Pos", "Driver", "Grid", "Laps", "Time", "Points")
    positions = {each.get("positionText") for each in results}
    notes = [f"{letter}: {LETTERS[letter]}" for letter in LETTERS if letter in positions]
    if any(each.get("grid") == "0" for each in results):
        notes.append("grid 0: pit lane or no start")
    note = f"<p>{', '.join(notes)}.</p>" if notes else ""
    return f'<div class="race">{table(caption, heads, rows)}{fastest_laps(results)}{note}</div>'


def fastest_laps(results: list[Json]) -> str:
    """A line with the fastest lap. Several drivers may share it, as in 1954."""
    laps = []
    for each in results:
        lap = each.get("FastestLap", {})
        if lap.get("rank") == "1":
            time = [lap["Time"]["time"]] if "Time" in lap else []
            number = [f"lap {lap['lap']}"] if "lap" in lap else []
            laps.append(", ".join([full_name(each["Driver"]), *time, *number]))
    return f"<p>Fastest lap: {escape('; '.join(laps))}.</p>" if laps else ""


def qualifying_table(caption: str, results: list[Json], prefix: str = "") -> str:
    """A classification with each driver's time in each part that qualifying had.

    `prefix` is `S` for the parts of sprint qualifying: SQ1, SQ2, SQ3.
    """
    parts = [part for part in ("Q1", "Q2", "Q3") if any(part in each for each in results)]
    rows = (
        (
            escape(each.get("position", "")),
            entrant(each),
            *(escape(each.get(part, "")) for part in parts),
        )
        for each in results
    )
    heads = ("Pos", "Driver", *(prefix + part if len(parts) > 1 else "Time" for part in parts))
    return f'<div class="qualifying">{table(caption, heads, rows)}</div>'


def link_to_race(race: Json) -> str:
    """The name of a race as a link to its page, its date and its circuit."""
    page, circuit = f"{race['season']}/{race['round']}", escape(race["Circuit"]["circuitName"])
    day = time_element(race["date"])
    return f'<a href="{page}">{escape(race["raceName"])}</a> <small>{day}, {circuit}</small>'


def neighbours(numbers: list[int], number: int) -> tuple[int | None, int | None]:
    """The numbers before and after one of a sorted list; None at its ends."""
    index = numbers.index(number)
    before = numbers[index - 1] if index else None
    after = numbers[index + 1] if index + 1 < len(numbers) else None
    return before, after


def up(folders: int) -> str:
    """A relative link to the folder that is this many folders above the page's own."""
    return "../" * folders or "./"


def link(target: int | None, text: str, rel: str) -> str:
    """A link to the page before or after; nothing without a target."""
    if target is None:
        return ""
    return f'<a href="{target}" rel="{rel}">{escape(text)}</a>\n'
