"""All names of drivers, constructors, circuits, races and seasons, and which a query matches.

They are in memory, without accents. A word of a query may be a word of a name, its beginning or any
other part of it; or a nationality, or its country.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from difflib import get_close_matches
from operator import itemgetter
from sqlite3 import Row
from typing import NamedTuple

from racedata.formats import Json, counted, without_accents
from racedata.service.pages import career_queries
from racedata.service.pages.ask import Ask
from racedata.service.words import full_name, place_of

# Words for what the page of a season has.
OF_A_SEASON = "calendar championship champions races results standings titles winners world"
SHOWN = 20  # of a kind

# How well a word matches, the best first. For Lewis Hamilton: `lewis`, a word of the name; `ham`,
# one of the `others`; `hami`, which begins the main part; `lew`, which begins another word; `brit`,
# which begins the nationality; `milt`, which is inside of a word.
WHOLE, WHOLE_OTHER, BEGINS_MAIN, BEGINS_WORD, NATIONALITY, INSIDE = range(6)
GRAND_PRIX = ("gp", "gran premio", "grande premio", "grosser preis")
# What the countries of nationalities are called, also in German, French, Italian, Spanish and their
# own language; but not `japan`, which finds `japanese` as its beginning.
COUNTRIES = {
    "American": "usa united states america",
    "Argentine": "argentina argentinien argentine",
    "Australian": "australien australie",
    "Austrian": "osterreich autriche",
    "Belgian": "belgium belgien belgique belgio belgica",
    "Brazilian": "brasil brasilien bresil brasile",
    "British": "uk united kingdom great britain grossbritannien grande bretagne gran bretagna",
    "Canadian": "canada kanada",
    "Chinese": "china chine cina",
    "Czech": "czechia",
    "Danish": "denmark",
    "Dutch": "netherlands holland niederlande",
    "Finnish": "finland",
    "French": "france frankreich francia",
    "German": "germany deutschland allemagne germania alemania",
    "Hungarian": "hungary ungarn hongrie ungheria hungria",
    "Irish": "ireland",
    "Italian": "italy italia italien italie",
    "Japanese": "japon giappone",
    "Mexican": "mexico mexiko mexique messico",
    "Monegasque": "monaco",
    "Polish": "poland",
    "Portuguese": "portugal",
    "Singapore": "singapur singapour",
    "Spanish": "spain espana spanien espagne spagna",
    "Swedish": "sweden",
    "Swiss": "switzerland",
    "Thai": "thailand",
}
# What fans call a driver, constructor or circuit, or called it once, if no source does: by our id.
NICKNAMES = {
    "alonso": "nando",
    "michael_schumacher": "schumi",
    "perez": "checo",
    "prost": "professor",
    "rb": "vcarb",
    "raikkonen": "iceman",
    "red_bull_ring": "osterreichring a1 a1ring",
    "ricciardo": "honey badger danny ric",
}
# At most this many words of a query are replaced with similar ones: each takes about 20 ms.
MOST_REPLACED = 3


class Name(NamedTuple):
    """A name that can be found."""

    text: str
    link: str  # of its page, below `/`
    detail: str
    weight: int  # races; of two that match as well, the one with more is first
    # Without accents: the name by which it is mainly known, such as a surname; and all words, with
    # a space around each.
    main: str
    words: str
    others: str  # words by whose beginning it can also be found, such as the town of a circuit
    nationality: str  # and the country
    searched: str  # all of these words: what it lacks, the name does not have

    @property
    def own_words(self) -> set[str]:
        """All words but those of the nationality."""
        return {*self.words.split(), *self.others.split()}


class RacesOfName(NamedTuple):
    """The races of one name at one circuit; in what is found, all races of one name."""

    name: Name
    editions: list[Json]


class Found(NamedTuple):
    """What was found of a kind."""

    kind: str
    names: Sequence[Name]  # those that are shown
    total: int


class AllNames:
    """All names of a database."""

    def __init__(self, ask: Ask) -> None:
        catalogue = ask.catalogue
        self.seasons = {str(year) for year in catalogue.rounds}
        self.kinds: dict[str, list[Name]] = {
            "Drivers": [*driver_names(ask)],
            "Constructors": [*constructor_names(ask)],
            "Circuits": [*circuit_names(ask)],
            "Seasons": [
                name_of(f"Season {year}", year, [], int(year), year, OF_A_SEASON)
                for year in self.seasons
            ],
        }
        self.races_of_names = [*race_names(catalogue.calendar.values())]
        names = [
            *itertools.chain(*self.kinds.values()),
            *(each.name for each in self.races_of_names),
        ]
        self.vocabulary = {word for name in names for word in name.searched.split()}

    def find(self, words: Sequence[str]) -> tuple[list[Found], list[RacesOfName]]:
        """What has all words: the kind with the best match first; and races, by their name.

        A year selects races; beside other words, names need not have it.
        """
        if not words:
            return [], []
        years = self.seasons.intersection(words)
        others = [word for word in words if word not in years]
        kinds = []
        for kind, names in self.kinds.items():
            needed = words if kind == "Seasons" else others or words
            matches = sorted(
                (quality, -name.weight, name)
                for name in names
                if (quality := quality_of(name, needed)) is not None
            )
            if matches:
                if matches[0][0] == WHOLE:  # then a part of a word is not what was meant
                    matches = [match for match in matches if match[0] < INSIDE]
                shown = [name for _, _, name in matches[:SHOWN]]
                kinds.append((matches[0][:2], Found(kind, shown, len(matches))))
        kinds.sort(key=lambda pair: pair[0])
        found = [each for _, each in kinds]
        races = self.find_races(others, years)
        if (found or races) and "Seasons" not in [each.kind for each in found]:
            found += self.seasons_of(years)
        return found, races

    def similar(self, words: Iterable[str]) -> dict[str, str]:
        """For words that are no words of a name, similar ones that are."""
        unknown = [word for word in words if word not in self.vocabulary]
        similar = {
            word: get_close_matches(word, self.vocabulary, 1, cutoff=0.83)
            for word in unknown[:MOST_REPLACED]
            if len(word) > 4 and not word.isdigit()
        }
        return {word: close[0] for word, close in similar.items() if close}

    def find_any(self, words: Collection[str]) -> list[Found]:
        """The drivers, constructors and circuits that have one of the words as a whole."""
        kinds = []
        for kind, names in self.kinds.items():
            matches = sorted(
                (-number, -name.weight, name)
                for name in names
                if (number := len(name.own_words.intersection(words)))
            )
            if matches and kind != "Seasons":
                shown = [name for _, _, name in matches[:SHOWN]]
                kinds.append(Found(kind, shown, len(matches)))
        return kinds + self.seasons_of(words)

    def seasons_of(self, words: Collection[str]) -> list[Found]:
        """The seasons of the years among the words."""
        names = [name for name in self.kinds["Seasons"] if name.main in words]
        return [Found("Seasons", names, len(names))] if names else []

    def find_races(self, words: Sequence[str], years: Collection[str]) -> list[RacesOfName]:
        """The races of these years, or of all, whose name or circuit has all words."""
        matches: dict[str, list[tuple[int, Name, Json]]] = {}
        for name, editions in self.races_of_names:
            if (quality := quality_of(name, words)) is not None:
                matches.setdefault(name.text, []).extend(
                    (quality, name, race)
                    for race in editions
                    if not years or race["season"] in years
                )
        by_name = sorted(
            filter(None, matches.values()),
            key=lambda of_name: (
                min(quality for quality, _, _ in of_name),
                -len(of_name),
                of_name[0][2]["date"],
            ),
        )
        return [
            RacesOfName(
                of_name[0][1],
                sorted((race for _, _, race in of_name), key=itemgetter("date"), reverse=True),
            )
            for of_name in by_name
        ]


def plain(text: str) -> str:
    """The words of a text in small letters, without accents and signs: `o connor`."""
    return " ".join(re.findall(r"[^\W_]+", without_accents(text)))


def name_of(
    text: str,
    link: str,
    details: Iterable[str | None],
    weight: int,
    main: str,
    others: str = "",
    nationality: str = "",
) -> Name:
    detail = ", ".join(filter(None, details))
    country = COUNTRIES.get(nationality, "")
    words, others, from_where = (
        f" {plain(each)} " for each in (text, others, f"{nationality} {country}")
    )
    searched = words + others + from_where
    return Name(text, link, detail, weight, plain(main), words, others, from_where, searched)


def quality_of(name: Name, words: Iterable[str]) -> int | None:
    """How well all words match a name: less is better; None if one does not match."""
    quality = 0
    for word in words:
        if word not in name.searched:
            return None
        if f" {word} " in name.words:
            quality += WHOLE
        elif f" {word} " in name.others:
            quality += WHOLE_OTHER
        elif name.main.startswith(word):
            quality += BEGINS_MAIN
        elif f" {word}" in name.words:
            quality += BEGINS_WORD
        elif len(word) > 3 and f" {word}" in name.nationality:  # `spa` may be anything
            quality += NATIONALITY
        elif word in name.words or f" {word}" in name.others:
            quality += INSIDE
        else:
            return None
    return quality


def in_seasons(row: Row | None, noun: str) -> tuple[str, int]:
    """`2001 to 2025, 425 starts`, and this number."""
    if row is None or not row["races"]:
        return f"no {noun}", 0
    years = f"{row['first']} to {row['last']}" if row["first"] < row["last"] else row["first"]
    return f"{years}, {counted(row['races'], noun)}", row["races"]


def driver_names(ask: Ask) -> Iterator[Name]:
    rows = career_queries.all_starts(ask.data, "driverId")
    for id, who in ask.catalogue.drivers.items():
        detail, starts = in_seasons(rows.get(id), "start")
        others = [who.get("code", ""), who.get("permanentNumber", "")]
        others += [ask.ids_to_search("driver", who["driverId"])]
        others += [NICKNAMES.get(who["driverId"], "")]
        yield name_of(
            full_name(who),
            f"drivers/{who['driverId']}",
            [who.get("nationality"), detail],
            starts,
            who["familyName"],
            " ".join(others),
            who.get("nationality", ""),
        )


def constructor_names(ask: Ask) -> Iterator[Name]:
    rows = career_queries.all_starts(ask.data, "constructorId")
    for id, who in ask.catalogue.constructors.items():
        detail, starts = in_seasons(rows.get(id), "start")
        yield name_of(
            who["name"],
            f"constructors/{who['constructorId']}",
            [who.get("nationality"), detail],
            starts,
            who["name"],
            # also in one word: redbull
            f"{plain(who['name']).replace(' ', '')} "
            f"{ask.ids_to_search('constructor', who['constructorId'])} "
            f"{NICKNAMES.get(who['constructorId'], '')}",
            who.get("nationality", ""),
        )


def circuit_names(ask: Ask) -> Iterator[Name]:
    rows = career_queries.all_races_run(ask.data)
    for id, what in ask.catalogue.circuits.items():
        detail, run = in_seasons(rows.get(id), "race")
        place = [what["Location"].get(key) for key in ("locality", "country")]
        words = plain(what["circuitName"]).split()
        initials = "".join(word[0] for word in words) if words[1:] else ""  # such as cota
        others = [place_of(what), ask.ids_to_search("circuit", what["circuitId"]), initials]
        others += [NICKNAMES.get(what["circuitId"], "")]
        yield name_of(
            what["circuitName"],
            f"circuits/{what['circuitId']}",
            [*place, detail],
            run,
            what["circuitName"],
            " ".join(others),
        )


def race_names(races: Iterable[Json]) -> Iterator[RacesOfName]:
    by_name: dict[tuple[str, str], list[Json]] = {}
    for race in races:
        key = race["raceName"], race["Circuit"]["circuitId"]
        by_name.setdefault(key, []).append(race)
    for (text, circuit), editions in by_name.items():
        others = [*GRAND_PRIX, circuit, place_of(editions[0]["Circuit"])]
        others += [COUNTRIES.get(text.partition(" ")[0], "")]
        yield RacesOfName(name_of(text, "", [], 0, text, " ".join(others)), editions)
