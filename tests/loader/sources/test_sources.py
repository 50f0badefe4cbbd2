"""racedata.loader.sources, sources.source and sources.dump: an address is that of one type of
source, and a new type is known at once.
"""

import shutil
from contextlib import contextmanager

import pytest
from support import SAMPLE
from support.apis import refreshed
from support.loads import loader_settings
from support.refreshes import F1DB

from racedata.loader import sources
from racedata.loader.delivery import delivery_of
from racedata.loader.load import load
from racedata.loader.parts import Tables
from racedata.loader.sources import (
    DEFAULT_LIST,
    PUBLISHED,
    Source,
    addresses_in,
    history_of,
    source_at,
)
from racedata.loader.stage import staged

INVENTED = "https://invented.example.org/"


class InventedSource(Source):
    """A source of a type of its own. It has the sample."""

    @classmethod
    def accepts(cls, address):
        return address == INVENTED

    @contextmanager
    def opened(self, progress):
        def fill(stage):
            lines = of_sample(stage)
            stage.db.execute("UPDATE stage.sources SET name = ?1, address = ?1", (INVENTED,))
            return lines

        with source_at(str(SAMPLE)).opened(progress) as of_sample:
            yield fill

    def has_news(self, asked, history, progress):
        return not history.notes()

    def bring(self, task):
        with self.opened(task.progress) as fill, staged(task.progress) as stage:
            fill(stage)
            ((number, source),) = stage.stored_sources()
            tables = Tables(stage.db, "stage")
            task.deliver(delivery_of(source, tables, number)._replace(notes={"answer": 42}))
        return " after a question"


def test_a_source_of_a_new_type_needs_only_its_line_in_the_list(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "SOURCE_TYPES", (InventedSource, *sources.SOURCE_TYPES))
    database = tmp_path / "racedata.db"
    assert load([INVENTED], loader_settings(database), lambda text: None)[-1].endswith(
        f" from {INVENTED}"
    )
    refreshed(database, INVENTED)
    said, requests = refreshed(database, INVENTED)
    assert (said[-1], requests) == (f"{database}: nothing new after a question", 0)
    notes = history_of(database, INVENTED, INVENTED).notes
    assert notes and notes["answer"] == 42


@pytest.mark.parametrize(
    ("address", "type_name", "name"),
    [
        (DEFAULT_LIST[0], "ApiSource", DEFAULT_LIST[0]),
        (f"{DEFAULT_LIST[0]}/", "ApiSource", DEFAULT_LIST[0]),
        (PUBLISHED["f1db"], "F1dbRelease", "f1db"),
        ("https://example.org/copy/f1db-csv.zip", "F1dbRelease", "f1db"),
        (PUBLISHED["jolpica"], "JolpicaDump", "jolpica"),
        (PUBLISHED["tracinginsights"], "DumpSource", "tracinginsights"),
        ("https://example.org/data.zip?key=1", "DumpSource", "https://example.org/data.zip?key=1"),
        (str(SAMPLE), "DumpSource", str(SAMPLE)),
        ("openf1", "OpenF1", "openf1"),
        ("openf1:https://example.org/v1", "OpenF1", "openf1"),
    ],
)
def test_an_address_belongs_to_one_type_of_source(address, type_name, name):
    source = source_at(address)
    assert (type(source).__name__, source.name) == (type_name, name)


def test_the_files_of_a_dump_are_opened_only_when_its_name_is_needed(tmp_path):
    source = source_at(str(tmp_path / "dump"))
    shutil.copytree(F1DB, tmp_path / "dump")
    assert source.name == "f1db"
    shutil.rmtree(tmp_path / "dump")
    assert (source.name, source.is_rest) == ("f1db", False)  # they were opened once


def test_a_name_is_not_a_file_and_several_are_separated_by_spaces():
    assert addresses_in("f1db openf1 openf1:http://example.org/v1") == [
        PUBLISHED["f1db"],
        "openf1",
        "openf1:http://example.org/v1",
    ]
