"""The file of corrections: how it is read, and which file a command uses.

docs/data.md describes it, correction_lines.py says what a line may say, correct.py applies it.
"""

import os
import re
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from racedata.loader.correction_lines import Correction, Line
from racedata.loader.errors import LoadError, Progress
from racedata.loader.files.csvfile import AnyPath, CsvFile, Field
from racedata.loader.store import OF_NO_SOURCE, Store
from racedata.model import TABLES
from racedata.settings import LoaderSettings
from racedata.values import Parser, one_of, plain_text, text

CORRECTIONS = Path(__file__).resolve().parent / "corrections.csv"

# A line of this table is a rule: the sentence that other lines name instead of repeating it.
RULE = "rule"
NAMED_RULE = re.compile(f"{RULE} ([A-Za-z0-9_/-]+)")
# Numbers have no leading zeros, so that two keys that differ name two rows.
PART = r"(?!0[0-9])[A-Za-z0-9_-]+"
KEY = Parser("the key of a row, such as alonso or 2023/18/alonso", f"{PART}(/{PART})*")
FIELDS = [
    Field("table", one_of([*(table.name for table in TABLES if table.key), RULE]), required=True),
    Field("key", KEY, required=True),
    Field("column", text("the name of a column"), required=False),
    Field("wrong", plain_text, required=False),
    Field("right", plain_text, required=False),
    Field("source", text("the evidence that the value is wrong"), required=True),
]
HEADER = ",".join(field.name for field in FIELDS)


# What `--corrections` may be instead of a path. Empty means the last choice, which the store has.
WORDS: dict[str, Path | None] = {"none": None, "default": CORRECTIONS}
KEY_OF_FILE = "corrections"  # where the store remembers it


def add_corrections_argument(parser: ArgumentParser) -> None:
    """Adds `--corrections`. An empty value, as `make` passes, chooses nothing."""
    parser.add_argument(
        "--corrections",
        metavar="FILE",
        default=LoaderSettings.read(os.environ).corrections,
        help="a file of errors in sources and what is right, beside the project's own list; the "
        "word default means only that list, and none leaves the data as it is. The file is used "
        "until a later command names another (CORRECTIONS; default: the one that is used)",
    )


def corrections_of(store: Store, named: str) -> "Corrections":
    """The corrections in the file that a command names, or else in the one that the store
    remembers. Raises LoadError if the remembered file is gone, or as `corrections_at` does.
    """
    chosen = named or str(store.recalled(OF_NO_SOURCE).get(KEY_OF_FILE, "default"))
    path = WORDS.get(chosen, Path(chosen))
    if path and not named and not path.exists():
        what = "no such file, but corrections were read from it before; name another: --corrections"
        raise LoadError(f"{path}: {what} FILE, default (the project's own) or none")
    return Corrections(corrections_at(path))


def remember_corrections(store: Store, named: str) -> None:
    """Remembers the file that a command names, for later commands."""
    if named:
        text = named if named in WORDS else os.path.abspath(named)
        store.remember(OF_NO_SOURCE, {KEY_OF_FILE: text})


def corrections_at(path: Path | None) -> Sequence[Line]:
    """The corrections in a file, and then those of the project that are about other values. None
    without a file. Raises LoadError for a file that is not such a list.
    """
    if path is None:
        return []
    if not path.is_file():  # a pipe could be read only once
        what = "not a regular file" if path.exists() else "no such file"
        raise LoadError(f"{path}: {what}; expected a file of corrections, or default or none")
    project = corrections_in(CORRECTIONS, lambda text: None)
    if path.resolve() == CORRECTIONS:
        return project
    lines = corrections_in(path, lambda text: None)
    own = {corrected_value(line.correction) for line in lines}
    return [*lines, *(line for line in project if corrected_value(line.correction) not in own)]


def corrected_value(written: Correction) -> tuple[str, str, str]:
    """Which value, or row, is corrected."""
    return written.table, written.key.casefold(), written.column


def corrections_in(path: AnyPath, progress: Progress) -> list[Line]:
    """The corrections in a file, each with its own evidence or its rule's.

    Raises LoadError for a line that makes no sense, or if two correct the same value.
    """
    file = CsvFile(path, FIELDS, progress, needs_all_columns=True)
    rows = [
        (line, Correction(*row))
        for batch in file.batches()
        for line, row in zip(file.lines, zip(*batch))
    ]
    rules = {row.key: row.witnesses for _, row in rows if row.table == RULE}
    seen, lines = set[tuple[str, ...]](), list[Line]()
    for line, row in rows:
        value = corrected_value(row)
        if value in seen:
            raise file.duplicate(
                line, {"table": row.table, "key": row.key, "column": row.column or ""}
            )
        seen.add(value)
        if row.table == RULE:
            continue
        if not row.column:
            raise file.fault("''; expected the name of a column", line, "column")
        if named := NAMED_RULE.fullmatch(row.witnesses):
            if named[1] not in rules:
                what = f"{row.witnesses!r}; expected a sentence, or a rule that a line gives"
                raise file.fault(what, line, "source")
            row = row._replace(witnesses=rules[named[1]], is_by_rule=True)
        lines.append(Line(path.name, row, is_own=path != CORRECTIONS))
    return lines


class Corrections:
    """All corrections of a build: `lines` for its stage, `written` as the file has them. `row` and
    `calendar` correct rows of lists, and dates of calendars, before they are matched.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines, self.written = lines, [line.correction for line in lines]
        self.by_row: dict[tuple[str, str], list[Correction]] = {}
        for each in self.written:
            self.by_row.setdefault((each.table, each.key.lower()), []).append(each)

    @property
    def file(self) -> str:
        """The name of the file, if it has corrections."""
        return self.lines[0].file

    def corrected_row(self, table: str, key: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """A copy of a row with the right values."""
        changes = {
            correction.column: correction.right
            for correction in self.by_row.get((table, key.lower()), ())
            if row.get(correction.column) == correction.wrong
        }
        return {**row, **changes}

    def corrected_calendar(
        self, season: int, races: Sequence[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """A copy of the races of a season."""
        return [self.corrected_row("races", f"{season}/{race['round']}", race) for race in races]
