"""What an address selects in a database: `current`, `last` and `next`, and the ids of its filters.

Its words and ids become numbers of the database. The SQL of filters is in queries.py.
"""

from dataclasses import dataclass

from racedata.service.addresses import ICS, Address, Round, Season, Value
from racedata.service.catalogue import Catalogue
from racedata.service.queries import Wanted


class NoLastRound(LookupError):
    """`last` was requested for a season in which no race has results."""


@dataclass(frozen=True)
class Selection:
    """The season, the round and the records that an address selects.

    `wanted` is None if nothing can match, because an id or a round does not exist.
    """

    season: int | None
    round: int | None
    wanted: Wanted | None


def select(catalogue: Catalogue, address: Address) -> Selection:
    """The Selection of an address. Raises NoLastRound."""
    season, round = season_and_round(catalogue, address.season, address.round)
    # In winter the season has no races left, so subscribers also get the following seasons.
    with_following = address.season == "current" and address.ending == ICS
    if address.season == "current" and lists_races(address) and not with_following:
        # D9: clients look for the next race in the current season, even in winter
        season = catalogue.calendar_season
    wanted: dict[str, Value] = {}
    if season is not None and round is not None:
        race = catalogue.id_of_round.get((season, round))
        if race is None:
            return Selection(season, round, None)  # an empty list, not an error (D6)
        wanted["race"] = race
    elif season is not None:
        wanted["from_season" if with_following else "season"] = season
    for name, value in address.filters.items():
        if name in catalogue.ids:
            id = catalogue.ids[name].get(str(value))
            if id is None:
                return Selection(season, round, None)
            wanted[name] = id
        elif name != "fastest" or value != 0:  # D18: rank 0 is not a rank
            wanted[name] = value
    return Selection(season, round, wanted)


def season_and_round(
    catalogue: Catalogue, season: Season | None, round: Round | None
) -> tuple[int | None, int | None]:
    """Season and round as numbers. `current`, `last` and `next` depend only on the database."""
    last_races = catalogue.latest_with["results"]
    year = max(last_races) if season == "current" else season
    if year is None:
        return None, None
    last = catalogue.race_rows[last_races[year]]["round"] if year in last_races else 0
    if round == "last":
        if not last:
            # not round 1, which has no results (D10)
            raise NoLastRound(
                f"Season {year} has no last round yet, because none of its races has results."
            )
        return year, last
    if round == "next":
        # Not `coming`: a season before the current one may have races without results too.
        ahead = [number for number in catalogue.rounds.get(year, ()) if number > last]
        # The lowest round, even if one before it was cancelled (D11).
        # No season comes after 9999: an address has four digits.
        return (year, ahead[0]) if ahead else (min(year + 1, 9999), 1)
    return year, round


def wanted_standings(catalogue: Catalogue, table: str, wanted: Wanted) -> Wanted | None:
    """What chooses lists of standings: a race or `final` replaces the season.

    A season has many lists, one after each race. With a round, this chooses the list after that
    round; with only a season, the latest list; without a season, the `final` list of each
    finished season. None if the season has no standings.
    """
    if "race" in wanted:
        return wanted
    if "season" not in wanted:
        return {**wanted, "final": 1}  # of all seasons (D12)
    others = {name: value for name, value in wanted.items() if name != "season"}
    latest = catalogue.latest_with[table].get(int(wanted["season"]))
    return None if latest is None else {**others, "race": latest}


def lists_races(address: Address) -> bool:
    """Whether an address lists all races of a season, or those at a circuit."""
    return (
        address.endpoint == "races"
        and address.round is None
        and address.filters.keys() <= {"circuits"}
    )
