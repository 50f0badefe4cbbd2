#!/usr/bin/env python3
"""Makes a dump of full size out of a dump that lacks most lap timings: `make_full_size_dump.py DUMP FOLDER`.

For benchmarks only. Every race since 1996 gets timings made up from its results: each driver does the laps it did, in
times around its average, and has the position on each lap that the times add up to. The same dump and seed give the
same bytes. Each file says what it is in a last column of its header, which a loader passes over.
"""

import argparse
import csv
import random
from collections import defaultdict
from itertools import accumulate
from pathlib import Path

MARK = "for benchmarks only: lap timings are made up"
FIRST_SEASON = 1996


def read(path):
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def copy(source, target):
    header, rest = source.read_text(encoding="utf-8-sig").split("\n", 1)
    target.write_text(f'{header.rstrip()},"{MARK}"\n{rest}', encoding="utf-8")


def whole(text):
    return int(text) if text and text.isdigit() else None


def lap_times(results, rng):
    """Milliseconds of each lap of each driver of one race: `{driverId: [milliseconds, …]}`."""
    averages = [whole(row["milliseconds"]) / whole(row["laps"]) for row in results if whole(row["milliseconds"])]
    usual = min(averages, default=90_000.0)
    laps = {}
    for row in results:
        count = whole(row["laps"])
        if not count or row["driverId"] in laps:
            continue
        total = whole(row["milliseconds"])
        average = total / count if total else usual * rng.uniform(1.0, 1.03)
        laps[row["driverId"]] = [round(average * rng.uniform(0.985, 1.015)) for _ in range(count)]
        laps[row["driverId"]][0] += 3000 + 200 * whole(row["grid"] or "0")
    return laps


def rows_of_race(race_id, results, rng):
    """`[raceId, driverId, lap, position, time, milliseconds]`, by driver and lap as published dumps have them."""
    laps = lap_times(results, rng)
    finished = {driver: list(accumulate(times)) for driver, times in laps.items()}
    positions = {}
    for lap in range(max(map(len, laps.values()), default=0)):
        running = [driver for driver in finished if lap < len(finished[driver])]
        running.sort(key=lambda driver: finished[driver][lap])
        positions.update({(driver, lap): place for place, driver in enumerate(running, 1)})
    for driver, times in laps.items():
        for lap, milliseconds in enumerate(times):
            minutes, rest = divmod(milliseconds, 60_000)
            time = f"{minutes}:{rest // 1000:02}.{rest % 1000:03}"
            yield [race_id, driver, lap + 1, positions[driver, lap], time, milliseconds]


def main():
    parser = argparse.ArgumentParser(description="Make a dump of full size, for benchmarks only.")
    parser.add_argument("dump", type=Path, help="folder of CSV files")
    parser.add_argument("folder", type=Path, help="folder to write to")
    parser.add_argument("--seed", type=int, default=1996)
    parser.add_argument("--races", type=int, help="give timings to so many of the latest races (all)")
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    for file in sorted(arguments.dump.glob("*.csv")):
        if file.name != "lap_times.csv":
            copy(file, arguments.folder / file.name)
    results = defaultdict(list)
    for row in read(arguments.dump / "results.csv"):
        results[row["raceId"]].append(row)
    races = [race for race in read(arguments.dump / "races.csv") if int(race["year"]) >= FIRST_SEASON]
    races.sort(key=lambda race: (int(race["year"]), int(race["round"])))
    races = races[-arguments.races :] if arguments.races else races
    with (arguments.folder / "lap_times.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["raceId", "driverId", "lap", "position", "time", "milliseconds", MARK])
        count = 0
        for race in races:
            # A seed to each race, so that one race's timings do not depend on another's results.
            rows = list(
                rows_of_race(
                    race["raceId"], results[race["raceId"]], random.Random(f"{arguments.seed}/{race['raceId']}")
                )
            )
            writer.writerows(rows)
            count += len(rows)
    print(f"{arguments.folder}: {count:,} timings of {len(races):,} races, made up for benchmarks")


if __name__ == "__main__":
    main()
