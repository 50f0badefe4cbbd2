#!/usr/bin/env python3
"""Checks that the service does not degrade under long load.

`soak.py DATABASE [--requests N] [--step N]`

Requests every address of the database in random order, again and again, and prints a row per step:
memory, open files and threads of the workers. It takes some minutes and needs wrk. The tools are
those of bench.py.
"""

import argparse
import random
import sys

from bench import NEVER, Server, addresses, database_and_wrk, service, show, wrk
from support.processes import memory, open_files, threads


def files(worker: int) -> int:
    """How many files a worker has open, without the connections of clients."""
    return sum(not name.startswith("socket:") for name in open_files(worker))


def row(server: Server, requests: int, found: dict[str, float]) -> str:
    workers = server.gunicorn.workers()
    return "| {:>9,} | {:>7,.0f} | {:>6.1f} ms | {:>6.1f} MB | {:>5} | {:>7} |".format(
        requests,
        found["rps"],
        found["p99"],
        max(map(memory, workers)),
        sum(map(files, workers)),
        sum(map(threads, workers)),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description="Watch the service under a million requests.")
    parser.add_argument("database")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--step", type=int, default=100_000, help="requests per row of the table")
    arguments = parser.parse_args()
    database = database_and_wrk(arguments.database)
    paths = addresses(database, 150)
    with service(database, paths[0], **NEVER) as server:
        print(f"{len(paths):,} addresses\n")
        print("|  requests | per s   | p99       | largest   | files | threads |")
        print("|-----------|---------|-----------|-----------|-------|---------|", flush=True)
        first: list[int] = []
        for done in range(0, arguments.requests, arguments.step):
            show(f"{done:,} of {arguments.requests:,}")
            step = min(arguments.step, arguments.requests - done)
            found = wrk(server.url, 3600, random.choices(paths, k=step))
            show("")
            print(row(server, done + step, found), flush=True)
            first = first or server.gunicorn.workers()
            if server.gunicorn.workers() != first:
                sys.exit("soak: a worker has died and was replaced")


if __name__ == "__main__":
    main()
