"""Writes a static copy of the service: `racedata export site FOLDER`.

Any web server can serve its files, without a program. Each list has the bytes of the service's
answer with the largest `limit`. So a client gets all records, whatever parameters it adds. Pages
have no links with parameters.
site_folder.py has the rules of the folder.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit
from wsgiref.util import setup_testing_defaults

from racedata import __version__
from racedata.database import DatabaseError, default_path
from racedata.model import TABLE_BY_NAME
from racedata.service.addresses import ENDINGS, JSON, after_base
from racedata.service.app import App, create_app
from racedata.service.catalogue import Catalogue
from racedata.service.endpoints import ENDPOINTS
from racedata.service.pages.rendering import CONTENT_TYPE, render
from racedata.service.process_memory import collect_seldom, keep_what_exists
from racedata.service.request import FORMATS
from racedata.service.site_folder import FolderError, SiteFolder, site_folder
from racedata.service.snapshot import Snapshot
from racedata.settings import SettingError, Settings, argument
from racedata.values import Parser

LIMIT = 2000  # records; a longer list has no file
# Of each driver, constructor and circuit: the list with this one, and another.
BY_ID = {"circuits": "races", "constructors": None, "drivers": "results"}
# Clients spell these so, and a web server does not know that capitals do not matter (D1).
IN_CAPITALS = {
    "driverstandings": "driverStandings",
    "constructorstandings": "constructorStandings",
}
README, HEADERS, NOT_FOUND = "README.txt", "_headers", "404.html"
TOTAL = re.compile(rb'"total":"([0-9]+)"')


class Answer(NamedTuple):
    """An answer of the service."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def total(self) -> int:
        """How many records the whole list has; 0 if it is no list."""
        if "x-total-count" in self.headers:
            return int(self.headers["x-total-count"])
        found = TOTAL.search(self.body, 0, 1000)
        return int(found[1]) if found else 0

    @property
    def is_page(self) -> bool:
        return self.headers["content-type"].startswith("text/html")


def settings_of_copy(settings: Settings) -> Settings:
    """These settings without limits. Without a base URL, `MRData.url` is a path."""
    return replace(
        settings,
        is_static=True,
        base_url=settings.base_url or settings.base_address,
        max_limit=LIMIT,
        default_limit=LIMIT,
        burst_limit=None,
        sustained_limit=None,
        download=False,
        cache_size=0,  # each answer is made once
    )


class Site:
    """The service over a database, in this process, and the addresses that a copy has."""

    def __init__(self, settings: Settings, data: Snapshot) -> None:
        self.settings, self.data = settings_of_copy(settings), data
        self.app: App = create_app(self.settings, data)
        self.left_out: set[str] = set()  # lists that are too long: addresses without an ending

    def ask(self, address: str, query: str = "") -> Answer:
        environ: dict[str, Any] = {
            "PATH_INFO": address,
            "QUERY_STRING": query,
            "HTTP_HOST": "localhost",
            "HTTP_ACCEPT": "text/html",
            "wsgi.errors": sys.stderr,
        }
        setup_testing_defaults(environ)  # adds what else a server would
        started: list[Any] = []
        body = b"".join(self.app(environ, lambda *given: started.extend(given)))  # type: ignore[arg-type]
        return Answer(int(started[0].split()[0]), dict(started[1]), body)

    def lists(self) -> Iterator[str]:
        """The addresses of the lists that a copy has even if no page links to them: in each format,
        those of all seasons and of each; only as JSON, those of a race, a driver and so on.
        """
        base, catalogue = self.settings.base_address, Catalogue(self.data)
        seasons = ["", "/current", *(f"/{season}" for season in catalogue.rounds)]
        races = ["/current/last", "/current/next"]
        races += [f"/{season}/{round}" for season, of in catalogue.rounds.items() for round in of]
        for endpoint in ENDPOINTS:
            # the only endpoint that needs no name
            for name in ("/races", "") if endpoint.name == "races" else (f"/{endpoint.name}",):
                for season in seasons:
                    if season or not endpoint.rules.needs_season:
                        yield from (f"{base}{season}{name}{end}" for end in endpoint.rules.endings)
                if endpoint.is_asked_by_race:
                    yield from (f"{base}{race}{name}{JSON}" for race in races)
        for kind, other in BY_ID.items():
            for each in catalogue.lists[kind].values():
                # as in answers: it may have capitals
                address = f"{base}/{kind}/{each[TABLE_BY_NAME[kind].id_key]}"
                yield f"{address}{JSON}"
                if other:
                    yield f"{address}/{other}{JSON}"

    def answers(self) -> Iterator[tuple[str, Answer]]:
        """The addresses of a copy with their answers: all routes and lists, and what pages link
        to.
        """
        lists = dict.fromkeys(self.lists())
        pages = {path for path in self.app.routes if "{" not in path and not self.is_list(path)}
        seen = pages | lists.keys()
        waiting = [*lists, *sorted(pages)]
        while waiting:
            address = waiting.pop()
            answer = self.ask(address, f"limit={LIMIT}" if self.is_list(address) else "")
            if answer.status == 302:  # a web server has no such answer, so a page leads there
                page = render("moved.html", address, location=answer.headers["location"])
                answer = Answer(200, {"content-type": CONTENT_TYPE}, page.encode())
            if answer.total > LIMIT:
                self.left_out.add(address.rpartition(".")[0])
            elif answer.status == 200:
                yield address, answer
                found = {*self.links(address, answer)} - seen
                waiting += sorted(found)
                seen |= found

    def links(self, address: str, answer: Answer) -> Iterator[str]:
        """The paths of this service to which a page links, of lists only files."""
        if answer.is_page:
            for link in dict.fromkeys(re.findall('href="([^"]*)"', answer.body.decode())):
                link = unescape(link)
                if link.startswith(self.settings.base_url):
                    link = self.settings.base_address + link[len(self.settings.base_url) :]
                path = path_of(address, link)
                if path and (not self.is_list(path) or path.endswith(ENDINGS)):
                    yield path

    def is_list(self, address: str) -> bool:
        """Whether an address is below the base address, where the endpoints are."""
        return after_base(address, self.settings.base_address.lower()) is not None

    def files(self, address: str, is_page: bool) -> list[str]:
        """The files with the answer at an address. If an id has capitals, so do answers, but
        `MRData.url` and `og:url` do not.
        """
        base = self.settings.base_address if self.is_list(address) else ""
        spellings = dict.fromkeys([address, base + address[len(base) :].lower()])
        return [name for each in spellings for name in files_of(each, is_page)]

    def write(self, folder: SiteFolder) -> None:
        """Writes all files. Raises FolderError or OSError."""
        for address, answer in self.answers():
            for name in self.files(address, answer.is_page):
                folder.put(name, answer.body)
        folder.put(NOT_FOUND, self.ask("/404").body)
        folder.put(HEADERS, self.headers().encode())
        folder.put(README, self.readme().encode())

    def headers(self) -> str:
        """A file that some hosts read: the headers that their own rules do not give."""
        lines = ["/*", "  Access-Control-Allow-Origin: *", "  X-Content-Type-Options: nosniff"]
        for ending, format in FORMATS.items():
            lines += [f"{self.settings.base_address}/*{ending}"]
            lines += [f"  Content-Type: {format.content_type}"]
        return "\n".join([*lines, "/healthz", "  Content-Type: application/json", ""])

    def readme(self) -> str:
        return README_TEXT.format(
            version=__version__,
            built=self.data.build()["builtAt"],
            licence=self.data.licence(),
            limit=f"{LIMIT:,}",
            lists="\n".join(f"    {each}" for each in sorted(self.left_out)) or "    none",
        )


README_TEXT = """\
A static copy of a service of racedata {version}
over the database that was built at {built}

Licence of the data: {licence}.

Each list has the bytes of the service's answer with limit={limit}. Parameters change nothing: a
list is always whole, and a calendar always has all sessions. docs/static.md describes how to
publish a copy.

These lists have more than {limit} records, so they have no file:
{lists}
"""


def path_of(address: str, link: str) -> str:
    """The path to which a link on the page at an address leads; empty if that is elsewhere."""
    parts = urlsplit(urljoin(f"http://localhost{address}", link))
    return parts.path if (parts.scheme, parts.netloc) == ("http", "localhost") else ""


def files_of(address: str, is_page: bool) -> list[str]:
    """The files with the answer at an address. The page at `/2023` is `2023.html`, because its
    links are relative to an address without a slash at the end.
    """
    name = address.strip("/")
    if is_page:
        return [f"{name or 'index'}.html"]
    return [name, *(name.replace(*each) for each in IN_CAPITALS.items() if each[0] in name)]


def export(settings: Settings, path: str) -> str:
    """Writes a copy to the folder at a path. Returns a report.

    Raises DatabaseError, FolderError or OSError.
    """
    begun = time.monotonic()
    site = Site(settings, Snapshot.read(settings.database))
    keep_what_exists()
    collect_seldom()
    with site_folder(path) as folder:
        site.write(folder)
        deleted = folder.finish()
    return (
        f"{path}: {len(folder.kept):,} files, {folder.size:,} bytes; {folder.written:,} written, "
        f"{deleted:,} deleted in {time.monotonic() - begun:.0f} seconds\n"
        f"{len(site.left_out):,} lists have more than {LIMIT:,} records and no file; see {README}\n"
    )


def report(arguments: Sequence[str]) -> str:
    """The report of the command. Exits with one line if it fails."""
    default = default_path(os.environ).replace("%", "%%")
    parser = argparse.ArgumentParser(
        prog="racedata export site",
        description="Write all answers as files, so that any web server can serve them.",
        epilog="A second export writes only what has changed, and deletes what is gone. Settings "
        "in the environment count as for `racedata serve`.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "folder",
        type=argument(Parser("the path of a folder", ".+")),
        metavar="FOLDER",
        help="a new or empty folder, or an earlier copy",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        help="start of MRData.url and of links to answers, such as "
        "https://f1.example.org/ergast/f1 (RACEDATA_BASE_URL; default: a path)",
    )
    parser.add_argument(
        "--database",
        metavar="FILE",
        help=f"the database file (RACEDATA_DATABASE; default: {default})",
    )
    parsed = parser.parse_args(arguments)
    options = {name: value for name, value in vars(parsed).items() if value is not None}
    folder = options.pop("folder")
    try:
        return export(Settings.read(os.environ, options), folder)
    except (SettingError, DatabaseError, FolderError) as error:
        sys.exit(f"racedata export site: {error}")
    except OSError as error:
        # the second is the place of a file, if it cannot be moved there
        file = error.filename2 or error.filename or folder
        sys.exit(f"racedata export site: {file}: {error.strerror}")
