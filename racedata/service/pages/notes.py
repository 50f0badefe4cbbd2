"""What was corrected in the records of a race, and what sources disagree about, in words.

The page of a race has all of it. Tables, also on other pages, have an asterisk where it is about
a row.
"""

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from racedata.formats import Json
from racedata.model import KIND_OF_COLUMN, KINDS, SESSIONS
from racedata.service import words
from racedata.service.pages.ask import Ask

LABELS = {session.name: session.label for session in SESSIONS}


class Note(NamedTuple):
    """A corrected or disputed value."""

    kind: str  # of records; or `sessions` or `races`
    about: str  # the id of a driver or constructor, or the name of a session; empty for a race
    column: str
    text: str


class Asterisk(NamedTuple):
    """What marks a row."""

    link: str  # to the notes of the race, below `/`
    title: str  # what they are about


class Notes:
    """The notes of a race."""

    def __init__(self, ask: Ask, season: int, round: int) -> None:
        self.ask = ask
        self.link = f"{season}/{round}#notes"
        corrections = ask("corrections", season, round)
        self.discrepancies = ask("discrepancies", season, round, state="open")
        self.all = [
            *map(self.of_correction, corrections),
            *map(self.of_discrepancy, self.discrepancies),
        ]

    def of_correction(self, record: Json) -> Note:
        table, column = record["table"], record["column"]
        kind = KIND_OF_COLUMN.get((table, column)) or table
        now, before = (
            words.value_in_words(column, record.get(name, "none"), self.ask.names)
            for name in ("value", "sourceValue")
        )
        said = f"{now}; the source has {before}. {record['witnesses']}."
        return self.note(kind, record["key"], column, said)

    def of_discrepancy(self, record: Json) -> Note:
        said = sides_in_words(record, self.ask.names, " has ")
        return self.note(record["kind"], record["key"], record["column"], f"{said}.")

    def note(self, kind: str, key: str, column: str, said: str) -> Note:
        """A note about the row with this key, such as `2023/18/alonso` or `2023/18/1/alonso`."""
        _, _, *rest = key.split("/")
        number = "".join(part for part in rest if part.isdigit())
        about = next((part for part in rest if not part.isdigit()), "")
        of_what = {"practice": f"practice {number}", "pit_stops": f"stop {number}"}.get(kind)
        of_value = [self.name_of(kind, about), of_what, words.column_in_words(column)]
        return Note(kind, about, column, f"{', '.join(filter(None, of_value))}: {said}")

    def name_of(self, kind: str, about: str) -> str:
        """The name of a driver, constructor or session; what is not known stays as it is."""
        if kind == "sessions":
            return LABELS.get(about, about)
        entrants = "constructors" if kind == "constructor_standings" else "drivers"
        return words.name_of(self.ask.catalogue, entrants, about) or about

    def by_kind(self) -> Iterator[tuple[str, list[str]]]:
        """The texts of each kind, with its name for people."""
        for kind, label in in_order(note.kind for note in self.all):
            yield label, [note.text for note in self.all if note.kind == kind]

    def asterisk(
        self, kinds: Collection[str], about: str, columns: Collection[str] = ()
    ) -> Asterisk | None:
        """The asterisk of a row, or of only some of its columns; None without notes."""
        found = dict.fromkeys(
            words.column_in_words(note.column)
            for note in self.all
            if note.kind in kinds and note.about == about
            if not columns or note.column in columns
        )
        title = f"Corrected or disputed: {', '.join(found)}"
        return Asterisk(self.link, title) if found else None

    def marked(
        self, places: Iterable[Json], *kinds: str, columns: Collection[str] = ()
    ) -> list[Json]:
        """Rows of drivers or constructors with their asterisks."""
        return [
            {**each, "asterisk": self.asterisk(kinds, entrant_id(each), columns)} for each in places
        ]


def sides_in_words(discrepancy: Json, names: words.Names, verb: str = " ") -> str:
    """What each source has: `jolpica has 12, f1db has 11`."""
    column = discrepancy["column"]
    return ", ".join(
        f"{of['source']}{verb}{words.value_in_words(column, of.get('value', 'none'), names)}"
        for of in discrepancy["Sources"]
    )


def in_order(kinds: Iterable[str]) -> list[tuple[str, str]]:
    """These kinds, each once and with its name for people: kinds of records first."""
    found = dict.fromkeys(kinds)
    ordered = [kind for kind in dict.fromkeys([*KINDS, *found]) if kind in found]
    return [(kind, words.kind_in_words(kind).capitalize()) for kind in ordered]


def entrant_id(place: Json) -> str:
    """The id of the driver or, in a championship of constructors, of the constructor."""
    if "Driver" in place:
        return str(place["Driver"]["driverId"])
    return str(place["Constructors"][0]["constructorId"])
