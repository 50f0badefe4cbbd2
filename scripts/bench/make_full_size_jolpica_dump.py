#!/usr/bin/env python3
"""Makes a full-size dump in Jolpica's layout from one with few rounds.

`make_full_size_jolpica_dump.py DUMP FOLDER`

For benchmarks only. A round without results gets the entries, qualifying laps and standings of one
that has them. Since 1996, every lap of a race is invented from its results, as
make_full_size_dump.py does, and since 2011 two pit stops per car. The same dump gives the same
bytes. An extra last column in the header of each file says that it is for benchmarks; the loader
ignores unknown columns.
"""

import argparse
import csv
import random
from collections import defaultdict
from itertools import count, cycle
from pathlib import Path

from make_full_size_dump import FIRST_SEASON, MARK, Row, lap_times, read, whole

FIRST_PIT_STOPS = 2011


def milliseconds(duration: str) -> int:
    """The milliseconds of a duration such as 01:31:31.531; 0 if it is empty."""
    hours, minutes, seconds = duration.split(":") if duration else (0, 0, 0)
    return round((int(hours) * 60 + int(minutes)) * 60_000 + float(seconds) * 1000)


def duration(milliseconds: int) -> str:
    seconds, rest = divmod(milliseconds, 1000)
    return f"00:{seconds // 60:02}:{seconds % 60:02}.{rest:03}"


class Dump:
    """The rows of each file. Added rows get new ids."""

    def __init__(self, folder: Path) -> None:
        self.rows = {
            path.stem.removeprefix("formula_one_"): read(path)
            for path in sorted(folder.glob("*.csv"))
        }
        self.headers = {
            path.stem.removeprefix("formula_one_"): header(path) for path in folder.glob("*.csv")
        }
        self.ids = {
            name: count(max((whole(row.get("id")) for row in rows), default=0) + 1)
            for name, rows in self.rows.items()
        }

    def add(self, name: str, row: Row, **changes: str) -> Row:
        row = {**row, **changes, "id": str(next(self.ids[name]))}
        self.rows[name].append(row)
        return row

    def grouped(self, name: str, column: str) -> defaultdict[str, list[Row]]:
        groups: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self.rows[name]:
            groups[row[column]].append(row)
        return groups

    def seasons(self) -> dict[str, int]:
        """The year of each round."""
        years = {season["id"]: int(season["year"]) for season in self.rows["season"]}
        return {row["id"]: years[row["season_id"]] for row in self.rows["round"]}

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in self.rows.items():
            with (folder / f"formula_one_{name}.csv").open(
                "w", newline="", encoding="utf-8"
            ) as output:
                writer = csv.writer(output, lineterminator="\n")
                writer.writerow([*self.headers[name], MARK])
                writer.writerows(
                    [row.get(column, "") for column in self.headers[name]] for row in rows
                )


def header(path: Path) -> list[str]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        return next(csv.reader(file))


def fill_rounds(dump: Dump) -> None:
    """Gives every round that has no results the entries and standings of a round that has some."""
    sessions = dump.grouped("session", "round_id")
    round_entries = dump.grouped("roundentry", "round_id")
    entries = dump.grouped("sessionentry", "session_id")
    laps = dump.grouped("lap", "session_entry_id")
    standings = {
        name: dump.grouped(name, "round_id") for name in ("driverchampionship", "teamchampionship")
    }
    with_results = [row["id"] for row in dump.rows["round"] if round_entries[row["id"]]]
    seasons = dump.seasons()
    old_models = cycle([round for round in with_results if seasons[round] < FIRST_SEASON])
    new_models = cycle([round for round in with_results if seasons[round] >= FIRST_SEASON])
    for row in [row for row in dump.rows["round"] if not round_entries[row["id"]]]:
        model = next(old_models if seasons[row["id"]] < FIRST_SEASON else new_models)
        copies = {
            old["id"]: dump.add("roundentry", old, round_id=row["id"])["id"]
            for old in round_entries[model]
        }
        own = {session["type"]: session["id"] for session in sessions[row["id"]]}
        for session in sessions[model]:
            for old in entries[session["id"]] if session["type"] in own else ():
                new = dump.add(
                    "sessionentry",
                    old,
                    session_id=own[session["type"]],
                    round_entry_id=copies[old["round_entry_id"]],
                )
                for lap in laps[old["id"]]:
                    if lap["is_entry_fastest_lap"] == "t":
                        dump.add("lap", lap, session_entry_id=new["id"])
        for name, groups in standings.items():
            for old in groups[model]:
                dump.add(name, old, round_id=row["id"], session_id=own["R"])


def fill_laps(dump: Dump) -> None:
    """Invents the laps that the races since 1996 lack."""
    seasons = dump.seasons()
    entries = dump.grouped("sessionentry", "session_id")
    laps = dump.grouped("lap", "session_entry_id")
    stops = {stop["session_entry_id"] for stop in dump.rows["pitstop"]}
    for session in dump.rows["session"]:
        if session["type"] != "R" or seasons[session["round_id"]] < FIRST_SEASON:
            continue
        results = [
            {
                "driverId": entry["id"],
                "laps": entry["laps_completed"],
                "grid": entry["grid"],
                "milliseconds": str(milliseconds(entry["time"])),
            }
            for entry in entries[session["id"]]
        ]
        times = lap_times(results, random.Random(session["id"]))
        for position, (entry_id, driver_times) in enumerate(times.items(), 1):
            known = {lap["number"]: lap for lap in laps[entry_id]}
            for number, time in enumerate(driver_times, 1):
                lap = known.get(str(number)) or dump.add(
                    "lap",
                    {"is_deleted": "f", "is_entry_fastest_lap": "f"},
                    session_entry_id=entry_id,
                    number=str(number),
                    position=str(position),
                    time=duration(time),
                )
                third = len(driver_times) // 3
                has_stops = (
                    seasons[session["round_id"]] >= FIRST_PIT_STOPS and entry_id not in stops
                )
                if has_stops and number in (third, 2 * third):
                    stop = {
                        "number": str(number // third),
                        "local_timestamp": "14:30:00",
                        "duration": "00:00:23.5",
                    }
                    dump.add("pitstop", stop, session_entry_id=entry_id, lap_id=lap["id"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Make a dump of full size in Jolpica's layout, for benchmarks only."
    )
    parser.add_argument("dump", type=Path, help="folder of CSV files")
    parser.add_argument("folder", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    dump = Dump(arguments.dump)
    fill_rounds(dump)
    fill_laps(dump)
    dump.write(arguments.folder)
    print(f"{arguments.folder}: {len(dump.rows['lap']):,} laps, made up for benchmarks")


if __name__ == "__main__":
    main()
