"""racedata.loader.compare.ids: what each source calls our drivers, constructors and circuits."""

import shutil
from pathlib import Path

from support.loads import loader_settings, select

from racedata.loader.corrections import CORRECTIONS
from racedata.loader.rebuild import replace_from_store

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
    before = select(path, IDS)
    replace_from_store(loader_settings(path, CORRECTIONS), lambda text: None)
    assert select(path, IDS) == before
