"""All names of drivers, constructors, circuits, seasons and races, with the words by which each can
be found: without accents, in small letters.
"""

import re
from collections.abc import Iterable, Iterator
from sqlite3 import Row
from typing import NamedTuple

from racedata.formats import counted, without_accents
from racedata.service.pages.ask import Ask
from racedata.service.pages.rendering import in_words
from racedata.service.words import full_name, place_of

# What fans call a driver, constructor or circuit, or called it once, if no source does: by our id.
NICKNAMES = {
    "alonso": "nando",
    "americas": "cota",
    "michael_schumacher": "schumi",
    "perez": "checo",
    "prost": "professor",
    "rb": "vcarb",
    "raikkonen": "iceman",
    "red_bull_ring": "osterreichring a1 a1ring",
    "ricciardo": "honey badger danny ric",
}


class Name(NamedTuple):
    """A name that can be found."""

    text: str
    link: str  # of its page, below `/`
    detail: str
    weight: int  # of two that match as well, the one with more is first
    main: str  # by which it is in order, such as a surname: as in `words`
    words: str  # all words, with a space before and after each


def plain(text: str) -> str:
    """The words of a text in small letters, without accents and signs: `o connor`."""
    return " ".join(re.findall(r"[^\W_]+", without_accents(text)))


def make_name(
    text: str, link: str, details: Iterable[str | None], weight: int, main: str, *others: str
) -> Name:
    words = " ".join(map(plain, [text, *others]))
    return Name(text, link, ", ".join(filter(None, details)), weight, plain(main), f" {words} ")


def names_by_kind(ask: Ask) -> dict[str, list[Name]]:
    """All names; seasons and races in order, the latest first."""
    return {
        "Drivers": [*driver_names(ask)],
        "Constructors": [*constructor_names(ask)],
        "Circuits": [*circuit_names(ask)],
        "Seasons": [
            make_name(f"Season {year}", str(year), [], 0, str(year))
            for year in sorted(ask.catalogue.rounds, reverse=True)
        ],
        "Races": [*race_names(ask)],
    }


def driver_names(ask: Ask) -> Iterator[Name]:
    starts_of = rows_by_id(ask, "driver")
    for who in ask.catalogue.drivers.values():
        detail, starts = in_seasons(starts_of.get(who["driverId"]), "start")
        yield make_name(
            full_name(who),
            f"drivers/{who['driverId']}",
            [who.get("nationality"), detail],
            starts,
            who["familyName"],
            *(who.get(key, "") for key in ("code", "permanentNumber", "nationality")),
            other_names(ask, "driver", who["driverId"]),
        )


def constructor_names(ask: Ask) -> Iterator[Name]:
    starts_of = rows_by_id(ask, "constructor")
    for who in ask.catalogue.constructors.values():
        detail, starts = in_seasons(starts_of.get(who["constructorId"]), "start")
        yield make_name(
            who["name"],
            f"constructors/{who['constructorId']}",
            [who.get("nationality"), detail],
            starts,
            who["name"],
            who["name"].replace(" ", ""),  # redbull
            who.get("nationality", ""),
            other_names(ask, "constructor", who["constructorId"]),
        )


def circuit_names(ask: Ask) -> Iterator[Name]:
    run_at = rows_by_id(ask, "circuit")
    for what in ask.catalogue.circuits.values():
        detail, run = in_seasons(run_at.get(what["circuitId"]), "race")
        yield make_name(
            what["circuitName"],
            f"circuits/{what['circuitId']}",
            [*(what["Location"].get(key) for key in ("locality", "country")), detail],
            run,
            what["circuitName"],
            place_of(what),
            other_names(ask, "circuit", what["circuitId"]),
        )


def race_names(ask: Ask) -> Iterator[Name]:
    circuits = {name.link: name for name in circuit_names(ask)}
    races = ask.catalogue.calendar.values()
    for race in sorted(races, key=lambda race: str(race["date"]), reverse=True):
        circuit = circuits[f"circuits/{race['Circuit']['circuitId']}"]
        text = f"{race['raceName']} {race['season']}"
        link = f"{race['season']}/{race['round']}"
        details = [in_words(race["date"]), circuit.text]
        yield make_name(text, link, details, 0, text, circuit.words)


def other_names(ask: Ask, kind: str, id: str) -> str:
    """The id of a driver, constructor or circuit, what sources call it, and nicknames."""
    return " ".join([id, *ask.ids_of_sources.get((kind, id), ()), NICKNAMES.get(id, "")])


def rows_by_id(ask: Ask, who: str) -> dict[str, Row]:
    """How many starts each had, and when."""
    return {row[0]: row for row in ask.rows("starts", who=who)}


def in_seasons(row: Row | None, noun: str) -> tuple[str, int]:
    """`2001 to 2025, 425 starts`, and this number."""
    if row is None:
        return f"no {noun}", 0
    years = f"{row['first']} to {row['last']}" if row["first"] < row["last"] else row["first"]
    return f"{years}, {counted(row['races'], noun)}", row["races"]
