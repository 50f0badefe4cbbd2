#!/usr/bin/env python3
"""Makes a full-size dump from one that lacks most lap times.

`make_full_size_dump.py DUMP FOLDER [--races N]`

For benchmarks only. Every race since 1996 gets lap times that are invented from its results: each
driver completes the laps of their result, with lap times around their average, and positions follow
from the times. All other files are copied. The same dump and seed give the same bytes. An extra
last column in the header of each file says that it is for benchmarks; the loader ignores unknown
columns.
"""

import argparse
import csv
import random
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

MARK = "for benchmarks only: lap times are made up"
FIRST_SEASON = 1996

Row = dict[str, str]


def read(path: Path) -> list[Row]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def copy(source: Path, target: Path) -> None:
    header, rest = source.read_text(encoding="utf-8-sig").split("\n", 1)
    target.write_text(f'{header.rstrip()},"{MARK}"\n{rest}', encoding="utf-8")


def whole(text: str | None) -> int:
    """A whole number, 0 if it is missing."""
    return int(text) if text and text.isdigit() else 0


def lap_times(results: list[Row], rng: random.Random) -> dict[str, list[int]]:
    """The milliseconds of each lap of one race: `{driverId: [milliseconds, …]}`."""
    averages = [
        whole(row["milliseconds"]) / whole(row["laps"])
        for row in results
        if whole(row["milliseconds"])
    ]
    usual = min(averages, default=90_000.0)
    laps: dict[str, list[int]] = {}
    for row in results:
        count = whole(row["laps"])
        if not count or row["driverId"] in laps:
            continue
        total = whole(row["milliseconds"])
        average = total / count if total else usual * rng.uniform(1.0, 1.03)
        laps[row["driverId"]] = [round(average * rng.uniform(0.985, 1.015)) for _ in range(count)]
        laps[row["driverId"]][0] += 3000 + 200 * whole(row["grid"])
    return laps


def rows_of_race(
    race_id: str, results: list[Row], rng: random.Random
) -> Iterator[tuple[str, str, int, int, str, int]]:
    """Rows of lap_times.csv, by driver and lap.

    `(raceId, driverId, lap, position, time, milliseconds)`
    """
    laps = lap_times(results, rng)
    finished = {driver: list(accumulate(times)) for driver, times in laps.items()}
    positions = {}
    for lap in range(max(map(len, laps.values()), default=0)):
        running = [driver for driver in finished if lap < len(finished[driver])]
        running.sort(key=lambda driver: finished[driver][lap])
        positions.update({(driver, lap): position for position, driver in enumerate(running, 1)})
    for driver, times in laps.items():
        for lap, milliseconds in enumerate(times):
            minutes, rest = divmod(milliseconds, 60_000)
            time = f"{minutes}:{rest // 1000:02}.{rest % 1000:03}"
            yield race_id, driver, lap + 1, positions[driver, lap], time, milliseconds


def main() -> None:
    parser = argparse.ArgumentParser(description="Make a dump of full size, for benchmarks only.")
    parser.add_argument("dump", type=Path, help="folder of CSV files")
    parser.add_argument("folder", type=Path, help="folder to write to")
    parser.add_argument("--seed", type=int, default=1996)
    parser.add_argument(
        "--races", type=int, default=0, help="how many of the latest races get lap times (0: all)"
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(arguments.dump.glob("*.csv")):
        if file.name != "lap_times.csv":
            copy(file, arguments.folder / file.name)
    results: defaultdict[str, list[Row]] = defaultdict(list)
    for row in read(arguments.dump / "results.csv"):
        results[row["raceId"]].append(row)
    races = [
        race for race in read(arguments.dump / "races.csv") if int(race["year"]) >= FIRST_SEASON
    ]
    races.sort(key=lambda race: (int(race["year"]), int(race["round"])))
    races = races[-arguments.races :]
    count = 0
    with (arguments.folder / "lap_times.csv").open("w", newline="", encoding="utf-8") as output:
        writer = csv.writer(output, lineterminator="\n")
        writer.writerow(["raceId", "driverId", "lap", "position", "time", "milliseconds", MARK])
        for race in races:
            # A seed per race, so that the lap times of one race do not depend on the results of
            # another.
            rng = random.Random(f"{arguments.seed}/{race['raceId']}")
            rows = list(rows_of_race(race["raceId"], results[race["raceId"]], rng))
            writer.writerows(rows)
            count += len(rows)
    print(
        f"{arguments.folder}: {count:,} lap times of {len(races):,} races, made up for benchmarks"
    )


if __name__ == "__main__":
    main()
