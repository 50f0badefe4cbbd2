#!/usr/bin/env python3
"""The script of `make load-data`: `racedata load`, in the checkout that it is in."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from racedata.cli import main

main(["load", *sys.argv[1:]])
