"""What messages tell a user to do about a database, with a command for the current folder."""

import os
import shlex
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
INSTALLED = CHECKOUT / ".venv/bin/racedata"  # by `make`, in a folder that is not in PATH
# The command in the checkout's folder: for pages, which do not show where that is.
# Path.exists would raise an error if the user may not look.
IN_CHECKOUT = ".venv/bin/racedata" if os.path.exists(INSTALLED) else "racedata"


def command() -> str:
    """How to run this `racedata` from the current folder."""
    if not os.path.exists(INSTALLED):
        return IN_CHECKOUT
    is_here = os.path.exists(IN_CHECKOUT) and os.path.samefile(IN_CHECKOUT, INSTALLED)
    return IN_CHECKOUT if is_here else shlex.quote(str(INSTALLED))


COMMAND = command()

# What to do about a file that cannot be used.
BUILD = f"to build it, run: {COMMAND} load SOURCE --database FILE"
REBUILD = f"to rebuild it, run: {COMMAND} build --database FILE"
REPLACE = (
    "to build a new one (records added by refreshes are lost), run: "
    f"{COMMAND} load SOURCE --replace --database FILE"
)
MOVE = "move it away, or name another file"  # no load replaces a file that racedata has not built
