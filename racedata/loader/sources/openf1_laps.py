"""The laps and pit stops of OpenF1 as rows of a Stage.

A race has laps only if all of them are present and right.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from statistics import median_high
from typing import NamedTuple

from racedata.formats import lap_time
from racedata.loader.sources.openf1_rows import Entry, OpenF1Row, Undecided
from racedata.values import Value

# By how many milliseconds the sum of a driver's laps may exceed the total time: lap 1 is inferred.
LONGEST_SUM = 1500
ROUNDING = 50  # milliseconds by which the sum may be shorter than the time
PENALTY = 5000  # milliseconds: penalties are multiples of it
AFTER_LINE = timedelta(seconds=1)  # a change of places is published when the line has been crossed
SHORTEST_STOP = 2000  # milliseconds by which a stop is longer than a drive through the lane
# Ergast has the time of the entry, to the second; about half a second earlier than OpenF1's.
BEFORE_ENTRY = timedelta(seconds=0.5)


class Laps(NamedTuple):
    """The laps of a race, if all are known: `(number, lap) -> milliseconds`. Inexact first laps are
    left out.
    """

    times: Mapping[tuple[int, int], int]
    ends: Mapping[tuple[int, int], datetime]  # when it ended, as far as that is known


def laps_of(rows: Sequence[OpenF1Row], results: Sequence[OpenF1Row]) -> Laps:
    """The laps of a race. Raises Undecided, which says why, unless all are present and right."""
    times: dict[int, dict[int, int]] = {row.number("driver_number"): {} for row in results}
    ends: dict[tuple[int, int], datetime] = {}
    for row in rows:
        number, lap = row.number("driver_number"), row.number("lap_number")
        duration = row.milliseconds("lap_duration")
        if duration is None:
            continue  # lap 1, or the last row of a driver whose race is over
        if number not in times:
            raise Undecided(f"laps of car {number}, which has no result")
        if lap in times[number]:
            raise Undecided(f"lap {lap} of car {number} appears twice")
        times[number][lap] = duration
        if lap > 1 and (start := row.moment("date_start")):
            ends[number, lap] = start + timedelta(milliseconds=duration)
    # compared with the median, because the fastest of all may be a wrong one
    fastest = [
        min(later)
        for laps in times.values()
        if (later := [time for lap, time in laps.items() if lap > 1])
    ]
    shortest = 0.9 * median_high(fastest or [0])
    for row in results:
        number = row["driver_number"]
        laps = times[number]
        check_numbers(number, laps, row.whole("number_of_laps"))
        if any(time < shortest for time in laps.values()):
            raise Undecided(f"car {number} has a lap that is too short")
        first = laps.pop(1, None)
        total = row.milliseconds("duration")
        if first is not None and total is not None:
            laps[1] = first_lap(number, first, sum(laps.values()), total)
    found = {(number, lap): time for number, laps in times.items() for lap, time in laps.items()}
    return Laps(found, ends)


def check_numbers(number: int, laps: Collection[int], count: int | None) -> None:
    """Raises Undecided unless a driver has all laps from the second on; `count` may be unknown."""
    expected = range(2, (max(laps, default=0) if count is None else count) + 1)
    if wrong := {*expected} ^ {*laps} - {1}:
        what = "unexpected" if min(wrong) in laps else "missing"
        raise Undecided(f"lap {min(wrong)} of car {number} is {what}")


def first_lap(number: int, inferred: int, others: int, total: int) -> int:
    """The time of lap 1. OpenF1 infers it, up to a second too long.

    The exact time is the total without the other laps and without penalties.
    """
    excess = others + inferred - total
    penalty = PENALTY * round((LONGEST_SUM / 2 - excess) / PENALTY)
    if penalty < 0 or not -ROUNDING <= excess + penalty <= LONGEST_SUM:
        raise Undecided(f"the laps of car {number} are {excess / 1000:.3f} s off the total")
    return total - penalty - others


def lap_rows(
    laps: Laps, positions: Sequence[OpenF1Row], entries: Mapping[int, Entry]
) -> list[dict[str, Value]]:
    """The rows of laps, with the places at their ends as far as these are known."""
    changes: dict[int, list[tuple[datetime, int]]] = defaultdict(list)
    for row in positions:
        at, n = row.moment("date"), row.whole("position")
        if at and n:
            changes[row.number("driver_number")].append((at, n))
    made: list[dict[str, Value]] = []
    order: dict[int, list[datetime]] = defaultdict(list)  # when drivers ended a lap, by lap
    for (_, lap), ended in laps.ends.items():
        order[lap].append(ended)
    for (number, lap), time in sorted(laps.times.items(), key=lambda each: each[0][::-1]):
        end = laps.ends.get((number, lap))
        known = [n for at, n in sorted(changes[number]) if end and at <= end + AFTER_LINE]
        # A change may be missing, or come too late: then the place contradicts the order.
        is_right = end and known and known[-1] == 1 + sum(other < end for other in order[lap])
        made.append(
            {
                "driverId": entries[number].driver,
                "lap": lap,
                "position": known[-1] if is_right else None,
                "time": lap_time(time),
            }
        )
    return made


def fastest_laps(laps: Laps) -> dict[int, dict[str, Value]]:
    """The fastest lap of each driver, by number; the first lap is never it."""
    best: dict[int, tuple[int, int]] = {}
    for (number, lap), time in sorted(laps.times.items()):
        if lap > 1 and (number not in best or time < best[number][0]):
            best[number] = time, lap
    return {
        number: {"fastestLap": lap, "rank": rank, "fastestLapTime": lap_time(time)}
        for rank, (number, (time, lap)) in enumerate(
            sorted(best.items(), key=lambda each: each[1]), 1
        )
    }


def stop_rows(
    rows: Sequence[OpenF1Row], entries: Mapping[int, Entry], drivers: int, offset: timedelta
) -> list[dict[str, Value]]:
    """The pit stops. `offset` is the local clock's; `drivers` is the number of starters."""
    stops_of_cars: dict[int, list[tuple[int, int, datetime]]] = defaultdict(list)
    for row in rows:
        number, lap = row.number("driver_number"), row.whole("lap_number")
        lane = "lane_duration" if "lane_duration" in row else "pit_duration"
        duration, left = row.milliseconds(lane), row.moment("date")
        if lap is None or duration is None or left is None:
            continue
        if number not in entries:
            raise Undecided(f"no driver for car {number}")
        if lap in (stop[0] for stop in stops_of_cars[number]):
            raise Undecided(f"two stops of car {number} on lap {lap}")
        stops_of_cars[number].append((lap, duration, left))
    driven_through = laps_behind_safety_car(list(stops_of_cars.values()), drivers)
    made: list[tuple[int, datetime, dict[str, Value]]] = []
    for number, stops in stops_of_cars.items():
        kept = sorted(stop for stop in stops if stop[:2] not in driven_through)
        for n, (lap, duration, left) in enumerate(kept, 1):
            entered = left + offset - timedelta(milliseconds=duration) - BEFORE_ENTRY
            made.append(
                (
                    lap,
                    entered,
                    {
                        "driverId": entries[number].driver,
                        "stop": n,
                        "lap": lap,
                        "time": f"{entered:%H:%M:%S}",
                        "milliseconds": duration,
                    },
                )
            )
    return [row for _, _, row in sorted(made, key=lambda each: each[:2])]


def laps_behind_safety_car(
    stops_of_cars: Sequence[Sequence[tuple[int, int, datetime]]], drivers: int
) -> set[tuple[int, int]]:
    """The drives through the pit lane that are not stops, as `(lap, duration)`.

    If the safety car leads the field through the lane, most drivers need less time than a stop
    takes. For one lap, other sources count that as stops; for several laps in a row, they do not.
    Lapped cars may begin a lap earlier, or end a lap later.
    """
    times = [(lap, duration) for stops in stops_of_cars for lap, duration, _ in stops]
    stop = min((duration for _, duration in times), default=0) + SHORTEST_STOP
    drives = [(lap, duration) for lap, duration in times if duration < stop]
    count = Counter(lap for lap, _ in drives)
    led = {lap for lap, n in count.items() if n > drivers / 2}
    in_a_row = {lap for lap in led if {lap - 1, lap + 1} & led}
    return {drive for drive in drives if {drive[0] - 1, drive[0], drive[0] + 1} & in_a_row}
