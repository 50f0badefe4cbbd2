"""The HTML page at `/`: what is loaded, and from which sources.

Fixed text is in home.html. The season is in latest.py.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from html import escape
from importlib.resources import files
from itertools import groupby
from sqlite3 import Row
from string import Template

import falcon

from racedata.formats import counted, public_name, public_url
from racedata.model import KINDS
from racedata.service import latest, queries
from racedata.service.ask import Ask
from racedata.service.caching import Validators
from racedata.service.catalogue import Catalogue
from racedata.service.document import Document
from racedata.service.html import (
    CONTENT_TYPE,
    HEADERS,
    ago,
    document,
    in_zone,
    time_element,
    with_link,
)
from racedata.service.snapshot import Snapshot
from racedata.service.sources import COPIED, RefreshNotes, is_database
from racedata.settings import Settings

# Names that begin with a dollar sign are filled in.
BODY = files(__package__).joinpath("home.html").read_text(encoding="utf-8")
RefreshTimes = Mapping[str, str]  # when a refresh last read each source
# marks that `HomePage` replaces; no text contains them, because texts are escaped
LAST_CHECK, SOURCES = "<!--checked-->", "<!--sources-->"


# Labels of the tables whose rows are counted.
TABLE_LABELS = {
    "races": "Races",
    "circuits": "Circuits",
    "drivers": "Drivers",
    "constructors": "Constructors",
}


class HomePage:
    """The resource of `/`, made once per database and again when a refresh has asked a source.

    `validators` makes the Validators for the times of all refreshes.
    """

    def __init__(
        self,
        data: Snapshot,
        notes: RefreshNotes,
        html: str,
        validators: Callable[[RefreshTimes], Validators],
    ) -> None:
        self.notes = notes
        self.html = html
        self.validators = validators
        self.sources = data.sources()
        self.newest = queries.newest_records(data)
        self.built = data.build()["builtAt"]
        self.cached = self.make({})

    def make(self, times: RefreshTimes) -> tuple[RefreshTimes, Document]:
        """The times at which refreshes last asked the sources, and the page, as a Document."""
        text, last_check = "", max(times.values(), default="")
        if last_check > self.built:  # else the build was later
            text = f"<p>Sources last checked {ago(last_check)}.</p>"
        items = source_items(self.sources, self.newest, times)
        html = self.html.replace(LAST_CHECK, text).replace(SOURCES, "\n".join(items))
        return times, Document(self.validators(times), html, CONTENT_TYPE, HEADERS)

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


def html(settings: Settings, data: Snapshot, catalogue: Catalogue, ask: Ask) -> str:
    """The page, as HTML. `HomePage` replaces LAST_CHECK and SOURCES."""
    notice = data.sample_notice(settings.follows)
    body = Template(BODY).substitute(
        banner=f'<p id="sample">{escape(notice)}</p>' if notice else "",
        checked=LAST_CHECK,
        next_race=latest.next_race(ask, settings.base_link, settings.season_pages),
        last_race=latest.last_race(ask, settings.base_link, settings.season_pages),
        championships="\n".join(latest.championships(ask, settings.base_link)),
        seasons="\n".join(season_links(catalogue, settings.season_pages)),
        base=escape(settings.base_link),
        facts="\n".join(
            f"<div><dt>{name}</dt><dd>{value}</dd></div>"
            for name, value in loaded_facts(data, settings)
        ),
        coverage="\n".join(coverage_rows(data.coverage())),
        sources=SOURCES,
        licence=escape(data.licence()),
        download=download_block(settings, data),
    )
    return document("racedata: Formula One data", body, settings.contact)


def season_links(catalogue: Catalogue, pages: str) -> Iterator[str]:
    """Links to the pages of all seasons with races, by decade, the latest first, as HTML."""
    for decade, seasons in groupby(
        sorted({year for year, _ in catalogue.id_of_round}, reverse=True),
        key=lambda season: season // 10 * 10,
    ):
        links = " ".join(f'<a href="{pages}{season}">{season}</a>' for season in seasons)
        yield f"<div><dt>{decade}s</dt><dd>{links}</dd></div>"


def loaded_facts(data: Snapshot, settings: Settings) -> Iterator[tuple[str, str]]:
    """Facts about the loaded data: names, and values as HTML."""
    build, counts = data.build(), data.row_counts()
    yield "Seasons", "{}, from {} to {}".format(*queries.seasons_loaded(data))
    for table, name in TABLE_LABELS.items():
        yield name, f"{counts[table]:,}"
    corrections, _ = queries.corrections(data, {}, 0, 0)
    if corrections:
        link = f"{settings.base_link}/corrections.json"
        yield (
            "Corrections",
            with_link(f"{counted(corrections, 'value')} corrected (JSON)", link),
        )
    yield "Built", in_zone(build["builtAt"])


def coverage_rows(coverage: Mapping[str, Mapping[str, int]]) -> Iterator[str]:
    """The rows of the coverage table, as HTML."""
    for kind in KINDS.values():
        if numbers := coverage.get(kind.name):
            first, last, races, run = (numbers[key] for key in ("first", "last", "races", "run"))
            seasons = f"{first} to {last}" if first < last else str(first)
            of = f" of {run:,}" if races < run and kind.has_every_race else ""
            all_ = "all " if races == run else ""
            cells = f"<td>{seasons}</td><td>{all_}{races:,}{of}</td>"
        else:
            cells = "<td>none</td><td>none</td>"
        yield f'<tr><th scope="row">{kind.label}</th>{cells}</tr>'


def source_items(
    sources: Iterable[Row], newest: Mapping[str, Row], times: RefreshTimes
) -> Iterator[str]:
    """The sources as HTML: how fresh each is, its licence, and the records that it gave.

    Sources come last if they were asked but have given nothing yet.
    """
    other_times = {**times}
    for source in sources:
        name, url = public_name(source["name"]), public_url(source["address"])
        licence, records = source["licence"] or "not stated", source["gave"] or "none"
        if source["isProvisional"] and source["gave"]:
            records += "; provisional, until another source has them"
        fresh = freshness(source["readAt"], other_times.pop(source["name"], ""))
        if newest_of_source := newest.get(source["name"]):
            fresh = f"{newest_in_words(newest_of_source)} {fresh}"
        yield f"""<div><dt>{with_link(name, url)}</dt>
<dd><p>{fresh}</p><p>Licence: {escape(licence)}.</p><p>Records: {escape(records)}.</p></dd></div>"""
    for name, at in other_times.items():
        if is_database(name):  # then all of the above was copied from there
            yield f"<div><dt>{COPIED}</dt><dd><p>{freshness('', at)}</p></dd></div>"
            continue
        link = with_link(public_name(name), public_url(name))
        yield f"<div><dt>{link}</dt><dd><p>{freshness('', at)}</p><p>Records: none.</p></dd></div>"


def newest_in_words(newest: Row) -> str:
    """A sentence about the newest records of a source: their kind, and their race."""
    label = f"{KINDS[newest['kind']].label} up to the {newest['race']}"
    return f"<b>{escape(label)}</b>, {time_element(newest['date'])}."


def freshness(read_at: str, refreshed_at: str) -> str:
    """A sentence that says when a source was last read or, if later, asked for new data."""
    verb, at = (
        ("Checked for new data", refreshed_at) if refreshed_at > read_at else ("Read", read_at)
    )
    return f"{verb} {ago(at)}."


def download_block(settings: Settings, data: Snapshot) -> str:
    """How to download the database, as HTML; nothing if the service does not offer it."""
    if not settings.download:
        return ""
    return (
        f'<p id="download"><a href="racedata.db">racedata.db</a> is the whole database, an SQLite '
        f"file of {data.file.size / 1e6:.1f} MB. Its data is under the licences of its "
        '<a href="#sources">sources</a>.</p>'
    )
