"""The page of a constructor, such as `/constructors/ferrari`: history, seasons, wins."""

from typing import Any

from racedata.colours import newest_colour
from racedata.formats import public_url
from racedata.service.pages import career
from racedata.service.pages.ask import Ask
from racedata.service.request import ALL


def facts(ask: Ask, constructor: str) -> dict[str, Any]:
    who = ask.object("constructor", constructor)
    return {
        **career.facts(ask, "constructor", who["constructorId"]),
        "constructor": who,
        "article": public_url(who.get("url", "")),
        "colour": newest_colour(who["constructorId"]),
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
