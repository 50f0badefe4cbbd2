"""The page of a constructor, such as `/constructors/ferrari`: history, seasons, wins."""

from collections.abc import Iterator
from typing import Any

from racedata.colours import newest_colour
from racedata.formats import Json, public_url
from racedata.service.pages import career
from racedata.service.pages.ask import Ask
from racedata.service.request import ALL


def facts(ask: Ask, constructor: str) -> dict[str, Any]:
    id = ask.catalogue.ids["constructors"][constructor]
    who = ask.catalogue.constructors[id]
    return {
        **career.facts(ask, career.CONSTRUCTOR, constructor),
        "constructor": who,
        "article": public_url(who.get("url", "")),
        "colour": newest_colour(who["constructorId"]),
        # other constructors that a source counts as one with it, with their wins
        "relatives": [*relatives(ask, constructor)],
        # the seasons in which its driver was champion
        "drivers_titles": [
            season["season"]
            for season in ask("driverstandings", ALL, driverstandings="1")
            for champion in season["DriverStandings"]
            # the last constructor that the driver joined, as in the view driver_championship
            if [each["constructorId"] for each in champion["Constructors"]][-1:]
            == [who["constructorId"]]
        ],
    }


def relatives(ask: Ask, constructor: str) -> Iterator[tuple[Json, int]]:
    """Constructors with this one's id in a source: f1db has one for several engines."""
    own = {*ask.ids_of_sources.get(("constructor", constructor), ())}
    for id, who in ask.catalogue.constructors.items():
        other = who["constructorId"]
        ids = ask.ids_of_sources.get(("constructor", other), ())
        if other != constructor and not own.isdisjoint(ids):
            wins = sum(
                any(winner["constructorId"] == id for winner in winners)
                for winners in ask.winners.values()
            )
            yield who, wins


def fault(ask: Ask, constructor: str) -> str:
    return career.unknown(ask, "constructors", "constructor", constructor)
