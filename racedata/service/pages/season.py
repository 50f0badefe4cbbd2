"""The page of a season, such as `/2023`: its races with their winners, and both championships."""

from collections.abc import Sequence
from typing import TypedDict

from racedata.formats import Json
from racedata.service.pages import races
from racedata.service.pages.ask import ALL, Ask
from racedata.service.pages.races import Championship, Records
from racedata.settings import Settings


class Facts(TypedDict):
    base: str  # a link to the base address
    season: int
    before: int | None
    after: int | None
    races: list[tuple[Json, list[Json]]]  # with their winners: two of them if they shared a car
    championships: list[Championship]
    records: list[Records]


def facts(settings: Settings, ask: Ask, seasons: Sequence[int], season: int) -> Facts:
    """What season.html shows. `seasons` are all that have a page, in order."""
    front = f"/{season}"
    before, after = races.neighbours(seasons, season)
    winners = {race["round"]: race["Results"] for race in ask(f"{front}/results/1", ALL)}
    return Facts(
        base=settings.base_link,
        season=season,
        before=before,
        after=after,
        races=[(race, races.places(winners.get(race["round"], []))) for race in ask(front, ALL)],
        championships=[*races.championships(ask, front)],
        records=[*races.records(settings, ask, front)],
    )
