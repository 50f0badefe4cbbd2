"""Which result gets a driver's fastest lap. Fastest laps are a part of their own: a driver has one,
but may have two results, of shared cars.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from racedata.loader.parts import OF_CAR
from racedata.model import FASTEST_LAP


class Car(NamedTuple):
    """What names a car in a result, and in a part of fastest laps: the columns OF_CAR."""

    driver: int
    number: int
    text: str  # positionText
    place: int  # positionOrder


class FastestLap(NamedTuple):
    """A row of a part of fastest laps."""

    car: Car
    values: Sequence[Any]  # the columns FASTEST_LAP

    @property
    def number(self) -> int | None:
        """Which lap of the race it is; None if that is unknown."""
        return self.values[0]  # type: ignore[no-any-return]


class Misfit(NamedTuple):
    """How badly a result fits the fastest lap of its driver: the lowest gets it."""

    has_another_place: bool  # in the same source
    is_too_short: int  # 1 if it drove fewer laps; -1 if that is unknown
    has_another_number: bool  # a source may have another number for the car, or mix them up
    has_another_text: bool
    place: int


def fastest_laps_of_results(
    results: Mapping[str, Sequence[Any]],
    rows: Iterable[Sequence[Any]],
    is_same_source: bool,
) -> dict[str, Sequence[Any]]:
    """The columns FASTEST_LAP of results, which are given by column. `rows` are the part of fastest
    laps, of which the first one of a driver counts.
    """
    split = len(OF_CAR)
    laps: dict[int, FastestLap] = {}
    for row in rows:
        lap = FastestLap(Car(*row[:split]), row[split:])
        laps.setdefault(lap.car.driver, lap)
    # by driver, the result that gets his lap, and how badly it fits
    best: dict[int, tuple[Misfit, int]] = {}
    columns = (results[name] for name in ("laps", *OF_CAR))
    for at, (completed, *values) in enumerate(zip(*columns)):
        car = Car(*values)
        if found := laps.get(car.driver):
            misfit = misfit_of(car, completed, found, is_same_source)
            best[car.driver] = min((misfit, at), best.get(car.driver, (misfit, at)))
    added: list[Sequence[Any]] = [(None,) * len(FASTEST_LAP)] * len(results["driverId"])
    for driver, (_, at) in best.items():
        added[at] = laps[driver].values
    return dict(zip(FASTEST_LAP, zip(*added)))


def misfit_of(car: Car, completed: int | None, lap: FastestLap, is_same_source: bool) -> Misfit:
    """How badly a car that completed so many laps fits its driver's fastest lap."""
    return Misfit(
        is_same_source and car.place != lap.car.place,
        -1 if completed is None or lap.number is None else completed < lap.number,
        car.number != lap.car.number,
        car.text != lap.car.text,
        car.place,
    )
