"""Measures the CPU time of a refresh that changes one race.

It loads a dump in Ergast's layout, and further dumps behind it. Then an API on this machine, which
answers from the first dump as Jolpica does, gives and takes a penalty in the latest race in turn.
"""

import argparse
import csv
import os
import statistics
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support.apis import refreshed, served
from support.loads import built, edited
from support.refreshes import like_jolpica


def main(dumps: list[Path], runs: int) -> None:
    race = latest_race(dumps[0])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        database = built(dumps, folder / "racedata.db")
        before = like_jolpica(built(dumps[0], folder / "before.db"))
        after = like_jolpica(
            built(with_a_penalty(dumps[0], folder / "after", race), folder / "2.db")
        )
        with served(before) as api:
            used(database, api.url)  # the API joins the list
            found = []
            for run in range(runs):
                api.answer = before if run % 2 else after
                found.append(used(database, api.url))
    print(f"{statistics.median(found):.2f} s, at least {min(found):.2f}")


def used(database: Path, address: str) -> float:
    """The CPU time of a refresh, in seconds."""
    child = os.fork()
    if not child:
        refreshed(database, address)
        os._exit(0)
    _, status, usage = os.wait4(child, 0)
    assert status == 0
    return usage.ru_utime + usage.ru_stime


def latest_race(dump: Path) -> str:
    """The raceId of the latest race with results."""
    with (dump / "results.csv").open(newline="", encoding="utf-8") as file:
        with_results = {row["raceId"] for row in csv.DictReader(file)}
    with (dump / "races.csv").open(newline="", encoding="utf-8") as file:
        races = [row for row in csv.DictReader(file) if row["raceId"] in with_results]
    return max(races, key=lambda row: row["date"])["raceId"]


def with_a_penalty(dump: Path, folder: Path, race: str) -> Path:
    """A copy of a dump in which the second of a race is disqualified."""

    def penalty(row: dict[str, str]) -> dict[str, str]:
        is_second = (row["raceId"], row["positionOrder"]) == (race, "2")
        return row | {"points": "1", "positionText": "D"} if is_second else row

    return edited(dump, folder, results=penalty)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dumps", nargs="+", type=Path, metavar="DUMP")
    parser.add_argument("--runs", type=int, default=9)
    arguments = parser.parse_args()
    main(arguments.dumps, arguments.runs)
