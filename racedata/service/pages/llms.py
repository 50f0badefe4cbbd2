"""The page at `/llms.txt`: where AI assistants find what, in plain text.

The text is in llms.txt.
"""

from typing import Any

from racedata.service import queries
from racedata.service.pages.ask import Ask


def facts(ask: Ask) -> dict[str, Any]:
    settings, seasons = ask.settings, ask.catalogue.rounds
    return {
        "first": min(seasons),
        "last": max(seasons),
        "example": "{}/{}".format(*queries.example_race(ask.data)),
        "endpoints": [*ask.endpoints.values()],
        "default_limit": settings.usual_limit,
        "max_limit": settings.max_limit,
    }
