"""Helpers of the tests: where the project is."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLE = ROOT / "racedata" / "sample"
