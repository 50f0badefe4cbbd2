"""What messages tell a user to do about a database."""

import os
import shlex
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
# The command in the folder of the checkout: for pages, which do not show where that is. Path.exists
# would raise an error if the user may not look.
IN_CHECKOUT = (
    ".venv/bin/racedata" if os.path.exists(CHECKOUT / ".venv/bin/racedata") else "racedata"
)
# The command as the user has started it.
COMMAND = shlex.quote(sys.argv[0]) if os.path.basename(sys.argv[0]) == "racedata" else IN_CHECKOUT

# What to do about a file that cannot be used.
BUILD = f"to build it, run: {COMMAND} load SOURCE --database FILE"
REBUILD = f"to rebuild it, run: {COMMAND} build --database FILE"
REPLACE = (
    "to build a new one (records added by refreshes are lost), run: "
    f"{COMMAND} load SOURCE --replace --database FILE"
)
MOVE = "move it away, or name another file"  # no load replaces a file that racedata has not built
