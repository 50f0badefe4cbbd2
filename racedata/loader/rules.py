"""Which record wins if two sources have it: decisions of a merge, without SQL.

The unit is a part: a kind of records (model.py) of one race. It is from one source as a whole. A
Rule says whether a new part may replace an old one. parts.py and merge_calendars.py read the
parts and apply it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple


class Part(NamedTuple):
    """A kind of records of a race: where it is from."""

    source: str  # the name of the source
    is_fetched: bool  # whether a refresh fetched it; otherwise a load read it
    # the day of the refresh; for a load, the day of the source's latest race with results
    as_of: str
    is_provisional: bool = False  # whether it only counts until another source has it


# Whether a new part may replace an old one.
Rule = Callable[[Part, Part], bool]


def part_of(
    source: str, fetched_at: str | None, newest: Mapping[str, str], is_provisional: bool = False
) -> Part:
    """A part from a source.

    `newest` has the date of the latest race with results of each loaded source, the base first.
    """
    of_base = next(iter(newest.values()), "")  # for a source that gave no results
    return Part(
        source,
        fetched_at is not None,
        fetched_at[:10] if fetched_at else newest.get(source, of_base),
        is_provisional,
    )


def only_adds(new: Part, old: Part) -> bool:
    """The rule for an additional source of a load: it fills gaps."""
    return False


def is_fresher(new: Part, old: Part) -> bool:
    """The rule for the records of a refresh: they replace a load that has no later results.

    Provisional records replace nothing.
    """
    return new.is_fetched and not new.is_provisional and new.as_of >= old.as_of


def is_preferred(order: Sequence[str], source: str, replaces_others: bool, other: str) -> bool:
    """Whether a source of a refresh is preferred to another one.

    `order` has the sources of the refresh, the preferred one first. If `other` is not in it, a load
    has read that source. Then `replaces_others` decides.
    """
    if other in order:
        return order.index(source) < order.index(other)
    return replaces_others


def by_preference(order: Sequence[str], source: str, replaces_others: bool) -> Rule:
    """The rule for a refresh: a source replaces its own records and less preferred ones."""

    def may_replace(new: Part, old: Part) -> bool:
        if old.source == new.source:
            return True
        return is_preferred(order, source, replaces_others or old.is_provisional, old.source)

    return may_replace


def may_replace_calendar(rule: Rule, new: Collection[Part], old: Collection[Part]) -> bool:
    """Whether a calendar, whose races may be from several sources, may replace another."""
    return bool(new) and all(rule(new_part, old_part) for new_part in new for old_part in old)


class LostRaces(NamedTuple):
    """Why a calendar that lacks races of the old one is rejected."""

    with_results: str  # the first of them that has results; empty if none has
    names: Sequence[str]  # all of them


def lost_races(
    lost: Sequence[str],
    with_results: Collection[str],
    are_cancelled: Callable[[Sequence[str]], bool],
) -> LostRaces | None:
    """Why a calendar that lacks these races of the old one is rejected; None if it is accepted.

    A calendar may be incomplete for an hour. A race with results was not cancelled.
    """
    if held := [name for name in lost if name in with_results]:
        return LostRaces(held[0], lost)
    return LostRaces("", lost) if lost and not are_cancelled(lost) else None


def is_too_small(kind: str, new: int, old: int, with_results: bool) -> bool:
    """Whether a part has fewer drivers or constructors than it may have, if nothing may shrink.

    If the results come from the same source, its fastest laps may be fewer: it may omit the lap of
    a driver who completed only one.
    """
    return new < old and not (kind == "fastest_laps" and with_results)
