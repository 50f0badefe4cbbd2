#!/usr/bin/env python3
"""Compares the service with a minimal app, the floor: `bench.py DATABASE [--rounds N] [--seconds S] [--json FILE]`.

README.md in this folder describes the method and the figures. wrk, which must be installed, sends the requests.
"""

import argparse
import gzip
import http.client
import json
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import falcon
from processes import ROOT, Address, Gunicorn, free_port, gunicorn, listens, memory, until

BASE = "/ergast/f1"
CONNECTIONS = 16
NEVER = {"RACEDATA_BURST_LIMIT": "999999/second", "RACEDATA_SUSTAINED_LIMIT": "999999/second"}
OFF = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "off"}

Figures = dict[str, float]  # such as {"rps": 18637.0, "p50": 0.8, "p99": 2.9}
Measure = Callable[[], Figures]


class Shape(NamedTuple):
    """Addresses of one kind, without the base address."""

    name: str
    one: str  # the address that is requested again and again, of the latest race that has everything
    every: str  # SQL of all that have records; pages at their default size


SHAPES = [
    Shape("calendar", "{year}/races/", "SELECT DISTINCT year || '/races/' FROM races"),
    Shape("race", "{year}/{round}.json", "SELECT year || '/' || round || '.json' FROM races"),
    Shape(
        "results",
        "{year}/{round}/results.json",
        "SELECT DISTINCT year || '/' || round || '/results.json' FROM results JOIN races USING (raceId)",
    ),
    Shape(
        "qualifying",
        "{year}/{round}/qualifying.json",
        "SELECT DISTINCT year || '/' || round || '/qualifying.json' FROM qualifying JOIN races USING (raceId)",
    ),
    Shape(
        "sprint",
        "{year}/{round}/sprint.json",
        "SELECT DISTINCT year || '/' || round || '/sprint.json' FROM sprint_results JOIN races USING (raceId)",
    ),
    Shape(
        "laps",
        "{year}/{round}/laps.json?limit=100&offset=300",
        """SELECT year || '/' || round || '/laps.json?limit=100&offset=' || (record - 1)
           FROM lap_times JOIN races USING (raceId) WHERE record % 100 = 1""",
    ),
]

# Prints one line of JSON at the end; times in microseconds. `paths` is nil, or a file of paths to request once each.
WRK = """
local paths = %s
local next = 0
function init(args)
    local file = paths and io.open(paths)
    if file then
        paths = {}
        for line in file:lines() do paths[#paths + 1] = wrk.format("GET", line) end
    end
end
function request()
    if not paths then return wrk.format("GET") end
    next = next + 1
    -- The only way to end wrk early is a signal. It ignores signals during os.execute, so more come for a second.
    if next == #paths then
        os.execute("(for i in $(seq 50); do sleep 0.02; kill -INT $PPID || exit; done) 2>/dev/null &")
    end
    return paths[next] or paths[#paths]
end
function done(summary, latency, requests)
    io.write(string.format('{"requests": %%d, "duration": %%d, "p50": %%d, "p99": %%d, "errors": %%d}\\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
"""


class Constant:
    """The floor: it always returns the same body."""

    def __init__(self, body: bytes) -> None:
        self.body = body

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.content_type = falcon.MEDIA_JSON
        resp.data = self.body


def floor_app() -> "falcon.App[falcon.Request, falcon.Response]":
    app = falcon.App()
    app.add_route("/floor", Constant(b"x" * int(os.environ["FLOOR_BYTES"])))
    return app


class Worker:
    """Answers with the id of the worker."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.text = str(os.getpid())


def worker_app() -> "falcon.App[falcon.Request, falcon.Response]":
    app = falcon.App()
    app.add_route("/worker", Worker())
    return app


def running(path: str, *options: str, **environ: str) -> AbstractContextManager[Gunicorn]:
    """gunicorn, once it answers `path`."""

    def ready(address: Address) -> bool:
        try:
            return get(address, path)[0] == 200
        except OSError:
            return False

    return gunicorn("--log-level", "error", *options, environ=environ, ready=ready)


def service(database: str, path: str, **settings: str) -> AbstractContextManager[Gunicorn]:
    return running(path, RACEDATA_DATABASE=database, **settings)


def floor(size: int) -> AbstractContextManager[Gunicorn]:
    """The floor with bodies of `size` bytes."""
    return running("/floor", "bench:floor_app()", PYTHONPATH=str(Path(__file__).parent), FLOOR_BYTES=str(size))


def url(server: Gunicorn) -> str:
    return "http://{}:{}".format(*server.address)


def get(address: Address, path: str) -> tuple[int, bytes]:
    """The status and body of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=10)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()


@contextmanager
def nginx(body: bytes) -> Iterator[str]:
    """nginx that serves `body` as a file. Yields its URL."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        Path(folder, "body").write_bytes(body)
        Path(folder, "nginx.conf").write_text(
            f"daemon off; worker_processes 2; pid {folder}/pid; error_log {folder}/log; events {{ }}"
            f"http {{ access_log off; server {{ listen 127.0.0.1:{port}; root {folder}; }} }}"
        )
        process = subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf", "-e", f"{folder}/log"])
        try:
            until(lambda: listens(("127.0.0.1", port)))
            yield f"http://127.0.0.1:{port}/body"
        finally:
            process.terminate()
            process.wait()


def wrk(url: str, seconds: int, paths: list[str] | None = None) -> Figures:
    """Requests `url` for `seconds`, or each of the paths once. Returns requests per second, p50 and p99 in ms."""
    with tempfile.TemporaryDirectory() as folder:
        script, file = Path(folder, "wrk.lua"), Path(folder, "paths")
        file.write_text("\n".join(paths or []))
        script.write_text(WRK % (json.dumps(str(file)) if paths else "nil"))
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", str(script), url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if found["errors"]:
        raise SystemExit(f"bench: {found['errors']} errors from {url}")
    return {"rps": found["requests"] / found["duration"] * 1e6, "p50": found["p50"] / 1e3, "p99": found["p99"] / 1e3}


def in_turn(rounds: int, measures: dict[str, Measure]) -> dict[str, Figures]:
    """Calls each function once per round. Returns the median figures of each."""
    found: dict[str, list[Figures]] = {name: [] for name in measures}
    for number in range(rounds):
        for name, measure in measures.items():
            show(f"round {number + 1} of {rounds}: {name}")
            found[name].append(measure())
    return {name: {key: median(each[key] for each in all) for key in all[0]} for name, all in found.items()}


def show(text: str) -> None:
    """Shows progress: on a terminal always in the same line, otherwise in a new line."""
    terminal = sys.stderr.isatty()
    print(f"\r\033[K{text}" if terminal else text, end="" if terminal else "\n", file=sys.stderr, flush=True)


def addresses(database: str) -> Iterator[str]:
    """Every address that has records, of all shapes."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        for shape in SHAPES:
            for (address,) in db.execute(shape.every):
                yield f"{BASE}/{address}"


def one_per_shape(database: str) -> dict[str, str]:
    """An address per shape, of the latest race that has everything."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as db:
        year, round = db.execute(
            """SELECT year, round FROM races WHERE raceId IN (SELECT raceId FROM sprint_results)
               AND raceId IN (SELECT raceId FROM lap_times) ORDER BY year DESC, round DESC LIMIT 1"""
        ).fetchone()
    return {shape.name: f"{BASE}/{shape.one.format(year=year, round=round)}" for shape in SHAPES}


def bench_one(database: str, path: str, rounds: int, seconds: int) -> dict[str, Figures]:
    """One address, requested again and again: floor, limits on, limits off, nginx if installed; and its size."""
    with ExitStack() as servers:
        on = servers.enter_context(service(database, path, **NEVER))
        off = servers.enter_context(service(database, path, **OFF))
        _, body = get(on.address, path)
        lowest = servers.enter_context(floor(len(body)))
        measures: dict[str, Measure] = {
            "floor": partial(wrk, f"{url(lowest)}/floor", seconds),
            "limits on": partial(wrk, url(on) + path, seconds),
            "limits off": partial(wrk, url(off) + path, seconds),
        }
        if shutil.which("nginx"):
            measures["nginx"] = partial(wrk, servers.enter_context(nginx(body)), seconds)
        size: Figures = {"plain": len(body), "gzip": len(gzip.compress(body, 5))}
        return {**in_turn(rounds, measures), "bytes": size}


def bench_all(database: str, rounds: int, cache_size: int) -> dict[str, Any]:
    """Every address in random order: with the default cache and one that holds all answers, limits on and off.

    Measures the first pass after a start, and one after either worker has had nearly all; and a worker's memory.
    """
    paths = list(addresses(database))
    fresh: Figures = {}
    full: Figures = {}

    def largest(server: Gunicorn) -> float:
        return max(map(memory, server.workers()))

    def request_all(server: Gunicorn, paths: list[str] = paths) -> Figures:
        return wrk(url(server), 600, random.sample(paths, len(paths)))

    def passes(label: str, **settings: str) -> Figures:
        with service(database, paths[0], **settings) as server:
            fresh[label] = largest(server)
            first = request_all(server)
            for _ in range(5):
                request_all(server)
            again = request_all(server)
            full[label] = largest(server)
        return {"first": first["rps"], "first p99": first["p99"], "again": again["rps"], "again p99": again["p99"]}

    show("sizes of all answers")
    with service(database, paths[0], **OFF) as server:
        sample = random.sample(paths, min(500, len(paths)))
        size = sum(len(get(server.address, path)[1]) for path in sample) // len(sample)

    def lowest() -> Figures:
        with floor(size) as server:
            fresh["floor"] = full["floor"] = largest(server)
            return request_all(
                server, ["/floor"] * len(paths)
            )  # choosing a path costs wrk time, so it does so here too

    large = {"RACEDATA_CACHE_SIZE": str(cache_size)}
    measures: dict[str, Measure] = {
        "floor": lowest,
        "default cache, limits on": partial(passes, "default cache, limits on", **NEVER),
        "default cache, limits off": partial(passes, "default cache, limits off", **OFF),
        "large cache, limits on": partial(passes, "large cache, limits on", **NEVER, **large),
        "large cache, limits off": partial(passes, "large cache, limits off", **OFF, **large),
    }
    found = in_turn(rounds, measures)
    memories = {"worker MB fresh": fresh, "worker MB then": full}
    return {"addresses": len(paths), "mean bytes": size, "passes": found, **memories}


def bench_start(database: str, rounds: int) -> dict[str, Figures]:
    """Seconds from start to the first 200."""

    def start(server: AbstractContextManager[Gunicorn]) -> Figures:
        with server as started:
            return {"seconds": started.seconds}

    return in_turn(
        rounds,
        {
            "floor": lambda: start(floor(5000)),
            "service": lambda: start(service(database, f"{BASE}/2023.json")),
        },
    )


def bench_pages(database: str, rounds: int, seconds: int) -> dict[str, Figures]:
    """Pages of one race's laps at several offsets, without a cache."""
    path = one_per_shape(database)["laps"].split("?")[0]
    with service(database, path, RACEDATA_CACHE_SIZE="0", **NEVER) as server:
        total = int(json.loads(get(server.address, path)[1])["MRData"]["total"])
        pages = [(100, 0), (100, total - 100), (2000, 0), (500, 0), (500, total - 500)]
        measures: dict[str, Measure] = {
            f"{limit} at {offset}": partial(wrk, f"{url(server)}{path}?limit={limit}&offset={offset}", seconds)
            for limit, offset in pages
        }
        return in_turn(rounds, measures)


def share_by_worker(rounds: int) -> list[int]:
    """The percentage of the requests of 16 connections that the busiest worker answered; one figure per round."""
    shares = []
    for number in range(rounds):
        show(f"round {number + 1} of {rounds}: share by worker")
        with running("/worker", "bench:worker_app()", PYTHONPATH=str(Path(__file__).parent)) as server:
            port = int(server.address[1])
            connections = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(CONNECTIONS)]
            for connection in connections:
                connection.connect()
            counts: Counter[bytes] = Counter()
            for _ in range(20):
                for connection in connections:
                    connection.request("GET", "/worker")
                for connection in connections:
                    counts[connection.getresponse().read()] += 1
            for connection in connections:
                connection.close()
        shares.append(round(100 * max(counts.values()) / sum(counts.values())))
    return sorted(shares)


def ratio(value: float, floor: float) -> str:
    return f"{value:,.0f} ({value / floor:.2f})"


def report(found: dict[str, Any]) -> None:
    print(f"\n{found['machine']}; wrk with {CONNECTIONS} connections; medians of {found['rounds']} rounds\n")
    print("| one address | bytes | gzip | floor rps | limits on | limits off | nginx | p99 floor | p99 limits on |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, each in found["one"].items():
        floor, on, off = each["floor"], each["limits on"], each["limits off"]
        print(
            "| {} | {:,} | {:,} | {:,.0f} | {} | {} | {} | {:.1f} ms | {:.1f} ms ({:.2f}) |".format(
                name,
                each["bytes"]["plain"],
                each["bytes"]["gzip"],
                floor["rps"],
                ratio(on["rps"], floor["rps"]),
                ratio(off["rps"], floor["rps"]),
                f"{each['nginx']['rps']:,.0f}" if "nginx" in each else "",
                floor["p99"],
                on["p99"],
                on["p99"] / floor["p99"],
            )
        )
    everything = found["all"]
    fresh, then = everything["worker MB fresh"], everything["worker MB then"]
    lowest = everything["passes"]["floor"]["rps"]
    print(
        f"\n{everything['addresses']:,} addresses in random order, {everything['mean bytes']:,} bytes each; "
        f"floor {lowest:,.0f} rps, {fresh['floor']:.0f} MB per worker\n"
    )
    print("| | first pass | all requested before | worker fresh | then |")
    print("|---|---|---|---|---|")
    for name, each in everything["passes"].items():
        if name != "floor":
            print(
                "| {} | {} | {} | {:.0f} MB | {:.0f} MB |".format(
                    name, ratio(each["first"], lowest), ratio(each["again"], lowest), fresh[name], then[name]
                )
            )
    start, floor_start = (found["start"][name]["seconds"] for name in ("service", "floor"))
    print(f"\nstart to first 200: {start:.2f} s, floor {floor_start:.2f} s ({start / floor_start:.2f})")
    pages = ", ".join(f"{name}: {each['rps']:,.0f} rps" for name, each in found["pages"].items())
    print(f"pages of laps, not cached: {pages}")
    print(f"share of the busiest worker, per round: {found['shares']} %")


def database_and_wrk(path: str) -> str:
    """The absolute path of the database. Ends the program if wrk is not installed."""
    if not shutil.which("wrk"):
        sys.exit(f"{Path(sys.argv[0]).stem}: wrk is not installed; on Debian: apt-get install wrk")
    return str(Path(path).absolute())


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare the service with a minimal app under the same server.")
    parser.add_argument("database")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="per measurement")
    parser.add_argument("--cache-size", type=int, default=128, help="MB that hold every answer")
    parser.add_argument("--json", type=Path, default=ROOT / "build" / "bench.json", help="file for the figures")
    arguments = parser.parse_args()
    database = database_and_wrk(arguments.database)
    rounds, seconds = arguments.rounds, arguments.seconds
    one = {}
    for name, path in one_per_shape(database).items():
        show(f"one address: {name}")
        one[name] = bench_one(database, path, rounds, seconds)
    found = {
        "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}",
        "rounds": rounds,
        "one": one,
        "all": bench_all(database, max(2, rounds // 2), arguments.cache_size),
        "start": bench_start(database, rounds),
        "pages": bench_pages(database, max(2, rounds // 2), seconds),
        "shares": share_by_worker(rounds),
    }
    show("")
    arguments.json.parent.mkdir(exist_ok=True)
    arguments.json.write_text(json.dumps(found, indent=1))
    report(found)


if __name__ == "__main__":
    main()
