#!/usr/bin/env python3
"""Compares the service with a minimal app, the floor.

`bench.py DATABASE [--rounds N] [--seconds S] [--json FILE]`

README.md in this folder describes the method and the figures. wrk sends the requests, directly and
through nginx; both must be installed.
"""

import argparse
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import falcon
from shapes import pages, request, shapes

from racedata.service.app import create_app
from racedata.service.snapshot import Snapshot
from racedata.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

from support.processes import (  # noqa: E402 - they start gunicorn and nginx in the same way
    OFF,
    SERVE,
    Address,
    Gunicorn,
    gunicorn,
    listens,
    memory,
    nginx,
    nginx_sockets,
)

BASE = "/ergast/f1"
CONNECTIONS = 16
HEADERS = {"Accept-Encoding": "gzip"}
NEVER = {"RACEDATA_BURST_LIMIT": "999999/second", "RACEDATA_SUSTAINED_LIMIT": "999999/second"}

Figures = dict[str, float]  # such as {"rps": 18637.0, "p50": 0.8, "p99": 2.9}
Measure = Callable[[], Figures]

PLACES = ("direct", "nginx")

# The addresses that are requested repeatedly. Most are about one season.
ONE = {
    "races": "2023/races",
    "results": "2023/18/results",
    "qualifying": "2023/18/qualifying",
    "laps": "2023/18/laps?offset=300",
    "driverstandings": "2023/driverstandings",
    "seasons": "seasons",
}

# Prints one line of JSON at the end; times in microseconds. `paths` is nil, or a file of paths to
# request once each.
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
    if not paths then return wrk.format() end
    next = next + 1
    -- Only a signal ends wrk early. It ignores signals during os.execute, so more follow.
    if next == #paths then
        local kill = "for i in $(seq 50); do sleep 0.02; kill -INT $PPID || exit; done"
        os.execute("(" .. kill .. ") 2>/dev/null &")
    end
    return paths[next] or paths[#paths]
end
function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.status + errors.connect + errors.read + errors.timeout
    io.write(string.format(
        '{"requests": %%d, "duration": %%d, "p50": %%d, "p99": %%d, "errors": %%d}\\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99), failed))
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


class Server(NamedTuple):
    """A running gunicorn, and where to send requests."""

    gunicorn: Gunicorn
    url: str


@contextmanager
def running(place: str, path: str, environ: dict[str, str]) -> Iterator[Server]:
    """The service once it answers `path`: on its own (`direct`), or behind deploy/nginx.conf.

    With FLOOR_BYTES, it is the floor.
    """
    serves = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import bench;"
        "from racedata import settings; from racedata.service import server; "
        "arguments = settings.parse_arguments(sys.argv[2:]);"
        "server.application = lambda settings: bench.floor_app();"
        "server.serve(arguments.settings, arguments.gunicorn_options)"
    )
    command = [sys.executable, "-c", serves, "serve"] if "FLOOR_BYTES" in environ else SERVE

    def answers(address: Address) -> bool:
        try:
            return get(url_of(address), path)[0] == 200
        except OSError:
            return False

    with ExitStack() as stack:
        sockets: list[Path] = []
        if place == "nginx":
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            sockets, environ["RACEDATA_TRUSTED_PROXIES"] = nginx_sockets(folder), "unix"
        ready = listens if place == "nginx" else answers
        started = stack.enter_context(
            gunicorn(
                "--log-level",
                "error",
                environ=environ,
                ready=ready,
                sockets=sockets,
                command=command,
            )
        )
        url = url_of(stack.enter_context(nginx(folder)) if place == "nginx" else started.address)
        yield Server(started, url)


def url_of(address: Address) -> str:
    return "http://{}:{}".format(*address)


def service(
    database: str, path: str, place: str = "direct", **settings: str
) -> AbstractContextManager[Server]:
    return running(place, path, {"RACEDATA_DATABASE": database, **settings})


def floor(size: int, place: str = "direct") -> AbstractContextManager[Server]:
    """The floor with bodies of `size` bytes."""
    return running(place, "/floor", {"FLOOR_BYTES": str(size)})


def get(url: str, path: str) -> tuple[int, bytes]:
    """The status of an answer, and its body as it is sent."""
    with closing(http.client.HTTPConnection(url.removeprefix("http://"), timeout=10)) as connection:
        connection.request("GET", path, headers=HEADERS)
        answer = connection.getresponse()
        return answer.status, answer.read()


def wrk(url: str, seconds: int, paths: list[str] | None = None) -> Figures:
    """Requests `url` for `seconds`, or each path once. Returns requests/s, p50 and p99 in ms."""
    with tempfile.TemporaryDirectory() as folder:
        script, file = Path(folder, "wrk.lua"), Path(folder, "paths")
        file.write_text("\n".join(paths or []))
        script.write_text(WRK % (json.dumps(str(file)) if paths else "nil"))
        headers = [word for name in HEADERS for word in ("-H", f"{name}: {HEADERS[name]}")]
        options = ["-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", *headers, "-s", str(script)]
        command = ["wrk", *options, url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if found["errors"]:
        raise SystemExit(f"bench: {found['errors']} errors from {url}")
    return {
        "rps": found["requests"] / found["duration"] * 1e6,
        "p50": found["p50"] / 1e3,
        "p99": found["p99"] / 1e3,
    }


def in_turn(rounds: int, measures: dict[str, Measure]) -> dict[str, Figures]:
    """Calls each function once per round. Returns the median figures of each."""
    found: dict[str, list[Figures]] = {name: [] for name in measures}
    for number in range(rounds):
        for name, measure in measures.items():
            show(f"round {number + 1} of {rounds}: {name}")
            found[name].append(measure())
    return {
        name: {key: median(each[key] for each in all) for key in all[0]}
        for name, all in found.items()
    }


def show(text: str) -> None:
    """Shows progress."""
    print(text, file=sys.stderr, flush=True)


def addresses(database: str, per_shape: int) -> list[str]:
    """Addresses with records that clients request: of all shapes, and pages of whole tables."""
    data = Snapshot.read(database)
    app = create_app(Settings(cache_size=0), data)
    found = dict.fromkeys([*((path, "") for path in shapes(data, per_shape)), *pages(app)])
    with_records = [
        (path, query)
        for path, query in found
        if not request(app, path, query)[1].endswith(b":[]}}}")
    ]
    return [f"{BASE}{path}?{query}" if query else BASE + path for path, query in with_records]


def bench_one(database: str, path: str, rounds: int, seconds: int) -> dict[str, Any]:
    """One address again and again: direct and behind nginx, with its floor."""
    with ExitStack() as servers:
        measures: dict[str, Measure] = {}
        for place in PLACES:
            server = servers.enter_context(service(database, path, place, **NEVER))
            size = len(get(server.url, path)[1])
            lowest = servers.enter_context(floor(size, place))
            measures[f"{place} floor"] = partial(wrk, f"{lowest.url}/floor", seconds)
            measures[place] = partial(wrk, server.url + path, seconds)
        return {**in_turn(rounds, measures), "bytes": size}


def bench_all(database: str, paths: list[str], rounds: int) -> dict[str, Any]:
    """Every address of the mix in random order: after a start, and once each worker has had all.

    Measures a worker's memory too.
    """
    memories: dict[str, dict[str, float]] = {"floor": {}, "service": {}}

    def largest(server: Server) -> float:
        return max(map(memory, server.gunicorn.workers()))

    def request_all(server: Server, paths: list[str] = paths) -> Figures:
        return wrk(server.url, 600, random.sample(paths, len(paths)))

    def passes(place: str) -> Figures:
        with service(database, paths[0], place, **NEVER) as server:
            memories["service"]["fresh"] = largest(server)
            first = request_all(server)
            for _ in range(5):
                request_all(server)
            again = request_all(server)
            memories["service"]["then"] = largest(server)
        return {
            "first": first["rps"],
            "first p99": first["p99"],
            "again": again["rps"],
            "again p99": again["p99"],
        }

    def lowest(place: str) -> Figures:
        with floor(size, place) as server:
            # choosing a path takes wrk time here too
            found = request_all(server, ["/floor"] * len(paths))
            memories["floor"]["then"] = largest(server)
            return found

    show("sizes of all answers")
    with service(database, paths[0], **OFF) as server:
        sample = random.sample(paths, min(500, len(paths)))
        size = sum(len(get(server.url, path)[1]) for path in sample) // len(sample)
    measures: dict[str, Measure] = {}
    for place in PLACES:
        measures[f"{place} floor"] = partial(lowest, place)
        measures[place] = partial(passes, place)
    return {
        "addresses": len(paths),
        "bytes": size,
        "passes": in_turn(rounds, measures),
        "MB": memories,
    }


def bench_start(database: str, rounds: int) -> dict[str, Figures]:
    """Seconds from start to the first 200."""

    def start(server: AbstractContextManager[Server]) -> Figures:
        with server as started:
            return {"seconds": started.gunicorn.seconds}

    return in_turn(
        rounds,
        {
            "floor": lambda: start(floor(5000)),
            "service": lambda: start(service(database, f"{BASE}/2023.json")),
        },
    )


def ratio(value: float, floor: float) -> str:
    return f"{value:,.0f} ({value / floor:.2f})"


def report(found: dict[str, Any]) -> None:
    print(
        f"\n{found['machine']}; wrk with {CONNECTIONS} connections; "
        f"medians of {found['rounds']} rounds\n"
    )
    print("| one address | bytes | direct | p99 | nginx | p99 |")
    print("|---|---|---|---|---|---|")
    for name, each in found["one"].items():
        cells = []
        for place in PLACES:
            measured, lowest = each[place], each[f"{place} floor"]
            tail = f"{measured['p99']:.1f} ms ({measured['p99'] / lowest['p99']:.2f})"
            cells += [ratio(measured["rps"], lowest["rps"]), tail]
        print(f"| {name} | {each['bytes']:,} | {' | '.join(cells)} |")
    everything = found["all"]
    size, memories = everything["bytes"], everything["MB"]
    print(
        f"\n| all {everything['addresses']:,} addresses of {size:,} bytes, in random order "
        "| floor | first pass | later pass | p99 |"
    )
    print("|---|---|---|---|---|")
    for place in PLACES:
        each, lowest = (everything["passes"][f"{place}{end}"] for end in ("", " floor"))
        first, again = (ratio(each[key], lowest["rps"]) for key in ("first", "again"))
        tail = f"{each['again p99']:.1f} ms ({each['again p99'] / lowest['p99']:.2f})"
        print(f"| {place} | {lowest['rps']:,.0f} | {first} | {again} | {tail} |")
    rounded = {
        name: {state: round(value) for state, value in each.items()}
        for name, each in memories.items()
    }
    print(f"\nMB per worker: {rounded}")
    start, floor_start = (found["start"][name]["seconds"] for name in ("service", "floor"))
    print(
        f"start to first 200: {start:.2f} s, floor {floor_start:.2f} s ({start / floor_start:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Compare the service with a minimal app under the same server."
    )
    parser.add_argument("database")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=2, help="per measurement")
    parser.add_argument(
        "--per-shape", type=int, default=150, help="addresses of the mix, per shape"
    )
    parser.add_argument("--one", nargs="+", choices=ONE, default=ONE, help="for one address")
    parser.add_argument(
        "--json", type=Path, default=ROOT / "build" / "bench.json", help="file for the figures"
    )
    arguments = parser.parse_args()
    for program in ("wrk", "nginx"):
        if not shutil.which(program):
            sys.exit(f"bench: {program} is not installed; on Debian: apt-get install {program}")
    database = str(Path(arguments.database).absolute())
    rounds, seconds = arguments.rounds, arguments.seconds
    one = {}
    for name in arguments.one:
        show(f"one address: {name}")
        one[name] = bench_one(database, f"{BASE}/{ONE[name]}", rounds, seconds)
    found = {
        "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}",
        "rounds": rounds,
        "one": one,
        "all": bench_all(database, addresses(database, arguments.per_shape), rounds),
        "start": bench_start(database, rounds),
    }
    arguments.json.parent.mkdir(exist_ok=True)
    arguments.json.write_text(json.dumps(found, indent=1))
    report(found)


if __name__ == "__main__":
    main()
