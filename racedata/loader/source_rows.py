"""The rows of a source about a race in one kind of records, or in a list, as discrepancies.py
compares them.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from racedata.loader.parts import Row
from racedata.values import Value

# What names a row within its race: ids in the database, or references of what that lacks.
Key = tuple[Value, ...]


class SourceRows:
    """The rows of a source, by column."""

    def __init__(self, columns: Mapping[str, Sequence[Value]], names: Sequence[str]) -> None:
        self.columns = columns
        self.keys: list[Key] = list(zip(*(columns[name] for name in names))) if names else [()]
        self.at = {key: at for at, key in enumerate(self.keys)}
        # the columns that have values
        rows = len(self.keys)
        self.known = {name for name, values in columns.items() if values.count(None) < rows}
        self.several: set[Key] = set()  # the keys that more than one row has
        if len(self.at) < len(self.keys):
            self.several = {key for key, rows in Counter(self.keys).items() if rows > 1}

    def row(self, at: int, compared: Sequence[str]) -> Row:
        """A row, with NULL for compared columns that the source lacks."""
        row: Row = dict.fromkeys(compared)
        return row | {name: values[at] for name, values in self.columns.items()}

    def values(self, names: Sequence[str]) -> dict[Key, Key]:
        """The values in some columns, by key."""
        unknown = (None,) * len(self.keys)
        return dict(zip(self.keys, zip(*(self.columns.get(name, unknown) for name in names))))

    def column(self, name: str) -> dict[Key, Value]:
        """The values in a column, by key."""
        return {key: value for key, (value,) in self.values([name]).items()}


def source_rows(rows: Sequence[Row], names: Sequence[str], key: Sequence[str]) -> SourceRows:
    return SourceRows({name: [row.get(name) for row in rows] for name in names}, key)
