"""racedata.loader.sources.sections: the SQL of readers of dumps."""

import re
import sqlite3
from importlib.resources import files

import pytest

from racedata.loader.sources.sections import sections_of

FILES = {name: sections_of(name) for name in ("ergast_files", "f1db", "jolpica")}


@pytest.mark.parametrize("sections", FILES.values(), ids=FILES)
def test_each_paragraph_is_one_statement(sections):
    for statements in sections.values():
        for statement in statements:
            assert sqlite3.complete_statement(statement) and statement.count(";\n") == 0


@pytest.mark.parametrize(("name", "sections"), FILES.items())
def test_no_paragraph_of_a_file_is_left_out(name, sections):
    text = files("racedata.loader.sources").joinpath(f"{name}.sql").read_text(encoding="utf-8")
    paragraphs = text.rstrip("\n").split("\n\n")
    titles = [each for each in paragraphs if re.match(r"-- \[\w+\]", each)]
    statements = [each for section in sections.values() for each in section]
    assert all(line.startswith("--") for title in titles for line in title.splitlines())
    assert len(titles) == len(sections)
    # The first paragraph says what the file is.
    assert [each for each in paragraphs[1:] if each not in titles] == statements
