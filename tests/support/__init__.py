"""Helpers of the tests: where the project is, and the package, which may be installed elsewhere."""

from pathlib import Path

import racedata

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = Path(racedata.__file__).resolve().parent
SAMPLE = PACKAGE / "sample"
EXPECTED = ROOT / "tests" / "expected"
# The endpoints that have no records after a first load of one source.
EMPTY = ("changes", "discrepancies", "discrepancycounts")
