"""racedata.loader.files.archives: a dump is found in a folder or a zip."""

import gzip
import re
import shutil
import zipfile

import pytest
from support import SAMPLE
from support.loads import loader_settings

from racedata.loader.errors import LoadError
from racedata.loader.files import archives
from racedata.loader.load import load


def contents(source):
    """The files of a dump: `{name: bytes}`."""
    with archives.opened(str(source), ["races.csv"], []) as (_, folder, _):
        return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


def zipped(path, inside=""):
    """A zip of the sample."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(SAMPLE.iterdir()):
            archive.write(file, inside + file.name)
    return path


def refused(said):
    return pytest.raises(LoadError, match=re.escape(said))


@pytest.mark.parametrize("inside", ["", "RaceData-main/", "repo-main/data/raw/"])
def test_a_zip_may_have_the_files_at_its_root_or_in_a_folder(tmp_path, inside):
    assert contents(zipped(tmp_path / "data.zip", inside)) == contents(SAMPLE)


def test_a_dump_that_lacks_a_file_is_refused_with_its_name(tmp_path):
    path = tmp_path / "source"
    shutil.copytree(SAMPLE, path / ".raw")
    (path / ".raw" / "status.csv").unlink()
    archive = shutil.make_archive(str(tmp_path / "data"), "zip", path)
    (tmp_path / "empty").mkdir()
    for source, name in ((path, "status"), (archive, "status"), (tmp_path / "empty", "circuits")):
        with refused(f"{source}: no {name}.csv in it; expected circuits.csv, constructors.csv, "):
            load([str(source)], loader_settings(tmp_path / "x.db"), lambda text: None)


def test_a_folder_with_several_dumps_is_refused(tmp_path):
    for year in ("2024", "2025"):
        shutil.copytree(SAMPLE, tmp_path / year)
    with refused(f"{tmp_path}: has several dumps, in 2024, 2025; expected one"):
        contents(tmp_path)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda content: b"not a zip",
        lambda content: content[: len(content) // 2],
        lambda content: content[:3000] + bytes(500) + content[3500:],
        lambda content: gzip.compress(b"races.csv"),
    ],
    ids=["text", "cut short", "damaged", "gzip"],
)
def test_a_broken_zip_is_refused(tmp_path, spoil):
    path = zipped(tmp_path / "data.zip")
    path.write_bytes(spoil(path.read_bytes()))
    with refused(f"{path}: broken zip ("):
        contents(path)


def test_a_zip_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "UNPACKED_BYTES", 50_000)
    path = zipped(tmp_path / "data.zip")
    with refused(f"{path}: unpacks to more than 50,000 bytes; expected a dump of the data"):
        contents(path)
