"""An API in Ergast's format as a source, such as Jolpica-F1 or racedata itself: which seasons to
ask for.
"""

from collections.abc import Sequence

from racedata import values
from racedata.formats import HTTP, counted, without_query
from racedata.hints import COMMAND
from racedata.loader.errors import LoadError, Progress
from racedata.loader.http import host_of
from racedata.loader.schedule import Expected
from racedata.loader.sources.api_client import JOLPICA_LIMITS, JOLPICA_URL, Api, digest_of
from racedata.loader.sources.api_rows import rows_of
from racedata.loader.sources.api_season import SeasonFetch, fetch_calendar, is_changed, licence_of
from racedata.loader.sources.history import History
from racedata.loader.sources.pace import Pace
from racedata.loader.sources.source import Source, Task, check_season
from racedata.loader.stage import Stage
from racedata.model import KINDS, RECORDS, TABLE_BY_NAME

REQUESTS_OF_SEASON = 350  # with pages of 100 records


class ApiSource(Source):
    """An API. Each season is stored before the next is fetched."""

    # Kinds that an API may lack are not asked for alone: they are fetched with the results.
    kinds = tuple(kind for kind in RECORDS if KINDS[kind].is_in_every_api)
    publishes_after_race = False
    is_api = True

    @classmethod
    def accepts(cls, address: str) -> bool:
        return HTTP.match(address) is not None and not without_query(address).endswith(".zip")

    def __init__(self, address: str, pace: Pace) -> None:
        super().__init__(address.rstrip("/"), pace)
        if host_of(self.address) == host_of(JOLPICA_URL):
            pace.limits = JOLPICA_LIMITS
        self.licence = licence_of(self.address)

    def read(self, stage: Stage) -> None:
        address = without_query(self.address)
        raise LoadError(
            f"{address}: is taken for an API, which is not loaded whole; expected a URL that ends "
            f"with .zip, or {COMMAND} refresh --from {address}"
        )

    def has_news(self, expected: Sequence[Expected], history: History, progress: Progress) -> bool:
        api = Api(self.address, progress, self.pace)
        return any(is_new(api, each, history) for each in expected)

    def bring(self, task: Task) -> str:
        requests = self.pace.requests
        api = Api(self.address, task.progress, self.pace)
        listed = {str(season.get("season")): season for (season,) in api.records("seasons")}
        if not listed or not all(map(values.year.fullmatch, listed)):
            what = f"seasons {', '.join(listed)[:80]!r}; expected years from 1950 on"
            raise LoadError(f"{api.address('seasons')}: {what}")
        seasons = {int(year): facts for year, facts in sorted(listed.items())}
        if task.season:
            check_season(task.season, list(seasons), api.address("seasons"))
        with task.history.database() as old:
            # Seasons filled in by another source still need laps.
            filled_in = old.without_laps(also_from_apis=False).values()
            first = task.season or min([task.first, old.first_season(list(seasons)), *filled_in])
        notes = dict(task.history.notes)
        years = [task.season] if task.season else [year for year in seasons if year >= first]
        if len(years) > 2:  # in winter, there are two
            what = f"{years[0]} to {years[-1]}: about {REQUESTS_OF_SEASON} requests for each season"
            task.say(f"{what}; loading a dump first is quicker: {COMMAND} load SOURCE")
        calendars = 0
        for year in years:
            with task.history.database() as old:
                races = fetch_calendar(api, year)
                # in winter, an API may list the next season before its calendar is known
                if not races:
                    continue
                calendars += 1
                fetched = SeasonFetch(api, old, seasons[year], races, bool(task.season), notes)
                fetched.fetch()
                notes["notServed"] = sorted(fetched.not_served)
                task.say(fetched.report())
                task.deliver(fetched.delivery())
        if not calendars:
            what = f"no races in any season from {first} on; expected the calendar of at least one"
            raise LoadError(f"{api.url}: {what}")
        sent = counted(self.pace.requests - requests, "request")
        return f" after {sent} to {self.address}"


def is_new(api: Api, expected: Expected, history: History) -> bool:
    """Whether an API has these records, and the database lacks them or has others."""
    table = TABLE_BY_NAME[expected.kind]
    if not table.endpoint:
        return False
    path = f"{expected.year}/{expected.round}/{table.endpoint}"
    page = api.page(path, 0)
    if not expected.is_stored or not page.records:
        return bool(page.records)
    place, records = api.address(path), [record[-1] for record in page.records]
    if history.notes.get("seen", {}).get(path) == digest_of(records):
        return False
    with history.database() as old:
        id = old.race_id(expected.year, expected.round)
        return is_changed(list(rows_of(records, table, place)), old.rows(table, id))
