"""Which result gets a driver's fastest lap. Fastest laps are a part of their own: a driver has one,
but may have two results, of shared cars.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from racedata.loader.parts import OF_CAR
from racedata.model import FASTEST_LAP


class Misfit(NamedTuple):
    """How badly a result fits the fastest lap of its driver: the lowest gets it."""

    has_another_place: bool  # in the same source
    is_too_short: bool  # it drove fewer laps; not if that is unknown
    has_another_number: bool  # a source may have another number for the car, or mix them up
    has_another_text: bool
    place: int


def fastest_laps_of_results(
    results: Mapping[str, Sequence[Any]], rows: Iterable[Sequence[Any]], is_same_source: bool
) -> dict[str, Sequence[Any]]:
    """The columns FASTEST_LAP of results, which are given by column. `rows` are the part of fastest
    laps, with the columns OF_CAR and FASTEST_LAP. The first one of a driver counts.
    """
    laps: dict[int, Sequence[Any]] = {}
    for row in rows:
        laps.setdefault(row[0], row)
    # by driver, the result that gets his lap, and how badly it fits
    best: dict[int, tuple[Misfit, int]] = {}
    columns = (results[name] for name in ("laps", *OF_CAR))
    for at, (completed, driver, *car) in enumerate(zip(*columns)):
        if driver in laps:
            misfit = misfit_of(car, completed, laps[driver], is_same_source)
            best[driver] = min((misfit, at), best.get(driver, (misfit, at)))
    added: list[Sequence[Any]] = [(None,) * len(FASTEST_LAP)] * len(results["driverId"])
    for driver, (_, at) in best.items():
        added[at] = laps[driver][len(OF_CAR) :]
    return dict(zip(FASTEST_LAP, zip(*added)))


def misfit_of(
    car: Sequence[Any], completed: int | None, lap: Sequence[Any], is_same_source: bool
) -> Misfit:
    """How badly a car, of a number, text and place, fits its driver's fastest lap."""
    number, text, place = car
    _, number_of_lap, text_of_lap, place_of_lap, lap_number, *_ = lap
    return Misfit(
        is_same_source and place != place_of_lap,
        completed is not None and lap_number is not None and completed < lap_number,
        number != number_of_lap,
        text != text_of_lap,
        place,
    )
