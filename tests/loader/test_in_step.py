"""racedata.loader.in_step: what is built before a refresh asks a source.

The list of sources, and what `load_unread` reads of it, are in test_source_list.py; databases of an
earlier version are in test_existing.py.
"""

import pytest
from support import SAMPLE
from support.loads import built, loader_settings, rows_of

from racedata.loader.in_step import bring_into_step
from racedata.loader.rebuild import Condition, changed_store, condition_at


def a_revision_later(store, by=1):
    id, revision = store.state
    store.state = id, revision + by


# What happens to the files first, and why the database is built again, if it is.
CASES = {
    "in step": (lambda database: None, Condition.IN_STEP, ""),
    "behind": (
        lambda database: change(database, a_revision_later),
        Condition.BEHIND,
        "the store has changed since it was built",
    ),
    "lost": (lambda database: database.unlink(), Condition.LOST, "the database was lost"),
    "apart": (
        lambda database: change(database, lambda store: a_revision_later(store, -1)),
        Condition.APART,
        "",
    ),
}


def change(database, edit):
    with changed_store(database) as store:
        edit(store)


@pytest.mark.parametrize(("spoil", "condition", "why"), CASES.values(), ids=CASES)
def test_a_database_that_is_lost_or_behind_is_built_from_its_store(tmp_path, spoil, condition, why):
    database = built(SAMPLE, tmp_path / "x.db")
    before = rows_of(database)
    spoil(database)
    assert condition_at(database) is condition
    said = bring_into_step(loader_settings(database), lambda text: None)
    assert said.endswith(f" from its store, because {why}") if why else said == ""
    assert rows_of(database) == before
    assert condition_at(database) is (Condition.IN_STEP if why else condition)
