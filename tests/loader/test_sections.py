"""racedata.loader.sources.sections: the SQL of readers of dumps."""

import sqlite3

import pytest

from racedata.loader.sources import f1db, jolpica
from racedata.loader.sources.sections import tables_in


@pytest.mark.parametrize("sections", [f1db.SQL, jolpica.SQL], ids=["f1db", "jolpica"])
def test_each_paragraph_is_one_statement(sections):
    for statements in sections.values():
        for statement in statements:
            assert sqlite3.complete_statement(statement) and statement.count(";\n") == 0


def test_the_files_of_a_dump_are_the_tables_of_its_first_section():
    assert tables_in(jolpica.SQL["tables"])[:2] == ["season", "circuit"]
    assert len(f1db.TABLES) == 19
