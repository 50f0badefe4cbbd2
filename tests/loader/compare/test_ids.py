"""racedata.loader.compare.ids: what each source calls our drivers, constructors and circuits."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from support import EXPECTED
from support.loads import loader_settings, select

from racedata.database import store_path
from racedata.loader.load import load

F1DB = EXPECTED / "f1db"
IDS = "SELECT kind, reference, source, id FROM ids ORDER BY record"


def ids_of(path, kind, reference):
    found = select(path, IDS)
    return [row[2:] for row in found if row[:2] == (kind, reference)]


def test_each_source_has_its_own_ids(merged):
    assert ids_of(merged, "driver", "max_verstappen") == [
        ("f1db", "max-verstappen"),
        ("sample", "36"),
    ]
    assert ids_of(merged, "circuit", "americas")[0] == ("f1db", "austin")


def test_ids_are_in_order_and_only_of_what_the_database_has(merged):
    found = select(merged, IDS)
    assert found == sorted(found)
    for kind in ("driver", "constructor", "circuit"):
        ours = {row for (row,) in select(merged, f"SELECT {kind}Ref FROM {kind}s")}
        named = {row[1] for row in found if row[0] == kind}
        assert named == ours


def test_a_database_whose_store_is_lost_keeps_the_ids(merged, tmp_path):
    path = Path(shutil.copy(merged, tmp_path / "copy.db"))
    assert not store_path(path).exists()
    before = select(path, IDS)
    load([str(F1DB)], loader_settings(path), lambda text: None)
    with closing(sqlite3.connect(store_path(path))) as db:
        (stored,) = db.execute("SELECT count(*) FROM lists WHERE name = 'ids'").fetchone()
    assert stored >= len([row for row in before if row[2] == "f1db"])
    assert [row for row in select(path, IDS) if row[2] == "f1db"]
