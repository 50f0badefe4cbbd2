"""What messages tell a user to do about a database, with a command for the current folder."""

import os
import shlex
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def command() -> str:
    """How to run `racedata` from the current folder."""
    installed = ".venv/bin/racedata"  # by `make`, in a folder that is not in PATH
    if os.path.exists(installed):
        return installed
    in_checkout = CHECKOUT / installed
    return shlex.quote(str(in_checkout)) if in_checkout.exists() else "racedata"


COMMAND = command()

# What to do about a file that cannot be used.
BUILD = f"to build it, run: {COMMAND} load SOURCE --database FILE"
# from its sources, or from its own tables
REBUILD = f"to rebuild it, run: {COMMAND} load --database FILE"
REPLACE = (
    "to build a new one (records added by refreshes are lost), run: "
    f"{COMMAND} load SOURCE --replace --database FILE"
)
MOVE = "remove it, or name another file"  # no load replaces a file that racedata has not built
WAIT = ""  # the same file may be readable later
