"""racedata/schema.sql: Datasette, which links each row to the rows that it refers to."""

import subprocess
import sys

from support.loads import select

# All tables in one process, because starting Datasette takes a second.
ASK = """
import asyncio, sys
from datasette.app import Datasette

async def ask():
    client = Datasette([], immutables=[sys.argv[1]]).client
    for name in sys.argv[2:]:
        for address in (f"/racedata/{name}", f"/racedata/{name}.json?_labels=on&_shape=array"):
            print(name, (await client.get(address)).status_code)

asyncio.run(ask())
"""


def test_datasette_shows_every_table_and_view_with_links(sample_database):
    kinds = "type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
    found = select(sample_database, f"SELECT name FROM sqlite_schema WHERE {kinds}")
    names = [name for (name,) in found]
    assert {"results", "lap_times", "corrections"} <= set(names)
    command = [sys.executable, "-c", ASK, str(sample_database), *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"{name} 200" for name in names for _ in range(2)]
