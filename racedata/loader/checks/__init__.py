"""The checks of `racedata check`: one .sql file per subject.

They are read in the order of their names: `_views.sql` has what checks of several subjects read.
The files consist of paragraphs. A check is a comment with its title (one line), what a doubt can
mean, `rows:` and perhaps `history`; then the query. All other paragraphs make what the checks read.
"""

import re
from importlib.resources import files
from typing import NamedTuple

FORM = re.compile(
    r"-- (?P<title>.+)\n"
    r"(?P<meaning>(?:-- .+\n)+)"
    r"-- rows: (?P<rows>.+)\n"
    r"(?P<history>-- history\n)?"
    r"(?P<sql>(?s:.+))"
)


class Check(NamedTuple):
    """Two facts that can hardly both be true: the rows of the query are the doubts."""

    title: str
    meaning: str  # what a row can mean, and the source of the rule if there is one
    rows: str  # the rows that it examines: the part after FROM in a query that counts them
    is_history: bool  # whether most of its doubts are history: reported after the others
    sql: str  # the doubts, the most doubtful first; its column names head the report's columns


def check_in(paragraph: str) -> Check | None:
    """The check that a paragraph describes; None if it makes what checks read."""
    if found := FORM.fullmatch(paragraph):
        meaning = found["meaning"].replace("-- ", "").replace("\n", " ").rstrip()
        return Check(
            found["title"], meaning, found["rows"], found["history"] is not None, found["sql"]
        )
    return None


FILES = [file for file in files(__package__).iterdir() if file.name.endswith(".sql")]
PARAGRAPHS = [
    paragraph
    for file in sorted(FILES, key=lambda file: file.name)
    for paragraph in file.read_text("utf-8").rstrip("\n").split("\n\n")
]
ALL = [check for check in map(check_in, PARAGRAPHS) if check]
PREPARATION = "\n".join(paragraph for paragraph in PARAGRAPHS if not check_in(paragraph))
