#!/usr/bin/env python3
"""How fast the service is beside the server that carries it: `bench.py DATABASE [--rounds N] [--seconds S] [--json F]`.

The floor is a Falcon app of one route that returns a constant body of the same size, under the same gunicorn settings:
what gunicorn and Falcon cost with no service in them. Service and floor are asked in turn, over and over, and the
medians compared, because machines are noisy. The load comes from wrk, which must be installed; where nginx is too, it
serves the same body from a file, which is the limit of the machine.
"""

import argparse
import gzip
import http.client
import json
import os
import random
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median

import falcon

ROOT = Path(__file__).resolve().parent.parent
BASE = "/ergast/f1"
CONNECTIONS = 16
NEVER = {"RACEDATA_BURST_LIMIT": "999999/second", "RACEDATA_SUSTAINED_LIMIT": "999999/second"}
OFF = {"RACEDATA_BURST_LIMIT": "off", "RACEDATA_SUSTAINED_LIMIT": "off"}

# One line of JSON when wrk is done; times in microseconds. `paths` is a file of paths, asked once each, or none.
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
    -- Ends wrk, which has no other way to end early; a moment later, for it is deaf while it executes.
    if next == #paths then os.execute("(sleep 0.005; kill -INT $PPID) &") end
    return paths[next] or paths[#paths]
end
function done(summary, latency, requests)
    io.write(string.format('{"requests": %%d, "duration": %%d, "p50": %%d, "p99": %%d, "errors": %%d}\\n',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout))
end
"""


class Constant:
    """The floor: one body, always the same."""

    def __init__(self, body):
        self.body = body

    def on_get(self, req, resp):
        resp.content_type = falcon.MEDIA_JSON
        resp.data = self.body


def floor_app():
    app = falcon.App()
    app.add_route("/floor", Constant(b"x" * int(os.environ["FLOOR_BYTES"])))
    return app


class Worker:
    """Says which worker answered."""

    def on_get(self, req, resp):
        resp.text = str(os.getpid())


def worker_app():
    app = falcon.App()
    app.add_route("/worker", Worker())
    return app


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


class Server:
    """A running gunicorn: `url`, and `started`, the seconds from its start to its first 200."""

    def __init__(self, process, port, started):
        self.process, self.port, self.started = process, port, started
        self.url = f"http://127.0.0.1:{port}"

    def workers(self):
        return Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()

    def worker_memory(self):
        """Megabytes of the largest worker: its own, and its share of what it shares (PSS)."""
        return max(pss(worker) for worker in self.workers())


def pss(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


@contextmanager
def gunicorn(path, app=None, **environ):
    """gunicorn with this project's settings, over the service or another `app`, once `path` is answered."""
    port = free_port()
    command = [sys.executable, "-m", "gunicorn", "--log-level", "error", *([app] if app else [])]
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "scripts"), "PORT": str(port), **environ}
    begin = time.perf_counter()
    process = subprocess.Popen(command, cwd=ROOT, env=environ)
    try:
        while not answers(port, path):
            if process.poll() is not None or time.perf_counter() - begin > 30:
                raise SystemExit(f"bench: {' '.join(command)} does not answer")
            time.sleep(0.002)
        yield Server(process, port, time.perf_counter() - begin)
    finally:
        process.terminate()
        process.wait()


def answers(port, path):
    try:
        return get(port, path)[0] == 200
    except OSError:
        return False


def get(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer.status, body


@contextmanager
def nginx(body):
    """nginx that serves `body` as a file; yields its url."""
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
            time.sleep(0.5)
            yield f"http://127.0.0.1:{port}/body"
        finally:
            process.terminate()
            process.wait()


def wrk(url, seconds, paths=None):
    """Asks for one url, or once for each of the paths, in order; returns requests per second, p50 and p99 in ms."""
    with tempfile.TemporaryDirectory() as folder:
        script, file = Path(folder, "wrk.lua"), Path(folder, "paths")
        file.write_text("\n".join(paths or []))
        script.write_text(WRK % (json.dumps(str(file)) if paths else "nil"))
        command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-s", script, url]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if found["errors"]:
        raise SystemExit(f"bench: {found['errors']} errors from {url}")
    return {"rps": found["requests"] / found["duration"] * 1e6, "p50": found["p50"] / 1e3, "p99": found["p99"] / 1e3}


def in_turn(rounds, **measured):
    """Each of the functions once a round; the medians of what they return, by their names."""
    found = {name: [] for name in measured}
    for number in range(rounds):
        for name, measure in measured.items():
            say(f"round {number + 1} of {rounds}: {name}")
            found[name].append(measure())
    return {name: {key: median(each[key] for each in all) for key in all[0]} for name, all in found.items()}


def say(text):
    print(
        f"\r\033[K{text}" if sys.stderr.isatty() else text,
        end="" if sys.stderr.isatty() else "\n",
        file=sys.stderr,
        flush=True,
    )


def addresses(database):
    """Every address that has an answer with records, pages of timings at their default size."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        for (year,) in db.execute("SELECT DISTINCT year FROM races"):
            yield f"{BASE}/{year}/races/"
        for race_id, year, round in db.execute("SELECT raceId, year, round FROM races"):
            place = f"{BASE}/{year}/{round}"
            yield f"{place}.json"
            for table, name in [("results", "results"), ("qualifying", "qualifying"), ("sprint_results", "sprint")]:
                if db.execute(f"SELECT 1 FROM {table} WHERE raceId = ?", [race_id]).fetchone():
                    yield f"{place}/{name}.json"
            (timings,) = db.execute("SELECT count(*) FROM lap_times WHERE raceId = ?", [race_id]).fetchone()
            for offset in range(0, timings, 100):
                yield f"{place}/laps.json?limit=100&offset={offset}"


def hot_addresses(database):
    """One address to each endpoint: of the last race that has everything."""
    with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as db:
        year, round = db.execute(
            """SELECT year, round FROM races WHERE raceId IN (SELECT raceId FROM sprint_results)
               AND raceId IN (SELECT raceId FROM lap_times) ORDER BY year DESC, round DESC LIMIT 1"""
        ).fetchone()
    place = f"{BASE}/{year}/{round}"
    return {
        "calendar": f"{BASE}/{year}/races/",
        "race": f"{place}.json",
        "results": f"{place}/results.json",
        "qualifying": f"{place}/qualifying.json",
        "sprint": f"{place}/sprint.json",
        "laps": f"{place}/laps.json?limit=100&offset=300",
    }


def bench_hot(database, rounds, seconds):
    """One address, asked again and again: `{endpoint: {floor, limits off, limits on, nginx}}`, and sizes."""
    found = {}
    for name, path in hot_addresses(database).items():
        with ExitStack() as servers:
            on = servers.enter_context(gunicorn(path, RACEDATA_DATABASE=database, **NEVER))
            off = servers.enter_context(gunicorn(path, RACEDATA_DATABASE=database, **OFF))
            _, body = get(on.port, path)
            floor = servers.enter_context(gunicorn("/floor", "bench:floor_app()", FLOOR_BYTES=str(len(body))))
            measured = {
                f"{name}, floor": lambda: wrk(f"{floor.url}/floor", seconds),
                f"{name}, limits on": lambda: wrk(on.url + path, seconds),
                f"{name}, limits off": lambda: wrk(off.url + path, seconds),
            }
            if shutil.which("nginx"):
                url = servers.enter_context(nginx(body))
                measured[f"{name}, nginx"] = lambda: wrk(url, seconds)
            figures = in_turn(rounds, **measured)
        found[name] = {key.split(", ")[1]: value for key, value in figures.items()}
        found[name]["bytes"] = {"plain": len(body), "gzip": len(gzip.compress(body, 5))}
    return found


def bench_all(database, rounds, cache_size):
    """Every address in random order: with the default cache and one that holds all, limits on and off.

    The first pass after a start, and one when either worker has been asked for nearly all; memory of a worker.
    """
    paths = list(addresses(database))
    fresh, full = {}, {}

    def ask_all(server, paths=paths):
        random.shuffle(paths)
        return wrk(server.url, 600, paths)

    def passes(label, **environ):
        with gunicorn(paths[0], RACEDATA_DATABASE=database, **environ) as server:
            fresh[label] = server.worker_memory()
            first = ask_all(server)
            for _ in range(5):
                ask_all(server)
            again = ask_all(server)
            full[label] = server.worker_memory()
        return {"first": first["rps"], "first p99": first["p99"], "again": again["rps"], "again p99": again["p99"]}

    say("sizes of all answers")
    with gunicorn(paths[0], RACEDATA_DATABASE=database, **OFF) as server:
        sample = random.sample(paths, min(500, len(paths)))
        size = sum(len(get(server.port, path)[1]) for path in sample) // len(sample)

    def floor():
        with gunicorn("/floor", "bench:floor_app()", FLOOR_BYTES=str(size)) as server:
            fresh["floor"] = full["floor"] = server.worker_memory()
            return ask_all(server, ["/floor"] * len(paths))  # choosing paths costs wrk, so here too

    large = {"RACEDATA_CACHE_SIZE": str(cache_size)}
    services = {
        "default cache, limits on": NEVER,
        "default cache, limits off": OFF,
        "large cache, limits on": {**NEVER, **large},
        "large cache, limits off": {**OFF, **large},
    }
    measured = {label: partial(passes, label, **environ) for label, environ in services.items()}
    found = in_turn(rounds, floor=floor, **measured)
    memory = {"worker MB fresh": fresh, "worker MB then": full}
    return {"addresses": len(paths), "mean bytes": size, "passes": found, **memory}


def bench_start(database, rounds):
    """Seconds from start to the first 200."""

    def service():
        with gunicorn(f"{BASE}/2023.json", RACEDATA_DATABASE=database) as server:
            return {"seconds": server.started}

    def floor():
        with gunicorn("/floor", "bench:floor_app()", FLOOR_BYTES="5000") as server:
            return {"seconds": server.started}

    return in_turn(rounds, floor=floor, service=service)


def bench_pages(database, rounds, seconds):
    """Pages of one race's timings at several offsets, none of them from the cache."""
    path = hot_addresses(database)["laps"].split("?")[0]
    with gunicorn(path, RACEDATA_DATABASE=database, RACEDATA_CACHE_SIZE="0", **NEVER) as server:
        total = int(json.loads(get(server.port, path)[1])["MRData"]["total"])
        pages = {
            "100 at 0": (100, 0),
            f"100 at {total - 100}": (100, total - 100),
            "2000 at 0": (2000, 0),
            "500 at 0": (500, 0),
            f"500 at {total - 500}": (500, total - 500),
        }
        return in_turn(
            rounds,
            **{
                name: lambda limit=limit, offset=offset: wrk(
                    f"{server.url}{path}?limit={limit}&offset={offset}", seconds
                )
                for name, (limit, offset) in pages.items()
            },
        )


def share_by_worker(rounds):
    """How many of 16 connections' requests the busiest worker answered, in per cent; one figure to each round."""
    shares = []
    for number in range(rounds):
        say(f"round {number + 1} of {rounds}: share by worker")
        with gunicorn("/worker", "bench:worker_app()") as server:
            connections = [http.client.HTTPConnection("127.0.0.1", server.port) for _ in range(CONNECTIONS)]
            for connection in connections:
                connection.connect()
            counts = Counter()
            for _ in range(20):
                for connection in connections:
                    connection.request("GET", "/worker")
                for connection in connections:
                    counts[connection.getresponse().read()] += 1
            for connection in connections:
                connection.close()
        shares.append(round(100 * max(counts.values()) / sum(counts.values())))
    return sorted(shares)


def ratio(value, floor):
    return f"{value:,.0f} ({value / floor:.2f})"


def report(found):
    print(f"\n{found['machine']}; wrk with {CONNECTIONS} connections; medians of {found['rounds']} rounds\n")
    print("| one address | bytes | gzip | floor rps | limits on | limits off | nginx | p99 floor | p99 limits on |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, each in found["hot"].items():
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
    floor = everything["passes"]["floor"]["rps"]
    print(
        f"\n{everything['addresses']:,} addresses in random order, {everything['mean bytes']:,} bytes each; "
        f"floor {floor:,.0f} rps, {fresh['floor']:.0f} MB to a worker\n"
    )
    print("| | first pass | all asked before | worker fresh | then |")
    print("|---|---|---|---|---|")
    for name, each in everything["passes"].items():
        if name == "floor":
            continue
        print(
            "| {} | {} | {} | {:.0f} MB | {:.0f} MB |".format(
                name, ratio(each["first"], floor), ratio(each["again"], floor), fresh[name], then[name]
            )
        )
    service, floor = (found["start"][name]["seconds"] for name in ("service", "floor"))
    print(f"\nstart to first 200: {service:.2f} s, floor {floor:.2f} s ({service / floor:.2f})")
    pages = ", ".join(f"{name}: {each['rps']:,.0f} rps" for name, each in found["pages"].items())
    print(f"pages of timings, not cached: {pages}")
    print(f"share of the busiest worker, in each round: {found['shares']} %")


def main():
    parser = argparse.ArgumentParser(description="Compare the service with the server that carries it.")
    parser.add_argument("database")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3, help="of each measurement")
    parser.add_argument("--cache-size", type=int, default=128, help="MB that hold every answer")
    parser.add_argument("--json", default="build/bench.json", help="file for the figures")
    arguments = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("bench: wrk is not installed; on Debian: apt-get install wrk")
    database = str(Path(arguments.database).absolute())
    rounds, seconds = arguments.rounds, arguments.seconds
    found = {
        "machine": f"{os.cpu_count()} cores, Python {sys.version.split()[0]}",
        "rounds": rounds,
        "hot": bench_hot(database, rounds, seconds),
        "all": bench_all(database, max(2, rounds // 2), arguments.cache_size),
        "start": bench_start(database, rounds),
        "pages": bench_pages(database, max(2, rounds // 2), seconds),
        "shares": share_by_worker(rounds),
    }
    say("")
    Path(arguments.json).parent.mkdir(exist_ok=True)
    Path(arguments.json).write_text(json.dumps(found, indent=1))
    report(found)


if __name__ == "__main__":
    main()
