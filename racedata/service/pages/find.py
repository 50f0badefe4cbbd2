"""The page at `/find`: drivers, constructors, circuits, races and seasons by a part of their name.

All words of the query must be found. If nothing has all of them, such as `hamilton vs russell`,
words for a part of a page are left out (`senna poles` leads to his poles, `pit stops monza 2021` to
those of this race); then words that no name has are replaced with similar ones, and then drivers,
constructors and circuits that have one of the words are found. The season of a year in the query is
always found. How words match is in names.py.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from racedata.formats import Json
from racedata.service.addresses import Value
from racedata.service.pages import all_time, driver
from racedata.service.pages.ask import Ask
from racedata.service.pages.career import CONSTRUCTOR, DRIVER
from racedata.service.pages.names import SHOWN, AllNames, Found, Name, RacesOfName, plain
from racedata.service.pages.races import place
from racedata.service.request import ALL
from racedata.service.words import NOT_HERE, place_in_words, points_in_words

LONGEST = 100  # characters of a query; no name is so long
# Words that several lists below have.
LAP = ("lap", "laps")
PIT_STOPS = ("pit", "pitstop", "pitstops", "stop", "stops")
POLE = ("pole", "poles")
PRACTICE = ("fp1", "fp2", "fp3", "practice", "training")
QUALIFYING = ("q1", "q2", "q3", "quali", "qualifying")
RACES = ("calendar", "race", "races", "schedule", "sprint", "sprints")
RESULT = ("result", "results")
STANDINGS = ("championship", "leader", "leads", "points", "standings")
WIN = ("victories", "win", "wins")
# Which part of a page a word means. The pages of drivers and constructors share most words.
OF_A_CAREER = {
    **dict.fromkeys((*WIN, "won"), "wins"),
    **dict.fromkeys(POLE, "poles"),
    **dict.fromkeys(("mate", "mates", "teammate", "teammates"), "mates"),
    **dict.fromkeys((*RESULT, "career", "podiums", "seasons", "starts", "titles"), "seasons"),
}
PARTS: Mapping[str, Mapping[str, str]] = {
    "Drivers": OF_A_CAREER,
    "Constructors": {**OF_A_CAREER, "drivers": "seasons"},
    "Circuits": dict.fromkeys((*WIN, "winner", "winners"), "winners"),
    "Seasons": {
        **dict.fromkeys(PIT_STOPS, "stops"),
        **dict.fromkeys((*RACES, *RESULT), "races"),
        **dict.fromkeys(
            (*STANDINGS, "constructor", "constructors", "drivers", "team", "teams"),
            "championships",
        ),
        **dict.fromkeys(WIN, "wins"),
    },
    "Races": {
        **dict.fromkeys(("sprint", "sprints"), "sprint"),
        **dict.fromkeys(QUALIFYING, "qualifying"),
        **dict.fromkeys(PRACTICE, "practice"),
        **dict.fromkeys((*POLE, "grid"), "grid"),
        **dict.fromkeys(PIT_STOPS, "stops"),
        **dict.fromkeys(LAP, "fastest"),
        **dict.fromkeys(RESULT, "race"),
    },
}
# What headings call parts that have another name in their address.
NAMES_OF_PARTS = {
    "fastest": "fastest laps",
    "mates": "team mates",
    "race": "result",
    "sprintqualifying": "sprint qualifying",
    "stops": "pit stops",
}
RECORDS = ("records", "records")
# Words for whole pages.
PAGES_BY_WORD = {
    # on the first page, by the reader's clock
    **dict.fromkeys(("next", "today", "tomorrow", "tonight", "weekend"), ("the next race", "")),
    **dict.fromkeys((*RESULT, "grid", "last", "latest"), ("the last race", "current/last")),
    **dict.fromkeys(LAP, ("the fastest laps of the last race", "current/last#fastest")),
    **dict.fromkeys(PIT_STOPS, ("the pit stops of the last race", "current/last#stops")),
    **dict.fromkeys(PRACTICE, ("the practice of the last race", "current/last#practice")),
    **dict.fromkeys(QUALIFYING, ("the qualifying of the last race", "current/last#qualifying")),
    **dict.fromkeys(("change", "changed", "changes"), ("what changed", "changes")),
    **dict.fromkeys(
        ("differences", "disagree", "discrepancies"),
        ("what sources disagree about", "discrepancies"),
    ),
    **dict.fromkeys((*RACES, "alarm", "ics"), ("the races of this season", "current#races")),
    **dict.fromkeys(STANDINGS, ("both championships", "current#championships")),
    **dict.fromkeys(
        ("champion", "champions", "seasons", "title", "titles"),
        ("all seasons and champions", "seasons"),
    ),
    **dict.fromkeys((*POLE, *WIN, "drivers", "winner", "winners"), ("drivers", "drivers")),
    **dict.fromkeys(
        (
            *("closest", "consecutive", "fewest", "finish", "finishes", "largest", "longest"),
            *("most", "never", "oldest", "record", "records", "row", "shortest", "streak"),
            *("without", "youngest"),
        ),
        RECORDS,
    ),
    **dict.fromkeys(("constructors", "team", "teams"), ("constructors", "constructors")),
    **dict.fromkeys(("circuits", "layouts", "track", "tracks"), ("circuits", "circuits")),
    **dict.fromkeys(("api", "help", "json"), ("the API", "docs")),
    **dict.fromkeys(
        ("corrections", "data", "licence", "license", "source", "sources"),
        ("where the data is from", "data"),
    ),
}
# Words for what no source has.
WORDS_NOT_HERE = {
    *("engine", "engines", "odds", "radio", "rain", "telemetry", "tires", "tyre", "tyres"),
    *("safety", "weather", "wet"),
}
SMALL_WORDS = {
    *("a", "and", "at", "by", "de", "di", "do", "for", "from", "in", "of", "sir", "the", "to"),
    *("von", "vs", "with"),
    # in questions
    *("did", "does", "drive", "driver", "drove", "fastest", "first", "has", "have", "how", "is"),
    *("lap", "list", "many", "much", "number", "old", "position", "positions", "season", "start"),
    *("statistics", "stats", "time", "times", "was", "were", "what", "when", "where", "which"),
    *("who", "whose"),
    # in names of teams, which the shorter name of most does not have
    *("constructor", "f1", "formula", "one", "racing", "scuderia", "team"),
}
LEFT_OUT = {*chain.from_iterable(PARTS.values()), *PAGES_BY_WORD, *WORDS_NOT_HERE, *SMALL_WORDS}


class Mates(NamedTuple):
    """Two drivers who were team mates."""

    one: Name
    other: Name
    seasons: list[tuple[int, driver.Mate]]  # of `one`, the latest first


class Results(NamedTuple):
    """A driver's results at a circuit, for a constructor, or in a season."""

    driver: Name
    where: str  # `at Monza`
    places: list[tuple[Json, Json]]  # each race with a place, the latest first


class Search(NamedTuple):
    """What a query has found."""

    words: list[str]  # that were looked for in the end
    found: list[Found]
    races: list[RacesOfName]
    has_all_asked: bool = True  # whether no word for a part or a page was left out
    similar: Mapping[str, str] = {}  # the words that replace others
    has_all_words: bool = True  # whether every name that was found has them


def facts(ask: Ask, names: AllNames, query: str) -> dict[str, Any]:
    asked = plain(query).split()
    words, found, races, has_all_asked, similar, has_all_words = search(names, asked)
    found = sorted(found, key=lambda each: each.kind.lower() not in asked)  # the kind asked for
    years = names.seasons.intersection(words)
    in_part = [] if has_all_words else found
    parts = parts_of(asked)
    is_sprint = parts.get("Races", "").startswith("sprint")
    shown = [*with_sprint(races)] if is_sprint else races
    if {*words} == years and "Seasons" in parts and "Races" not in parts:
        shown = []  # a part of the page of the season was asked for
    kinds = {each.kind for each in found} | ({"Races"} if races else set())
    if has_all_asked:  # then the words may be parts of names
        kinds &= {"Seasons", "Races"}
    if not years:  # then seasons have a word, such as `calendar`
        kinds -= {"Seasons"}
    in_kinds = {word for kind in kinds for word in PARTS[kind]}
    return {
        "query": query,
        # without pages for words that stand for a part of a page that was found
        "pages": pages_for([word for word in asked if word not in in_kinds]),
        "is_missing": not WORDS_NOT_HERE.isdisjoint(asked),
        "not_here": NOT_HERE,
        "parts": {kind: parts[kind] for kind in kinds if kind in parts},
        "names_of_parts": NAMES_OF_PARTS,
        "similar": similar,
        "found": found,
        "is_in_part": bool(in_part),
        "champions": champions(ask, found),
        "mates": mates(ask, in_part, words, years),
        "standings": standings(ask, found, words, years),
        "results": results(ask, names, found, words, years, bool(in_part)),
        # Only a season has so many races of one year.
        "races": shown[: len(shown) if years else SHOWN],
        "races_total": len(shown),
        "are_races_first": bool(years) and {*words} != years,
        "lacks_sprint": is_sprint and bool(races) and not shown,
    }


def parts_of(asked: Collection[str]) -> dict[str, str]:
    """The parts of pages that were asked for, by what the pages are of."""
    parts = {
        kind: next(by_word[word] for word in asked if word in by_word)
        for kind, by_word in PARTS.items()
        if not by_word.keys().isdisjoint(asked)
    }
    if "sprint" in asked and not {*QUALIFYING, "shootout"}.isdisjoint(asked):
        parts["Races"] = "sprintqualifying"
    return parts


def with_sprint(races: Iterable[RacesOfName]) -> Iterator[RacesOfName]:
    """Only the races with a sprint."""
    for name, editions in races:
        if of_name := [race for race in editions if "Sprint" in race]:
            yield RacesOfName(name, of_name)


def pages_for(asked: Sequence[str]) -> list[tuple[str, str]]:
    """The pages that words of a query stand for, with the records that have all of them."""
    pages = dict.fromkeys(PAGES_BY_WORD[word] for word in asked if word in PAGES_BY_WORD)
    if RECORDS not in pages:
        return [*pages]
    return [*all_time.asked(word for word in asked if word not in SMALL_WORDS), *pages]


def search(names: AllNames, words: list[str]) -> Search:
    """What the words find; or else, step by step, what fewer or similar words do."""
    found, races = names.find(words)
    # seasons have words such as `calendar`, too
    needed = {*words} - SMALL_WORDS
    if needed and PAGES_BY_WORD.keys() >= needed and {each.kind for each in found} <= {"Seasons"}:
        return Search(words, [], [])
    if found or races:
        return Search(words, found, races)
    words = [word for word in words if word not in LEFT_OUT]
    found, races = names.find(words)
    if found or races:
        return Search(words, found, races, False)
    similar = names.similar(words)
    words = [similar.get(word, word) for word in words]
    found, races = names.find(words)
    if found or races:
        return Search(words, found, races, False, similar)
    return Search(words, names.find_any(words), [], False, similar, False)


def champions(ask: Ask, found: Iterable[Found]) -> dict[str, list[Json]]:
    """The champions of the seasons that were found, by year: places in championships."""
    years = {name.main for each in found if each.kind == "Seasons" for name in each.names}
    won: dict[str, list[Json]] = {}
    for career in (DRIVER, CONSTRUCTOR) if years else ():
        first: dict[str, Value] = {career.standings: "1"}
        for season in ask(career.standings, ALL, None, None, **first):
            if season["season"] in years:
                won.setdefault(season["season"], []).extend(map(place, season[career.key]))
    return won


def mates(
    ask: Ask, found: Iterable[Found], words: Iterable[str], years: Collection[str]
) -> Mates | None:
    """The first two drivers that a query names, if they were team mates: in its years, if any."""
    drivers = named(found, "Drivers", words)
    if len(drivers) < 2:
        return None
    one, other = drivers[:2]
    id = ask.catalogue.ids["drivers"][one.link.removeprefix("drivers/").lower()]
    seasons = [
        (year, mate)
        for year, mate in driver.mates(ask, id)
        if f"drivers/{mate.driver['driverId']}" == other.link and (not years or str(year) in years)
    ]
    return Mates(one, other, seasons) if seasons else None


def standings(
    ask: Ask, found: Iterable[Found], words: Iterable[str], years: Iterable[str]
) -> list[tuple[Name, str, str]]:
    """All drivers and constructors with a word of a query in their names, with the place in the
    championships of its years.
    """
    careers = {career.kind.capitalize(): career for career in (DRIVER, CONSTRUCTOR)}
    return [
        (name, year, in_words(ask, season, place(season[career.key][0])))
        for each in found
        if (career := careers.get(each.kind))
        for name in each.names
        if not name.own_words.isdisjoint(words)
        for year in years
        for season in ask(career.standings, 1, int(year), None, **filter_by(name))
    ]


def in_words(ask: Ask, season: Json, place: Json) -> str:
    """`1st in the championship, 175 points`, `excluded from the championship`."""
    position = place["positionText"]
    where = f"{place_in_words(position)} {'in' if position.isdigit() else 'from'} the championship"
    points = place["points"] and f", {points_in_words(float(place['points']))}"
    is_over = int(season["round"]) == ask.catalogue.rounds[int(season["season"])][-1]
    so_far = "" if is_over else " so far"
    return f"{where}{points}{so_far}"


def results(
    ask: Ask,
    names: AllNames,
    found: Iterable[Found],
    words: Sequence[str],
    years: Collection[str],
    is_in_part: bool,
) -> Results | None:
    """The results of the only driver that a query names: for its constructor; at its circuit, in
    one of these years or in all; or in one of these years, if all names have all words.
    """
    # The Autodromo Enzo e Dino Ferrari is not what `hamilton ferrari` means, and the drivers Red
    # Amick and Jonathan Williams are not what `verstappen red bull` and `albon williams` mean.
    constructors = named(names.find_any(words), "Constructors", words)
    words_of_teams = {name: {*name.main.split()} - SMALL_WORDS for name in constructors}
    teams = {name: needed for name, needed in words_of_teams.items() if needed <= {*words}}
    of_teams = {*chain.from_iterable(teams.values())}
    drivers = named(found, "Drivers", [word for word in words if word not in of_teams])
    drivers = drivers or named(found, "Drivers", words)
    if len(drivers) != 1:
        return None
    # Not the names of the driver, which teams and circuits have too; but the word for the country,
    # as in `leclerc monaco`.
    own = drivers[0].own_words
    others = [word for word in words if word not in own]
    circuits = named(names.find_any(others), "Circuits", others)
    wheres: list[tuple[str, int | None, dict[str, Value]]] = [
        *[
            (f"for {name.text}", None, filter_by(name))
            for name, needed in teams.items()
            if own.isdisjoint(needed)
        ],
        *[
            (f"at {name.text} in {year}", int(year), filter_by(name))
            for name in circuits
            for year in years
        ],
        *[(f"at {name.text}", None, filter_by(name)) for name in circuits],
        *[(f"in {year}", int(year), {}) for year in years if not is_in_part],
    ]
    for where, season, filters in wheres:
        races = ask("results", ALL, season, None, **filter_by(drivers[0]), **filters)
        if places := [(race, place(result)) for race in races for result in race["Results"]]:
            return Results(drivers[0], where, places[::-1])
    return None


def filter_by(name: Name) -> dict[str, Value]:
    """The filter for a driver, constructor or circuit: `{"drivers": "alonso"}`. As in addresses,
    ids are in small letters.
    """
    kind, _, id = name.link.lower().partition("/")
    return {kind: id}


def named(found: Iterable[Found], kind: str, words: Iterable[str]) -> list[Name]:
    """The names of a kind that a query has, in its order; of several with a word, the first."""
    names = [name for each in found if each.kind == kind for name in each.names]
    by_word = {word: name for name in reversed(names) for word in name.own_words}
    return [*dict.fromkeys(by_word[word] for word in words if word in by_word)]
