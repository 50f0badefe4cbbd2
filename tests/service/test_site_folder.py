"""racedata.service.site_folder: what it writes, deletes and refuses, and what a kill leaves."""

import fcntl
import os

import pytest
from support.processes import run_racedata

from racedata.database import file_state
from racedata.service.site_folder import MANIFEST, NEW, TITLE, FolderError, site_folder


def exported(path, **files):
    """Exports these files, whose names have `_` for a dot. Returns how many were deleted."""
    contents = {name.replace("_", "."): text.encode() for name, text in files.items()}
    with site_folder(str(path)) as folder:
        for name, content in contents.items():
            folder.put(name, content)
        return folder.finish()


def content_of(path):
    return {
        str(file.relative_to(path)): file.read_bytes()
        for file in path.rglob("*")
        if file.is_file() and file.name != MANIFEST
    }


@pytest.fixture
def copied(tmp_path):
    exported(tmp_path / "copy", **{"a/b/one_json": "1", "two_csv": "2"})
    return tmp_path / "copy"


def test_files_that_are_gone_are_deleted_with_their_folders_and_no_others(copied):
    (copied / "a" / "own.txt").write_text("mine")
    assert exported(copied, two_csv="2", three_csv="3") == 1
    assert content_of(copied) == {"a/own.txt": b"mine", "two.csv": b"2", "three.csv": b"3"}
    (copied / "a" / "own.txt").unlink()
    (copied / "a").rmdir()
    assert exported(copied) == 2
    assert [*copied.iterdir()] == [copied / MANIFEST]


def test_a_file_with_the_same_content_is_left_and_a_changed_one_replaced(copied):
    before = file_state(str(copied / "two.csv"))
    (copied / "a/b/one.json").write_text("spoilt")
    exported(copied, **{"a/b/one_json": "1", "two_csv": "2"})
    assert file_state(str(copied / "two.csv")) == before
    assert (copied / "a/b/one.json").read_text() == "1"
    (copied / "two.csv").unlink()
    exported(copied, **{"a/b/one_json": "1", "two_csv": "2"})
    assert (copied / "two.csv").read_text() == "2"


@pytest.mark.parametrize(
    ("name", "text"), [("index.html", "mine"), (".git", "mine"), (MANIFEST, "mine"), (MANIFEST, "")]
)
def test_a_folder_with_other_files_is_refused(tmp_path, sample_database, name, text):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / name).write_text(text)
    ended = run_racedata("export", "site", folder, "--database", sample_database)
    assert (ended.returncode, ended.stdout) == (1, "")
    what = "is not a list that racedata has written" if name == MANIFEST else "is neither empty nor"
    assert what in ended.stderr and ended.stderr.count("\n") == 1
    assert [file.read_text() for file in folder.iterdir()] == [text]


@pytest.mark.parametrize(
    "line",
    ["../outside.txt", "/etc/hostname", "a/../../outside.txt", "", MANIFEST, NEW, "a/../two.csv"],
)
def test_a_manifest_that_names_other_places_is_refused(copied, line):
    (copied.parent / "outside.txt").write_text("mine")
    (copied / MANIFEST).write_text(f"{TITLE}{line}\ntwo.csv\n")
    with pytest.raises(FolderError, match="which cannot be a file"):
        exported(copied)
    assert (copied.parent / "outside.txt").exists() and (copied / "two.csv").exists()


def test_a_link_to_another_folder_is_refused(copied):
    (copied / "a").rename(copied.parent / "elsewhere")
    (copied / "a").symlink_to(copied.parent / "elsewhere")
    for files in ({"a/b/one_json": "9"}, {"two_csv": "2"}):
        with pytest.raises(FolderError, match="is a link; expected a folder"):
            exported(copied, **files)
    assert (copied.parent / "elsewhere/b/one.json").read_text() == "1"


def test_a_link_in_place_of_a_file_is_replaced_and_what_it_names_stays(copied):
    other = copied.parent / "other.txt"
    other.write_text("2")
    (copied / "two.csv").unlink()
    (copied / "two.csv").symlink_to(other)
    (copied / NEW).symlink_to(other)
    exported(copied, two_csv="3")
    assert other.read_text() == "2" and not (copied / "two.csv").is_symlink()


def test_a_manifest_that_is_a_link_is_refused(copied):
    (copied / MANIFEST).rename(copied.parent / "list")
    (copied / MANIFEST).symlink_to(copied.parent / "list")
    with pytest.raises(FolderError, match="is not a regular file"):
        exported(copied)


def test_a_file_of_somebody_else_in_place_of_a_new_one_is_refused(copied):
    (copied / "three.csv").write_text("mine")
    with pytest.raises(FolderError, match=r"three\.csv: is not a file that racedata has exported"):
        exported(copied, two_csv="2", three_csv="3")
    assert (copied / "three.csv").read_text() == "mine"


def test_two_exports_at_once_are_refused(copied, sample_database):
    lock = os.open(copied, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ended = run_racedata("export", "site", copied, "--database", sample_database)
    os.close(lock)
    assert ended.returncode == 1
    assert "another export is writing to this folder" in ended.stderr


def test_a_folder_in_place_of_a_file_is_named(copied, sample_database):
    (copied / MANIFEST).write_text(f"{TITLE}data.html\n")
    (copied / "data.html").mkdir()
    ended = run_racedata("export", "site", copied, "--database", sample_database)
    assert ended.returncode == 1
    assert ended.stderr == f"racedata export site: {copied}/data.html: Is a directory\n"


@pytest.mark.parametrize("what", ["a file", "a missing folder"])
def test_a_place_that_cannot_be_a_folder_is_one_line(tmp_path, sample_database, what):
    place = tmp_path / "place"
    if what == "a file":
        place.write_text("mine")
    folder = place if what == "a file" else place / "copy"
    ended = run_racedata("export", "site", folder, "--database", sample_database)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert str(folder) in ended.stderr and ended.stderr.count("\n") == 1


@pytest.mark.parametrize("replaced", range(5))
def test_an_export_that_was_killed_is_mended_by_the_next_one(copied, monkeypatch, replaced):
    """It ends before it puts a file into its place; the first of them is the manifest."""
    moved = []

    def replace(source, target):
        if len(moved) == replaced:
            raise KeyboardInterrupt
        moved.append(target)
        rename(source, target)

    rename = os.replace
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(os, "replace", replace)
        exported(copied, one_csv="1", two_csv="new", **{"a/b/three_json": "3"})
    exported(copied, two_csv="newer")
    assert content_of(copied) == {"two.csv": b"newer"}
