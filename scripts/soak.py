#!/usr/bin/env python3
"""Whether the service stays what it was under traffic: `soak.py DATABASE [--requests N] [--step N]`.

All addresses of the database in random order, over and over; every so many requests a line of a table: memory, open
files and threads of the workers. It takes some minutes and needs wrk, as bench.py does, whose tools these are.
"""

import argparse
import os
import random
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from bench import NEVER, addresses, gunicorn, say, wrk


def open_files(worker):
    """How many files a worker has open; without connections, whose clients come and go."""
    names = []
    for link in Path(f"/proc/{worker}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            names.append(os.readlink(link))
    return sum(not name.startswith("socket:") for name in names)


def threads(worker):
    return len(list(Path(f"/proc/{worker}/task").iterdir()))


def row(server, requests, found):
    return "| {:>9,} | {:>7,.0f} | {:>6.1f} ms | {:>6.1f} MB | {:>5} | {:>7} |".format(
        requests,
        found["rps"],
        found["p99"],
        server.worker_memory(),
        sum(map(open_files, server.workers())),
        sum(map(threads, server.workers())),
    )


def main():
    parser = argparse.ArgumentParser(description="Watch the service under a million requests.")
    parser.add_argument("database")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--step", type=int, default=100_000, help="requests to a line of the table")
    arguments = parser.parse_args()
    if not shutil.which("wrk"):
        sys.exit("soak: wrk is not installed; on Debian: apt-get install wrk")
    database = str(Path(arguments.database).absolute())
    paths = list(addresses(database))
    with gunicorn(paths[0], RACEDATA_DATABASE=database, **NEVER) as server:
        print(f"{len(paths):,} addresses\n")
        print("|  requests | per s   | p99       | largest   | files | threads |")
        print("|-----------|---------|-----------|-----------|-------|---------|", flush=True)
        first = None
        for done in range(0, arguments.requests, arguments.step):
            say(f"{done:,} of {arguments.requests:,}")
            step = min(arguments.step, arguments.requests - done)
            found = wrk(server.url, 3600, random.choices(paths, k=step))
            say("")
            print(row(server, done + step, found), flush=True)
            first = first or server.workers()
            if server.workers() != first:
                sys.exit("soak: a worker has died and was replaced")


if __name__ == "__main__":
    main()
