"""racedata.loader.sources, sources.source and sources.dump: an address is that of one type of
source.
"""

import shutil

import pytest
from support import SAMPLE
from support.refreshes import F1DB

from racedata.loader.sources import DEFAULT_LIST, PUBLISHED, addresses_in, source_at


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
