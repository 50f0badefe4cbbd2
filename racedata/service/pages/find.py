"""The page at `/find`: drivers, constructors, circuits, seasons and races by any part of a name.

There is one rule: the names that have all words of the query, or parts of words; or else, of each
kind, those that have most of the words. The words of a name are in names.py. So `monaco 1996` finds
a race, and `hamilton silverstone 2021` a driver, a circuit, a season and a race. First, words that
no name has are replaced with similar ones.
"""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

from racedata.service.pages.ask import Ask
from racedata.service.pages.names import Name, names_by_kind, plain

LONGEST = 100  # characters of a query; no name is so long
SHOWN = 25  # names of a kind: all races of a season
# At most this many words of a query are replaced with similar ones: each takes about 20 ms.
MOST_REPLACED = 3


class AllNames:
    """All names of a database."""

    def __init__(self, ask: Ask) -> None:
        self.kinds = names_by_kind(ask)
        self.vocabulary = {
            word for names in self.kinds.values() for name in names for word in name.words.split()
        }

    def find(self, words: Sequence[str]) -> list[tuple[str, Sequence[Name]]]:
        """What the words find, by kind: the best match first."""
        for selected in (with_all, with_most) if words else ():
            found = [
                (kind, sorted(matches, key=lambda name: order(name, words)))
                for kind, names in self.kinds.items()
                if (matches := selected(names, words))
            ]
            if found:
                return sorted(found, key=lambda each: order(each[1][0], words))
        return []

    def similar(self, words: Iterable[str]) -> dict[str, str]:
        """For words that no name has, not even inside of a word, similar ones that a name has."""
        unknown = [
            word
            for word in words
            if len(word) > 4 and not any(word in known for known in self.vocabulary)
        ]
        similar = {
            word: get_close_matches(word, self.vocabulary, 1, cutoff=0.83)
            for word in unknown[:MOST_REPLACED]
        }
        return {word: close[0] for word, close in similar.items() if close}


def facts(ask: Ask, names: AllNames, query: str) -> dict[str, Any]:
    words = plain(query).split()
    similar = names.similar(words)
    words = [similar.get(word, word) for word in words]
    found = names.find(words)
    return {
        "searched": query,
        "similar": similar,
        "found": found,
        "has_all": all(with_all(of_kind, words) for _, of_kind in found),
        "limit": SHOWN,
    }


def with_all(names: Iterable[Name], words: Iterable[str]) -> list[Name]:
    """The names that have each word, as a word or inside of one."""
    return [name for name in names if all(word in name.words for word in words)]


def with_most(names: Sequence[Name], words: Iterable[str]) -> list[Name]:
    """The names that have more of the words than any other name, at least one. Words such as `of`
    do not count.
    """
    long = [word for word in words if len(word) > 2]
    numbers = [sum(f" {word} " in name.words for word in long) for name in names]
    most = max(numbers, default=0) or 1
    return [name for name, number in zip(names, numbers) if number == most]


def order(name: Name, words: Iterable[str]) -> tuple[int, int, int]:
    """Names with whole words are first, then those with words that begin so."""
    return (
        -sum(f" {word} " in name.words for word in words),
        -sum(f" {word}" in name.words for word in words),
        -name.weight,
    )
