#!/usr/bin/env python3
"""How long answers take to make, by endpoint: `shapes.py DATABASE [--per-kind N] [--seed S]`.

Requests the addresses that known clients request, in this process and without a cache, so that only the service is
measured. Each address is requested three times, and the fastest counts.
"""

import argparse
import json
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Any

from racedata.app import App, create_app
from racedata.datafile import DataFile
from racedata.settings import Settings

BASE = Settings().base_address
LISTS = ("seasons", "circuits", "races", "constructors", "drivers", "status")
ROWS = ("results", "qualifying", "sprint")
STANDINGS = ("driverstandings", "constructorstandings")
PLACES = ("results/1", "qualifying/1", "grid/1/results", "grid/1/status", "fastest/1/results")


def shapes(data: DataFile, number: int) -> Iterator[str]:
    """Addresses behind the base address, of `number` drivers, constructors, circuits, seasons and races each."""

    def some(sql: str) -> list[Any]:
        rows = [tuple(row) for row in data.rows(sql)]
        return random.sample(rows, min(number, len(rows)))

    yield from (f"/{name}" for name in (*LISTS, *ROWS, *STANDINGS))
    for championship, of in (("driverstandings", "drivers"), ("constructorstandings", "constructors")):
        yield from (f"/{championship}/1", f"/{championship}/1/{of}")
    # Those with most rows, because they cost most.
    for kind, ref, championship in (
        ("drivers", "driverRef", "driverstandings"),
        ("constructors", "constructorRef", "constructorstandings"),
    ):
        join = f"results JOIN {kind} USING ({kind[:-1]}Id) GROUP BY {ref}"
        for (id,) in some(f"SELECT {ref} FROM {join} ORDER BY count(*) DESC LIMIT {2 * number}"):
            names = (*LISTS, *ROWS, *PLACES, championship, f"{championship}/1/seasons")
            yield from (f"/{kind}/{id}/{name}" for name in names)
    for (id,) in some("SELECT circuitRef FROM circuits JOIN races USING (circuitId) GROUP BY circuitRef"):
        yield from (f"/circuits/{id}/{name}" for name in (*LISTS, *ROWS, *PLACES))
    for (year,) in some("SELECT year FROM seasons"):
        yield from (f"/{year}/{name}" for name in (*LISTS, *ROWS, *STANDINGS, *PLACES))
    for year, round in some("SELECT DISTINCT year, round FROM lap_times JOIN races USING (raceId)"):
        names = (*LISTS, *ROWS, *STANDINGS, "laps", "laps/1", "pitstops", "pitstops/1", "laps/10/pitstops")
        yield from (f"/{year}/{round}/{name}" for name in names)
    # Filters that match many rows.
    for filter in ("grid/0", "status/1", "results/r", "results/1", "fastest/1"):
        yield from (f"/{filter}/{name}" for name in (*LISTS, "results", "qualifying"))


def request(app: App, path: str, query: str) -> tuple[float, bytes]:
    """Milliseconds, and the body of the answer. Raises SystemExit if it is not a 200."""
    environ = {
        "REQUEST_METHOD": "GET",
        "PATH_INFO": BASE + path,
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
    """The last word that is no value."""
    names = [name for name in path.split("/") if name in (*LISTS, *ROWS, *STANDINGS, "laps", "pitstops")]
    return names[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure how long answers take to make, by endpoint.")
    parser.add_argument("database")
    parser.add_argument("--per-kind", type=int, default=15, help="drivers, constructors, circuits, seasons, races")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random.seed(arguments.seed)
    data = DataFile.read(arguments.database)
    app = create_app(Settings(cache_size=0), data)
    paths = list(dict.fromkeys(shapes(data, arguments.per_kind)))
    print("| endpoint | addresses | median | slowest | slowest, limit=2000 |")
    print("|---|---|---|---|---|")
    times: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
    for path in paths:
        row = fastest(app, path, "limit=100"), fastest(app, path, "limit=2000"), path
        times[endpoint_of(path)].append(row)
    for endpoint, rows in [*times.items(), ("all", [row for each in times.values() for row in each])]:
        slowest, largest = max(rows), max(rows, key=lambda row: row[1])
        print(
            f"| {endpoint} | {len(rows)} | {median(row[0] for row in rows):.2f} ms "
            f"| {slowest[0]:.1f} ms `{slowest[2]}` | {largest[1]:.1f} ms `{largest[2]}` |"
        )
    print("\n| address | records | first page | last page | ratio |")
    print("|---|---|---|---|---|")
    for path in ("/results", "/qualifying", "/driverstandings", "/status/1/results", "/constructors/ferrari/results"):
        total = int(json.loads(request(app, path, "limit=0")[1])["MRData"]["total"])
        first, last = (fastest(app, path, f"limit=100&offset={offset}") for offset in (0, max(0, total - 100)))
        print(f"| `{path}` | {total:,} | {first:.2f} ms | {last:.2f} ms | {last / first:.2f} |")


if __name__ == "__main__":
    main()
