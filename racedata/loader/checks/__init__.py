"""The checks of `racedata check`: one .sql file per subject.

The files consist of paragraphs. A check is a comment with its title (one line), what a doubt can
mean, `rows:` and perhaps `history`; then the query. All other paragraphs make what the checks read.
"""

import re
from importlib.resources import files
from typing import NamedTuple

# In the order of the report. `views` has what checks of several subjects read.
FILES = (
    "views",
    "lists",
    "places",
    "times",
    "grid",
    "qualifying",
    "standings",
    "calendar",
    "columns",
)
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


def paragraphs_of(name: str) -> list[str]:
    """The paragraphs of a file."""
    path = files(__package__).joinpath(f"{name}.sql")
    return path.read_text(encoding="utf-8").rstrip("\n").split("\n\n")


def check_in(paragraph: str) -> Check | None:
    """The check that a paragraph describes; None if it makes what checks read."""
    if found := FORM.fullmatch(paragraph):
        meaning = found["meaning"].replace("-- ", "").replace("\n", " ").rstrip()
        return Check(
            found["title"], meaning, found["rows"], found["history"] is not None, found["sql"]
        )
    return None


PARAGRAPHS = [paragraph for name in FILES for paragraph in paragraphs_of(name)]
ALL = [check for check in map(check_in, PARAGRAPHS) if check]
PREPARATION = "\n".join(paragraph for paragraph in PARAGRAPHS if not check_in(paragraph))
