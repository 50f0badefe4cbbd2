"""The page of a driver, such as `/drivers/alonso`: career, seasons, wins, team mates."""

from itertools import groupby
from typing import Any

from racedata.formats import public_url
from racedata.service.pages import career
from racedata.service.pages.ask import Ask


def facts(ask: Ask, driver: str) -> dict[str, Any]:
    who = ask.object("driver", driver)
    mates = [
        (row, ask.object("driver", row["mate"]), ask.object("constructor", row["constructor"]))
        for row in ask.rows("mates", who["driverId"])
    ]
    return {
        **career.facts(ask, "driver", who["driverId"]),
        "driver": who,
        "article": public_url(who.get("url", "")),
        "mates": [(year, [*of_year]) for year, of_year in groupby(mates, lambda m: m[0]["year"])],
    }
