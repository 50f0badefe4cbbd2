#!/usr/bin/env python3
"""How long answers and pages take to make.

`shapes.py DATABASE [--per-shape N] [--seed S]`

Requests the addresses that known clients request, in this process and without a cache, so that only
the service is measured. Each address is requested three times, and the fastest counts. bench.py
requests the same addresses over HTTP.
"""

import argparse
import gzip
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from racedata.service import queries
from racedata.service.app import App, create_app
from racedata.service.pages.resources import LEVEL
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

BASE = Settings().base_address
LISTS = ("seasons", "circuits", "races", "constructors", "drivers", "status")
ROWS = ("results", "qualifying", "sprint", "sprintqualifying", "practice")
STANDINGS = ("driverStandings", "constructorStandings")
NOTES = ("corrections", "changes", "discrepancies", "discrepancycounts", "ids")
PLACES = ("results/1", "qualifying/1", "grid/1/results", "grid/1/status", "fastest/1/results")


def under(prefixes: str, *names: str) -> Iterator[str]:
    """The addresses of these names behind each of the prefixes. Some names are several words."""
    for prefix in prefixes.split(" "):
        for name in " ".join(names).split():
            yield f"{prefix}/{name}"


# Addresses behind the base address that libraries and sites request. Y is a season, R a round, D a
# driver, C a constructor and K a circuit.
ONCE = (
    *under("", *LISTS, *ROWS, *STANDINGS, *NOTES),
    *under("", "driverStandings/1 driverStandings/1/drivers constructorStandings/1/constructors"),
    *("/current", *under("/current", "next last drivers constructors results/1 qualifying/1")),
    *under("/current/last", *ROWS, *STANDINGS),
    *under("/grid/0 /status/1 /results/r /results/1 /fastest/1", *LISTS, "results qualifying"),
)
SEASON = (
    *under("/Y", *LISTS, *ROWS, *STANDINGS, *PLACES),
    *under("/Y/drivers/D", "results driverStandings qualifying"),
    *under("/Y", "constructors/C/drivers constructors/C/results circuits/K/results"),
)
CAREERS = (
    *under("/drivers/D /constructors/C /circuits/K", *LISTS, *ROWS, *PLACES),
    *under("/drivers/D", "driverStandings driverStandings/1/seasons constructors/C/results"),
    *under("/constructors/C", "constructorStandings constructorStandings/1/seasons"),
    *under("/circuits/K", "drivers/D/results"),
    *("/drivers/D", "/constructors/C", "/circuits/K"),
    *("/constructors/C/circuits/K/results", "/grid/1/circuits/K/results/1"),
)
RACE = ("/Y", "/Y/R", *under("/Y/R", *LISTS, *ROWS, *STANDINGS, "drivers/D/results"))
TIMED_RACE = tuple(
    under(
        "/Y/R",
        "laps laps/1 drivers/D/laps laps/1/drivers/D/laps pitstops pitstops/1",
        "drivers/D/pitstops laps/10/pitstops",
    )
)


def shapes(data: Snapshot, number: int) -> Iterator[str]:
    """Addresses under the base address: each shape with values of `number` random results."""

    def rows(condition: str) -> list[Any]:
        found = data.rows(
            f"""SELECT year, round, driverRef, constructorRef, circuitRef
                FROM results JOIN races USING (raceId) JOIN drivers USING (driverId)
                JOIN constructors USING (constructorId) JOIN circuits USING (circuitId)
                WHERE {condition}"""
        )
        return random.sample([tuple(row) for row in found], min(number, len(found)))

    yield from ONCE
    for templates, condition in (
        (SEASON, "1"),
        (CAREERS, "1"),
        (RACE, "1"),
        (TIMED_RACE, "raceId IN (SELECT raceId FROM lap_times)"),
    ):
        for template in templates:
            for row in rows(condition):
                values = dict(zip("YRDCK", row))
                yield "/".join(str(values.get(part, part)) for part in template.split("/"))


def pages(app: App) -> Iterator[tuple[str, str]]:
    """The pages of whole tables, as path and query."""
    for path in (*(f"/{name}" for name in LISTS), "/results", "/qualifying", "/driverStandings"):
        total = int(json.loads(request(app, path, "limit=0")[1])["MRData"]["total"])
        yield from ((path, f"limit=100&offset={offset}") for offset in range(0, total, 100))


def request(app: App, path: str, query: str, base: str = BASE) -> tuple[float, bytes]:
    """Milliseconds, and the body of the answer. Raises SystemExit if it is not a 200."""
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": base + path,
        "QUERY_STRING": query,
        "HTTP_HOST": "localhost",
        "SERVER_NAME": "localhost",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.url_scheme": "http",
        "wsgi.input": sys.stdin.buffer,
        "wsgi.errors": sys.stderr,
    }
    status = []
    begin = time.perf_counter()
    body = b"".join(app(environ, lambda line, headers: status.append(line)))  # type: ignore[arg-type]
    seconds = time.perf_counter() - begin
    if status != ["200 OK"]:
        raise SystemExit(f"shapes: {path}?{query}: {status}")
    return seconds * 1000, body


def fastest(app: App, path: str, query: str) -> float:
    return min(request(app, path, query)[0] for _ in range(3))


def endpoint_of(path: str) -> str:
    """The last word that is not a value."""
    others = ("laps", "pitstops", *NOTES)
    names = [name for name in path.split("/") if name in (*LISTS, *ROWS, *STANDINGS, *others)]
    return names[-1].lower() if names else "races"


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def print_addresses(data: Snapshot) -> None:
    """Prints how long pages, tables, calendars and large answers take: the first answer of a
    service, later ones of the same address without a cache, and those from the cache.
    """
    season, round = queries.example_race(data)
    print("\n| address | first | later | cached | compressed |")
    print("|---|---|---|---|---|")
    for address in (
        *("/", f"/{season}", f"/{season}/{round}", "/drivers/alonso", "/constructors/ferrari"),
        *("/circuits/monza", "/seasons", "/records", "/drivers", "/find?q=alonso"),
        *("/discrepancies", "/changes", "/data", "/docs"),
        *(
            BASE + of_data
            for name in ("results", "practice", "qualifying", f"{season}/{round}/laps")
            for of_data in (f"/{name}?limit=2000", f"/{name}.csv?limit=2000")
        ),
        f"{BASE}/results?limit=100&offset=25000",
        *(f"{BASE}/{of}.ics" for of in (f"{season}/{round}", season, "races")),
    ):
        path, _, query = address.partition("?")
        app = create_app(Settings(cache_size=0), data)
        first, body = request(app, path, query, "")
        later = min(request(app, path, query, "")[0] for _ in range(3))
        app = create_app(Settings(), data)
        cached = min(request(app, path, query, "")[0] for _ in range(4))
        size = len(gzip.compress(body, LEVEL))
        print(
            f"| `{address}` | {first:.1f} ms | {later:.1f} ms | {cached:.2f} ms | {size:,} bytes |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Measure how long answers take to make, by endpoint."
    )
    parser.add_argument("database")
    parser.add_argument("--per-shape", type=int, default=20, help="addresses per shape")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    data = Snapshot.read(arguments.database)
    app = create_app(Settings(cache_size=0), data)
    paths = list(dict.fromkeys(shapes(data, arguments.per_shape)))
    print("| endpoint | addresses | p50 | p99 | slowest | slowest, limit=2000 |")
    print("|---|---|---|---|---|---|")
    times: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for path in paths:
        row = fastest(app, path, "limit=100"), fastest(app, path, "limit=2000"), path
        times[endpoint_of(path)].append(row)
    for endpoint, rows in [
        *times.items(),
        ("all", [row for each in times.values() for row in each]),
    ]:
        slowest, largest = max(rows), max(rows, key=lambda row: row[1])
        milliseconds = [row[0] for row in rows]
        print(
            f"| {endpoint} | {len(rows)} "
            f"| {percentile(milliseconds, 0.5):.2f} ms | {percentile(milliseconds, 0.99):.2f} ms "
            f"| {slowest[0]:.1f} ms `{slowest[2]}` | {largest[1]:.1f} ms `{largest[2]}` |"
        )
    print_addresses(data)


if __name__ == "__main__":
    main()
