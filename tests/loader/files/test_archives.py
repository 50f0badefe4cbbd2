"""racedata.loader.files.archives: a dump is found in a folder, a zip, or a zip in a zip."""

import gzip
import re
import shutil
import tempfile
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


def zipped(path, inside="", **names):
    """A zip of the sample, in which some tables have other file names."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(SAMPLE.iterdir()):
            archive.write(file, inside + names.get(file.stem, file.name))
    return path


def build(source):
    """Builds a database from a dump. Returns the report."""
    with tempfile.TemporaryDirectory() as folder:
        return load([str(source)], loader_settings(f"{folder}/racedata.db"), lambda text: None)


def refused(*said):
    """The block is refused with a message that has these words in this order."""
    return pytest.raises(LoadError, match="(?s)" + ".*".join(map(re.escape, said)))


@pytest.mark.parametrize("inside", ["", "RaceData-main/", "repo-main/data/raw/"])
def test_a_zip_may_have_the_files_at_its_root_or_in_a_folder(tmp_path, inside):
    assert contents(zipped(tmp_path / "data.zip", inside)) == contents(SAMPLE)


def zip_of(path, *files):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
    return path


def test_the_zip_in_a_zip_that_has_the_dump_is_read(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    inner = zipped(tmp_path / "data.ZIP", "data/")
    notes = zip_of(tmp_path / "notes.zip", tmp_path / "notes.txt")
    assert contents(zip_of(tmp_path / "outer.zip", inner, notes)) == contents(SAMPLE)
    # a dump next to it is nearer
    edited = zip_of(tmp_path / "edited.zip", inner, SAMPLE / "races.csv")
    assert contents(edited).keys() == {"data.ZIP", "races.csv"}


def test_a_zip_of_several_zips_with_dumps_or_of_none_is_refused(tmp_path):
    inner = [zipped(tmp_path / f"{year}.zip") for year in (2024, 2025)]
    outer = zip_of(tmp_path / "outer.zip", *inner)
    with refused(f"{outer}: has several dumps, in 2024.zip, 2025.zip; expected one"):
        contents(outer)
    deeper = zip_of(tmp_path / "deeper.zip", zip_of(tmp_path / "middle.zip", inner[0]))
    with refused(f"{deeper}: no circuits.csv in it; ", "; it and its folders have middle.zip"):
        build(deeper)


def test_a_zip_in_a_zip_has_the_limits_of_other_zips(tmp_path, monkeypatch):
    inner = zipped(tmp_path / "data.zip")
    outer = zip_of(tmp_path / "outer.zip", inner)
    for limit, value, said in (
        ("DOWNLOAD_BYTES", 10_000, f"{outer}: data.zip: more than 10,000 bytes; expected the zip"),
        ("UNPACKED_BYTES", 50_000, f"{outer}: data.zip: unpacks to more than 50,000 bytes"),
    ):
        with monkeypatch.context() as limits, refused(said):
            limits.setattr(archives, limit, value)
            contents(outer)
    inner.write_bytes(b"not a zip")
    with refused(f"{tmp_path / 'outer.zip'}: data.zip: broken zip (File is not a zip file)"):
        contents(zip_of(outer, inner))


@pytest.mark.parametrize("inside", ["", "repo-main/data/raw/"])
def test_a_file_with_nearly_the_name_of_a_required_one_is_named(tmp_path, inside):
    path = zipped(tmp_path / "data.zip", inside, races="Races.CSV", drivers="driver.csv")
    with refused(
        f"{path}: no ",
        " in it; expected circuits.csv, constructors.csv, drivers.csv, status.csv, ",
        f"; not read: {inside}Races.CSV (did you mean races.csv?), "
        f"{inside}driver.csv (did you mean drivers.csv?)",
    ):
        build(path)


def test_a_file_with_nearly_the_name_of_an_optional_one_is_in_the_report(tmp_path):
    path = tmp_path / "dump"
    shutil.copytree(SAMPLE, path)
    (path / "lap_times.csv").rename(path / "LapTime.csv")
    (path / "sessions.txt").write_text("")
    assert [line for line in build(path) if "not read" in line] == [
        "not read: LapTime.csv (did you mean lap_times.csv?)"
    ]
    assert not any("not read" in line for line in build(SAMPLE))


def test_a_name_in_a_zip_cannot_break_a_message(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("driver.csv\n", "x" * 1000, "notes.txt"):
            archive.writestr(name, "")
    with refused("; it and its folders have notes.txt"):
        build(path)


def test_a_source_without_a_dump_is_refused_with_what_it_has(tmp_path):
    (tmp_path / "empty").mkdir()
    with refused(f"{tmp_path / 'empty'}: no circuits.csv in it; ", "; it has no files"):
        build(tmp_path / "empty")
    for name in ("notes.txt", "a/b.csv", "a/c/d.csv"):
        (tmp_path / "other" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "other" / name).write_text("")
    with refused(
        "no circuits.csv in it; ", "; it and its folders have notes.txt, a/b.csv"
    ) as error:
        build(tmp_path / "other")
    assert "d.csv" not in str(error.value)  # nobody has looked there
    archive = shutil.make_archive(str(tmp_path / "other"), "zip", tmp_path / "other")
    with refused("; it and its folders have notes.txt, a/b.csv, a/c/d.csv"):
        build(archive)


def test_an_incomplete_dump_in_a_folder_is_refused_with_the_folder(tmp_path):
    path = tmp_path / "source"
    shutil.copytree(SAMPLE, path / ".raw")
    (path / ".raw" / "status.csv").unlink()
    archive = shutil.make_archive(str(tmp_path / "data"), "zip", path)
    for source in (path, archive):
        with refused(f"{source}: no status.csv in its folder .raw; ", "have circuits.csv, "):
            build(source)


def test_a_source_that_cannot_be_reached_is_refused_with_the_reason(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    for name, reason in [
        ("loop", "Too many levels of symbolic links"),
        ("none", "not found"),
        ("a\0", "not found"),
    ]:
        with refused(f"{tmp_path / name}: {reason}; expected a folder of CSV files"):
            contents(tmp_path / name)


def test_a_folder_with_several_dumps_is_refused(tmp_path):
    for year in ("2024", "2025"):
        shutil.copytree(SAMPLE, tmp_path / year)
    with refused(f"{tmp_path}: has several dumps, in 2024, 2025; expected one"):
        contents(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (
            lambda content: b"not a zip",
            "File is not a zip file); expected a folder of CSV files or",
        ),
        (lambda content: content[: len(content) // 2], "File is not a zip file)"),
        (lambda content: content[:3000] + bytes(500) + content[3500:], ""),
    ],
    ids=["text", "cut short", "damaged"],
)
def test_a_broken_zip_is_refused(tmp_path, spoil, said):
    path = zipped(tmp_path / "data.zip")
    path.write_bytes(spoil(path.read_bytes()))
    with refused(f"{path}: broken zip ({said}"):
        contents(path)


def test_a_tar_gz_is_called_what_it_is(tmp_path):
    path = tmp_path / "data.tar.gz"
    path.write_bytes(gzip.compress(b"races.csv"))
    with refused(f"{path}: a gzip file, such as a .tar.gz; expected a folder of CSV files or a"):
        contents(path)
