#!/usr/bin/env python3
"""Starts the service with the options of the add-on, which the Supervisor writes into a file."""

import json
import os
import subprocess
import sys
from pathlib import Path

file = Path(sys.argv[1] if len(sys.argv) > 1 else "/data/options.json")
options = json.loads(file.read_text(encoding="utf-8"))
is_open, follows = options["licence"] == "open", options["follow"]
sources = (options.get("sources") or "").split() or (["f1db"] if is_open else [])
# Each licence has a database of its own, so that a change of the option leaves no other data in it.
database = file.with_name("open.db" if is_open else "racedata.db")
os.environ |= {
    "RACEDATA_SOURCES": " ".join(sources),
    "RACEDATA_LICENCE": options["licence"],
    "RACEDATA_DATABASE": str(database),
}
# A service that follows its sources starts with the sample, but its licence is not open.
if not database.exists() and (is_open or not follows):
    subprocess.run(["racedata", "load", *(sources or ["tracinginsights", "f1db"])], check=True)
os.execvp("racedata", ["racedata", "serve", *(["--follow"] if follows else [])])
